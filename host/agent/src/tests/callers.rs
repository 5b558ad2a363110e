//! Turns with different callers: tools that were made for one caller are never used by another.

use super::unfolding::invoke;
use super::*;
use crate::injection::Facade;
use crate::{AgenticTool, ToolSession};
use toolwit_core::{Error, ErrorKind, Phase};

/// Returns the tool `balance`, which returns the token with which it was made.
fn balance(token: &str) -> Arc<dyn Tool> {
    let text = format!("asked with {token}");
    tool("balance", move |_, _| Ok(ToolResult::text(text.clone())))
}

fn token_of(context: &ToolContext) -> String {
    context.text("token").unwrap_or("no token").to_owned()
}

/// Returns the tools that a caller may have: `balance`, and for `ann` also `admin`.
fn tools_of(context: &ToolContext) -> Vec<Arc<dyn Tool>> {
    let token = token_of(context);
    let admin = (token == "ann").then(|| echo("admin"));
    [balance(&token)].into_iter().chain(admin).collect()
}

fn of(token: &str) -> ToolContext {
    ToolContext::new().with("token", token)
}

fn refused(message: &str) -> Error {
    Error::new(ErrorKind::Denied, Phase::Registry, message)
}

/// A source and a strategy-free role whose tools are those of the caller. Only known callers reach it.
struct Bank;

#[async_trait]
impl ToolSource for Bank {
    fn name(&self) -> &str {
        "bank"
    }

    async fn tools(&self, context: &ToolContext) -> Result<Vec<Arc<dyn Tool>>, Error> {
        match token_of(context).as_str() {
            "ann" | "bob" => Ok(tools_of(context)),
            _ => Err(refused("the bank does not know the caller")),
        }
    }
}

fn bank_groups() -> ToolGroups {
    let config = GroupsConfig::parse("[groups.money]\nprovider = 'bank'").unwrap();
    ToolGroups::new().with_source(Bank).with_config(config).unwrap()
}

fn account_facade() -> Facade {
    let facade = Facade::builder("account", "Opens the account.").tools_from_context(|context| Ok(tools_of(context)));
    facade.build().unwrap()
}

fn fetched_facade() -> Facade {
    let facade = Facade::builder("account", "Opens the account.")
        .fetch_with(|context| async move { Bank.tools(&context).await.map_err(ToolError::Model) });
    facade.build().unwrap()
}

/// Runs one turn for each token, and returns the tool results of each turn.
async fn run_turns(conversation: &mut Conversation, tokens: &[&str]) -> Vec<Vec<String>> {
    let mut results = Vec::new();
    for token in tokens {
        let earlier = tool_results(conversation.history()).len();
        conversation.turn("go").context(of(token)).run().await.unwrap();
        let new = tool_results(conversation.history());
        results.push(new[earlier..].iter().map(|&text| text.to_owned()).collect());
        assert_valid(conversation.history());
    }
    results
}

// accept: 61, accept: 62, accept: 118
#[tokio::test]
async fn a_facade_that_another_caller_opens_makes_its_tools_for_this_caller() {
    for facade in [account_facade(), fetched_facade()] {
        let open = || [invoke("account"), invoke("balance"), reply("ok")];
        let (builder, _) = TestModel::playing(open().into_iter().chain(open()));
        let mut conversation = builder.tool(facade).build().unwrap();
        let results = run_turns(&mut conversation, &["ann", "bob"]).await;
        assert_eq!(results[0][1], "asked with ann");
        assert_eq!(results[1][1], "asked with bob");
    }
}

// accept: 61, accept: 62, accept: 118
#[tokio::test]
async fn the_tools_of_an_open_facade_are_made_again_when_the_caller_changes() {
    for facade in [account_facade(), fetched_facade()] {
        let steps = [
            invoke("account"),
            reply("ok"),
            call([
                ("balance", json!({})),
                ("admin", json!({})),
                ("account_context", json!({})),
            ]),
            reply("ok"),
        ];
        let (builder, model) = TestModel::playing(steps);
        let mut conversation = builder.tool(facade).build().unwrap();
        let results = run_turns(&mut conversation, &["ann", "bob"]).await;
        assert_eq!(
            model.request(1).names,
            ["account", "balance", "admin", "account_context"]
        );
        assert_eq!(model.request(2).names, ["account", "balance", "account_context"]);
        assert_eq!(results[1][0], "asked with bob");
        assert!(
            results[1][1].contains("tool-unavailable") && results[1][1].contains("call `account` again"),
            "{}",
            results[1][1]
        );
        assert!(!results[1][2].contains("admin"), "{}", results[1][2]);
    }
}

