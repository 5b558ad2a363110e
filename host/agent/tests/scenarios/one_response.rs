//! Several calls in one response, of which the first changes the tool of the second.

use super::support::*;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use toolwit_agent::injection::{Facade, Injection, InjectionContext, Playbook, Unlock};
use toolwit_agent::model::{ScriptedModel, ToolDelivery};
use toolwit_agent::{Conversation, ConversationBuilder};
use toolwit_core::{Arguments, NativeEntity, SharedToolSet, Tool, ToolContext, ToolId, ToolResult};

/// A facade that creates the tool `add` for the selected cart.
fn carts() -> Facade {
    let carts = Arc::new(Mutex::new(std::collections::BTreeMap::<String, Vec<String>>::new()));
    let schema = json!({"type": "object", "properties": {"cart": {"type": "string"}}, "required": ["cart"]});
    let select = move |arguments: &Arguments, _: &ToolContext| {
        let (carts, id) = (carts.clone(), arguments["cart"].as_str().unwrap().to_owned());
        let add = tool("add", move |arguments, _| {
            let mut carts = carts.lock().unwrap();
            let items = carts.entry(id.clone()).or_default();
            items.push(arguments["item"].as_str().unwrap().to_owned());
            Ok(ToolResult::text(format!("{id}: {}", items.join(","))))
        });
        Ok(vec![add])
    };
    let facade = Facade::builder("shop", "Works with the selected cart.");
    facade.select_with(schema, select).build().unwrap()
}

fn select(cart: &str) -> (&'static str, Value) {
    ("shop", json!({ "cart": cart }))
}

fn add(item: &str) -> (&'static str, Value) {
    ("add", json!({ "item": item }))
}

// accept: 61, accept: 129, accept: 132
#[tokio::test]
async fn a_facade_is_opened_for_another_cart_and_the_next_call_of_the_response_uses_it() {
    let script = ScriptedModel::new()
        .turn(together([select("one"), add("pen")]))
        .turn(together([
            add("ink"),
            select("two"),
            add("cup"),
            select("one"),
            add("pad"),
        ]));
    let results = results(Conversation::builder().tool(carts()), script).await;
    assert_eq!(results[1], "one: pen");
    assert_eq!(
        [&results[2], &results[4], &results[6]],
        ["one: pen,ink", "two: cup", "one: pen,ink,pad"],
        "each call acts on the cart that was selected before it"
    );
}

// accept: 61, accept: 92, accept: 129
#[tokio::test]
async fn the_same_holds_behind_a_gateway_and_with_a_lock() {
    let gateway = |(name, arguments): (&str, Value)| ("call_tool", json!({"name": name, "arguments": arguments}));
    let script = ScriptedModel::new()
        .turn(together([select("one"), gateway(add("pen"))]))
        .turn(together([select("two"), gateway(add("cup"))]));
    let builder = Conversation::builder().tool(carts()).delivery(ToolDelivery::Gateway);
    assert_eq!(results(builder, script).await[3], "two: cup");
    let playbook = Playbook::new().with_lock(toolwit_core::ToolSelector::later("native#add"), Unlock::by("login"));
    let script = ScriptedModel::new()
        .turn(together([select("one"), add("pen")]))
        .turn(together([("login", json!({})), select("two"), add("cup")]));
    let builder = Conversation::builder()
        .tool(carts())
        .tools([echo("login")])
        .strategy(playbook);
    let results = results(builder, script).await;
    assert!(results[1].contains("call `login` first"), "{}", results[1]);
    assert_eq!(results[4], "two: cup");
}

