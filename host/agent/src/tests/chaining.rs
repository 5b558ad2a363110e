//! Chaining: tools that act on the object that a result returned last, the current object.

use super::*;
use crate::injection::{Chaining, Playbook, StateMachine, Unlock};
use toolwit_core::{EntityMethods, NativeEntity, NoArguments, ToolProvider, ToolSelector};

struct User {
    name: String,
    role: &'static str,
}

struct Order(String);

fn users() -> EntityMethods<User> {
    let methods = EntityMethods::<User>::new("user");
    methods
        .method("greet", "Greets.", |user, _: NoArguments, _| async move {
            Ok::<_, String>(format!("hi {}", user.name))
        })
        .unwrap()
}

fn orders() -> EntityMethods<Order> {
    let methods = EntityMethods::<Order>::new("order");
    methods
        .method("cancel", "Cancels.", |order, _: NoArguments, _| async move {
            Ok::<_, String>(format!("{} is cancelled", order.0))
        })
        .unwrap()
}

fn user(name: &str) -> Arc<dyn ToolProvider> {
    let role = if name == "root" { "admin" } else { "guest" };
    let object = User {
        name: name.to_owned(),
        role,
    };
    Arc::new(users().entity(name, Arc::new(object)).unwrap())
}

/// Returns a tool that returns the users and orders with the requested names.
fn get() -> Arc<dyn Tool> {
    tool("get", |arguments, _| {
        let names = |key: &str| {
            let list = arguments
                .get(key)
                .and_then(Value::as_array)
                .cloned()
                .unwrap_or_default();
            list.into_iter().map(|name| name.as_str().unwrap().to_owned())
        };
        let mut result = ToolResult::text("found");
        for name in names("users") {
            result = result.with_provider(user(&name));
        }
        for name in names("orders") {
            let order = orders().entity(&name, Arc::new(Order(name.clone()))).unwrap();
            result = result.with_provider(Arc::new(order));
        }
        Ok(result)
    })
}

fn get_users<const N: usize>(names: [&str; N]) -> Step {
    call([("get", json!({"users": names.to_vec()}))])
}

fn greet() -> Step {
    call([("user_greet", json!({}))])
}

/// Runs a conversation with the tool `get`, and returns the results of its calls.
async fn run_steps(builder: ConversationBuilder) -> Vec<String> {
    let outcome = builder.tools([get()]).run("go").await.unwrap();
    assert_valid(&outcome.history);
    tool_results(&outcome.history).into_iter().map(str::to_owned).collect()
}

// accept: 43, accept: 44, accept: 46
#[tokio::test]
async fn methods_are_declared_from_the_start_and_act_on_the_latest_object() {
    let steps = [
        greet(),
        get_users(["ada"]),
        greet(),
        get_users(["bob"]),
        greet(),
        reply("ok"),
    ];
    let (builder, model) = TestModel::playing(steps);
    let results = run_steps(builder.chain_from(&users())).await;
    assert!(
        results[0].contains("`user_greet` is not available yet"),
        "{}",
        results[0]
    );
    assert_eq!((results[2].as_str(), results[4].as_str()), ("hi ada", "hi bob"));
    assert_eq!(model.request(0).names, ["get", "user_greet"]);
    assert_eq!(
        model.request(5).serialised_tools,
        model.request(0).serialised_tools,
        "all objects have the same tools"
    );
    assert!(model.request(0).serialised_tools[1].contains("Greets. It acts on the `user` that a tool returned last."));
    let discoveries = model.events_named("entity_discovered");
    assert_eq!(
        (&discoveries[0]["binding"], &discoveries[1]["binding"]),
        (&json!("new"), &json!("rebound"))
    );
}

// accept: 45, accept: 48
#[tokio::test]
async fn several_objects_and_objects_without_methods_do_not_become_current() {
    let plain = tool("plain", |_, _| {
        Ok(ToolResult::text("plain").with_provider(Arc::new(NativeEntity::new("user", Arc::new(())))))
    });
    let steps = [
        get_users(["ada", "bob"]),
        greet(),
        call([("plain", json!({}))]),
        greet(),
        reply("ok"),
    ];
    let (builder, model) = TestModel::playing(steps);
    let results = run_steps(builder.chain_from(&users()).tools([plain])).await;
    assert!(
        results[1].contains("not available yet") && results[3].contains("not available yet"),
        "{results:?}"
    );
    assert!(model.events_named("tools_injected").is_empty());
}