// accept: 118
#[tokio::test]
async fn the_tools_of_an_open_facade_leave_if_they_cannot_be_made_for_the_caller() {
    let steps = [
        invoke("account"),
        reply("ok"),
        invoke("balance"),
        reply("ok"),
        invoke("account"),
        invoke("balance"),
        reply("ok"),
    ];
    let (builder, model) = TestModel::playing(steps);
    let mut conversation = builder.tool(fetched_facade()).build().unwrap();
    let results = run_turns(&mut conversation, &["ann", "eve", "bob"]).await;
    assert!(results[1][0].contains("has been removed"), "{}", results[1][0]);
    assert_eq!(model.request(2).names, ["account"]);
    assert_eq!(results[2][1], "asked with bob", "a call of the facade makes them");
    assert_eq!(model.request(6).names, ["account", "balance", "account_context"]);
}

// accept: 118
#[tokio::test]
async fn a_facade_with_a_guard_makes_tools_for_another_caller_only_in_a_call() {
    struct OnlyAnn;
    #[async_trait]
    impl toolwit_core::Decorator for OnlyAnn {
        async fn call(
            &self,
            tool: &dyn Tool,
            arguments: Arguments,
            context: &ToolContext,
        ) -> Result<ToolResult, ToolError> {
            match token_of(context).as_str() {
                "ann" => tool.call(arguments, context).await,
                _ => Err(ToolError::Model(refused("the guard refuses the caller"))),
            }
        }

        fn is_guard(&self) -> bool {
            true
        }
    }
    let steps = [
        invoke("account"),
        reply("ok"),
        invoke("balance"),
        invoke("account"),
        reply("ok"),
    ];
    let (builder, model) = TestModel::playing(steps);
    let builder = builder.tool(account_facade()).guard("account", Arc::new(OnlyAnn));
    let mut conversation = builder.build().unwrap();
    let results = run_turns(&mut conversation, &["ann", "bob"]).await;
    assert_eq!(model.request(2).names, ["account"], "the guard was not asked");
    assert!(results[1][0].contains("has been removed"), "{}", results[1][0]);
    assert!(
        results[1][1].contains("the guard refuses the caller"),
        "{}",
        results[1][1]
    );
}

// accept: 61
#[tokio::test]
async fn the_tools_of_a_facade_keep_their_state_while_the_caller_is_the_same() {
    let facade = Facade::builder("counter", "Counts.").tools_from_context(|_| {
        let count = Arc::new(Mutex::new(0));
        Ok(vec![tool("count", move |_, _| {
            let mut count = count.lock().unwrap();
            *count += 1;
            Ok(ToolResult::text(count.to_string()))
        })])
    });
    let steps = [
        invoke("counter"),
        invoke("count"),
        reply("ok"),
        invoke("count"),
        reply("ok"),
        invoke("count"),
        reply("ok"),
    ];
    let (builder, model) = TestModel::playing(steps);
    let mut conversation = builder.tool(facade.build().unwrap()).build().unwrap();
    let mut last = String::new();
    for (turn, traceparent) in ["00-1", "00-2"].into_iter().enumerate() {
        let context = of("ann").with("traceparent", traceparent);
        let outcome = conversation.turn("go").context(context).run().await.unwrap();
        last = tool_results(&outcome.history).pop().unwrap().to_owned();
        assert_eq!(last, (turn + 1).to_string());
    }
    assert_eq!(last, "2");
    assert!(model.events_named("tools_rebound").is_empty());
    let results = run_turns(&mut conversation, &["bob"]).await;
    assert_eq!(results[0][0], "1", "another caller has tools of its own");
}