// accept: 15, accept: 61, accept: 91, accept: 129
#[tokio::test]
async fn a_call_that_was_written_for_the_tool_of_another_selection_is_corrected_with_the_new_schema() {
    let schema = json!({"type": "object", "properties": {"by": {"type": "string"}}});
    let select = |arguments: &Arguments, _: &ToolContext| {
        let parameter = if arguments["by"] == "name" { "name" } else { "number" };
        Ok(vec![Arc::new(taking("query", parameter)) as Arc<dyn Tool>])
    };
    let facade = Facade::builder("db", "Works with a database.").select_with(schema, select);
    let (open, query) = (
        |by: &str| ("db", json!({"by": by})),
        |key: &str| ("query", json!({key: "x"})),
    );
    let script = ScriptedModel::new()
        .turn(together([open("name"), query("name")]))
        .turn(together([open("number"), query("name")]))
        .turn(together([query("number")]));
    let results = results(Conversation::builder().tool(facade.build().unwrap()), script).await;
    assert_eq!(results[1], r#"name = "x""#);
    assert!(results[3].contains("`number` (string, required)"), "{}", results[3]);
    assert_eq!(results[4], r#"number = "x""#);
}

fn of_carts(count: usize, prepare: fn(NativeEntity<Items>) -> NativeEntity<Items>) -> ConversationBuilder {
    let ids: Vec<_> = (1..=count).map(|id| id.to_string()).collect();
    Conversation::builder().tools([opens("open", ids.clone(), prepare), opens("reload", ids, prepare)])
}

// accept: 37, accept: 129
#[tokio::test]
async fn an_entity_is_returned_again_and_the_next_call_of_the_response_acts_on_the_instance_of_its_type() {
    let none = || json!({});
    for (count, method, arguments) in [
        (1, "cart_1_add", json!({"item": "pen"})),
        (17, "cart_add", json!({"item": "pen", "cart_id": "1"})),
    ] {
        let script = || {
            ScriptedModel::new()
                .turn(together([("open", none())]))
                .turn(together([("reload", none()), (method, arguments.clone())]))
        };
        let latest = results(of_carts(count, NativeEntity::latest_wins), script()).await;
        assert_eq!(latest[2], "reload,pen", "the newest instance: {method}");
        let kept = results(of_carts(count, |cart| cart), script()).await;
        assert_eq!(kept[2], "open,pen", "the first instance: {method}");
    }
}

// accept: 21, accept: 23, accept: 129
#[tokio::test]
async fn a_tool_that_an_earlier_call_injected_and_now_removes_does_not_run_and_other_calls_are_answered() {
    let phases = |context: &InjectionContext<'_>| match context.call().name.as_str() {
        "plan" if context.tools().by_id(&ToolId::native("draft")).is_some() => {
            Injection::replace(ToolId::native("draft"), vec![echo("execute")])
        }
        "plan" => Injection::add(vec![echo("draft")]),
        _ => Injection::none(),
    };
    let none = || json!({});
    let script = ScriptedModel::new()
        .turn(together([("plan", none()), ("draft", none())]))
        .turn(together([
            ("plan", none()),
            ("draft", none()),
            ("execute", none()),
            ("free", none()),
        ]));
    let builder = Conversation::builder()
        .tools([echo("plan"), echo("free")])
        .strategy(phases);
    let results = results(builder, script).await;
    assert_eq!(results[1], "draft");
    assert!(results[3].contains("has been removed"), "{}", results[3]);
    assert_eq!(results[4..], ["execute", "free"]);
}

/// A model that registers another tool between the request and its response.
struct Interfering {
    script: ScriptedModel,
    shared_tools: SharedToolSet,
}

#[async_trait::async_trait]
impl toolwit_agent::model::ChatModel for Interfering {
    fn name(&self) -> &str {
        "interfering"
    }

    async fn chat(
        &self,
        request: toolwit_agent::model::ChatRequest<'_>,
    ) -> Result<toolwit_agent::model::ChatResponse, toolwit_agent::model::ModelError> {
        let response = self.script.chat(request).await;
        self.shared_tools.register(taking("look", "name"));
        response
    }
}

// accept: 15, accept: 91
#[tokio::test]
async fn a_tool_that_is_registered_again_between_request_and_call_is_called_as_it_was_declared() {
    let shared_tools = SharedToolSet::new();
    shared_tools.register(taking("look", "at"));
    let look = |parameter: &str| together([("look", json!({parameter: "x"}))]);
    let script = ScriptedModel::new().turn(look("at")).turn(look("name")).answer("done");
    let builder = Conversation::builder().shared_tools(&shared_tools);
    let model = Interfering {
        script,
        shared_tools: shared_tools.clone(),
    };
    let outcome = builder.model(model).run("go").await.unwrap();
    assert_eq!(tool_results(&outcome.history), [r#"at = "x""#, r#"name = "x""#]);
}

// accept: 30, accept: 37, accept: 38
#[tokio::test]
async fn entities_whose_ids_look_like_those_of_shared_and_chained_methods_keep_their_tools() {
    let add = || json!({"item": "pen"});
    let ids = (0..20).map(|id| id.to_string()).collect();
    let script = ScriptedModel::new()
        .call("any", json!({}))
        .call("cart_any_add", add())
        .call("many", json!({}));
    let script = script
        .call("cart_any_add", add())
        .call("cart_add", json!({"item": "pen", "cart_id": "3"}));
    let alone = opens("any", vec!["any".to_owned()], |cart| cart);
    let shared = results(
        Conversation::builder().tools([alone, opens("many", ids, |cart| cart)]),
        script,
    )
    .await;
    assert_eq!(
        [&shared[1], &shared[3], &shared[4]],
        ["any,pen", "any,pen,pen", "many,pen"]
    );
    let current = opens("open", vec!["current".to_owned()], |cart| cart);
    let builder = Conversation::builder()
        .tools([current])
        .chain_from(&toolwit_core::EntityMethods::<u32>::new("other"));
    let script = ScriptedModel::new()
        .call("open", json!({}))
        .call("cart_current_add", add());
    assert_eq!(results(builder, script).await[1], "open,pen");
}