// accept: 43
#[tokio::test]
async fn a_predicate_decides_which_objects_become_current() {
    let admins = Chaining::new().with_type_where(&users(), |user, view| {
        user.role == "admin" && view.context().text("tenant") == Some("acme")
    });
    let steps = [
        get_users(["ada"]),
        greet(),
        get_users(["root"]),
        greet(),
        get_users(["bob"]),
        greet(),
        reply("ok"),
    ];
    let (builder, _) = TestModel::playing(steps);
    let context = ToolContext::new().with("tenant", "acme");
    let results = run_steps(builder.chaining(admins).context(context)).await;
    assert!(results[1].contains("not available yet"), "{}", results[1]);
    assert_eq!(results[3], "hi root");
    assert_eq!(
        results[5], "hi root",
        "an object that the predicate rejects does not become current"
    );
}

// accept: 43, accept: 46
#[tokio::test]
async fn an_object_of_any_type_replaces_the_current_object() {
    let get_order = || call([("get", json!({"orders": ["o-1"]}))]);
    let cancel = || call([("order_cancel", json!({}))]);
    let steps = [
        get_users(["ada"]),
        greet(),
        get_order(),
        greet(),
        cancel(),
        get_users(["bob"]),
        cancel(),
        greet(),
        reply("ok"),
    ];
    let (builder, model) = TestModel::playing(steps);
    let results = run_steps(builder.chain_from_any()).await;
    assert_eq!(results[1], "hi ada");
    assert!(results[3].contains("has been removed"), "{}", results[3]);
    assert_eq!(results[4], "o-1 is cancelled");
    assert!(results[6].contains("has been removed"), "{}", results[6]);
    assert_eq!(results[7], "hi bob");
    assert_eq!(model.request(0).names, ["get"]);
    assert_eq!(model.request(8).names, ["get", "user_greet", "order_cancel"]);
}

// accept: 45, accept: 46
#[tokio::test]
async fn several_objects_of_an_added_type_do_not_hide_the_only_object_of_another_type() {
    let steps = [
        call([("get", json!({"users": ["ada", "bob"], "orders": ["o-1"]}))]),
        call([("order_cancel", json!({}))]),
        greet(),
        reply("ok"),
    ];
    let (builder, _) = TestModel::playing(steps);
    let results = run_steps(builder.chaining(Chaining::new().with_type(&users()).with_any_type())).await;
    assert_eq!(results[1], "o-1 is cancelled");
    assert!(results[2].contains("not available yet"), "{}", results[2]);
}

// accept: 43, accept: 45, accept: 48
#[tokio::test]
async fn one_of_several_objects_of_an_added_type_is_not_chained_as_an_object_of_another_type() {
    let user_without_methods = || {
        let name = "eve".to_owned();
        NativeEntity::new("user", Arc::new(User { name, role: "guest" }))
    };
    let mixed = tool("mixed", move |_, _| {
        let result = ToolResult::text("mixed").with_provider(Arc::new(user_without_methods()));
        Ok(result.with_provider(user("ada")))
    });
    let admins = Chaining::new().with_type_where(&users(), |user, _| user.role == "admin");
    let steps = [
        call([("mixed", json!({}))]),
        greet(),
        get_users(["root"]),
        call([("mixed", json!({}))]),
        greet(),
        reply("ok"),
    ];
    let (builder, _) = TestModel::playing(steps);
    let results = run_steps(builder.chaining(admins.with_any_type()).tools([mixed])).await;
    assert!(results[1].contains("not available yet"), "{}", results[1]);
    assert_eq!(results[4], "hi root", "the result does not change the current object");
}

// accept: 47
#[tokio::test]
async fn playbooks_and_state_machines_do_not_lock_chained_tools() {
    let playbook = Playbook::new().with_locked_tool(echo("locked"), Unlock::by(ToolSelector::later("nothing")));
    let machine = StateMachine::builder()
        .initial("a")
        .in_state("a")
        .tool(echo("x"))
        .build()
        .unwrap();
    let (builder, _) = TestModel::playing([get_users(["ada"]), greet(), reply("ok")]);
    let results = run_steps(builder.chain_from(&users()).playbook(playbook).state_machine(machine)).await;
    assert_eq!(results[1], "hi ada");
}

// accept: 45, accept: 129
#[tokio::test]
async fn one_response_can_return_and_use_an_object_and_objects_of_other_types_are_not_chained() {
    let steps = [
        call([
            ("get", json!({"users": ["ada"]})),
            ("user_greet", json!({})),
            ("get", json!({"users": ["bob"]})),
            ("user_greet", json!({})),
        ]),
        call([("get", json!({"orders": ["o-1", "o-2"]}))]),
        reply("ok"),
    ];
    let (builder, model) = TestModel::playing(steps);
    let results = run_steps(builder.chain_from(&users())).await;
    assert_eq!(
        (results[1].as_str(), results[3].as_str()),
        ("hi ada", "hi bob"),
        "each call acts on the object returned before it"
    );
    assert_eq!(model.request(2).names[2..], ["order_o1_cancel", "order_o2_cancel"]);
}