// accept: 50, accept: 58
#[tokio::test]
async fn nested_facades_and_their_tools_are_made_again_from_the_outside() {
    let outer = Facade::builder("bank", "A bank.").tools_from_context(|context| {
        let inner = Facade::builder("account", "An account.")
            .tools(tools_of(context))
            .build();
        Ok(vec![Arc::new(inner.unwrap()) as Arc<dyn Tool>])
    });
    let steps = [
        invoke("bank"),
        invoke("account"),
        reply("ok"),
        call([("balance", json!({})), ("admin", json!({}))]),
        reply("ok"),
    ];
    let (builder, _) = TestModel::playing(steps);
    let mut conversation = builder.tool(outer.build().unwrap()).build().unwrap();
    let results = run_turns(&mut conversation, &["ann", "bob"]).await;
    assert_eq!(results[1][0], "asked with bob");
    assert!(results[1][1].contains("has been removed"), "{}", results[1][1]);
}

// accept: 94
#[tokio::test]
async fn a_role_belongs_to_the_caller_of_each_turn() {
    let both = || call([("balance", json!({})), ("admin", json!({}))]);
    let (builder, model) = TestModel::playing([
        both(),
        reply("ok"),
        both(),
        reply("ok"),
        reply("ok"),
        both(),
        reply("ok"),
    ]);
    let mut conversation = builder.groups(bank_groups()).role("money").build().unwrap();
    let results = run_turns(&mut conversation, &["ann", "bob", "eve", "ann"]).await;
    assert_eq!(results[0], ["asked with ann", "admin"]);
    assert_eq!(results[1][0], "asked with bob");
    assert!(results[1][1].contains("has been removed"), "{}", results[1][1]);
    assert_eq!(model.request(2).names, ["balance"]);
    assert!(model.request(4).names.is_empty(), "the source does not know the caller");
    assert_eq!(results[3], ["asked with ann", "admin"]);
}

// accept: 94
#[tokio::test]
async fn a_role_of_an_agent_belongs_to_the_caller_of_its_call() {
    let ask = || [invoke("balance"), reply("asked")];
    let (_, inner) = TestModel::playing(ask().into_iter().chain(ask()));
    let agent = AgenticTool::new("agent", "Works.")
        .with_model(inner.clone())
        .with_role("money");
    let delegate = || [call([("agent", json!({"task": "ask"}))]), reply("ok")];
    let (builder, _) = TestModel::playing(delegate().into_iter().chain(delegate()));
    let mut conversation = builder.groups(bank_groups()).tool(agent).build().unwrap();
    run_turns(&mut conversation, &["ann", "bob"]).await;
    let answers: Vec<_> = [1, 3]
        .map(|request| inner.request(request).messages.last().unwrap().content().to_owned())
        .into();
    assert_eq!(answers, ["asked with ann", "asked with bob"]);
    assert_eq!(inner.request(2).names, ["balance"], "bob has no `admin`");
}

// accept: 118
#[tokio::test]
async fn the_calls_of_a_session_use_the_tools_of_their_caller() {
    let session = ToolSession::begin(Conversation::builder().tool(account_facade()))
        .await
        .unwrap();
    let ask = async |name: &str, token: &str| session.call(name, Arguments::new(), &of(token)).await;
    let opened = ask("account", "ann").await.unwrap();
    assert!(opened.has_changed_tools);
    assert_eq!(ask("balance", "ann").await.unwrap().result.content(), "asked with ann");
    let answer = ask("balance", "bob").await.unwrap();
    assert_eq!(answer.result.content(), "asked with bob");
    assert!(answer.has_changed_tools, "`admin` left");
    let error = ask("admin", "bob").await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::ToolUnavailable);
}

// accept: 118
#[tokio::test]
async fn tools_that_a_plain_tool_revealed_leave_with_their_caller() {
    let reveal = tool("reveal", |_, context| {
        let mut result = ToolResult::text("revealed");
        result.revealed_tools = Some(toolwit_core::RevealedTools::new(tools_of(&context)));
        Ok(result)
    });
    let steps = [
        invoke("reveal"),
        invoke("balance"),
        reply("ok"),
        invoke("balance"),
        reply("ok"),
    ];
    let (builder, _) = TestModel::playing(steps);
    let mut conversation = builder.tools([reveal]).build().unwrap();
    let results = run_turns(&mut conversation, &["ann", "bob"]).await;
    assert_eq!(results[0][1], "asked with ann");
    assert!(results[1][0].contains("call `reveal` again"), "{}", results[1][0]);
}
