//! Conversations of one host, which share nothing.

use std::sync::Arc;

use serde_json::{Value, json};
use toolwit::tool::{Blackboard, MemoryBlackboard, Role};
use toolwit::{ScriptedModel, Tool, ToolContext, ToolResult, Toolwit};

use crate::host::{Setup, TestHost};

/// One of several conversations of a host.
struct Side {
    tools: Vec<Arc<dyn Tool>>,
    context: ToolContext,
}

impl Side {
    fn of(host: &TestHost, name: &str) -> Self {
        let board: Arc<dyn Blackboard> = Arc::new(MemoryBlackboard::new());
        let context = ToolContext::new()
            .with("tenant", name)
            .with("key", format!("the-key-of-{name}"));
        Self {
            tools: host.another_conversation(),
            context: context.with_blackboard(board),
        }
    }

    async fn call(&mut self, tool: &str, arguments: Value) -> ToolResult {
        let Value::Object(arguments) = arguments else {
            panic!("arguments are an object")
        };
        let tool = Toolwit::find_tool(&self.tools, tool).unwrap();
        let result = tool.call(arguments.into_iter().collect(), &self.context).await.unwrap();
        self.tools
            .extend(result.providers.iter().flat_map(|provider| provider.tools()));
        result
    }

    async fn value(&mut self, tool: &str, arguments: Value) -> Value {
        self.call(tool, arguments).await.value.unwrap()
    }
}

// attack: K10, attack: I4
#[tokio::test]
async fn conversations_of_one_host_find_only_their_own_objects() {
    let lines = "blackboard = \"read-write\"\ncontext = [\"tenant\"]\n\
                 secrets = [{ name = \"key\", from = \"conversation\", expose = true, variable = \"KEY\" }]";
    let host = Setup::new().grant(lines).start().await;
    let (mut left, mut right) = (Side::of(&host, "left"), Side::of(&host, "right"));
    for side in [&mut left, &mut right] {
        // Entities with the same id, and the memory of an instance.
        side.call("pile_new", json!({"id": "same"})).await;
        for expected in 1..=3 {
            assert_eq!(side.value("pile_same_add", json!({})).await, expected);
            assert_eq!(side.value("touch", json!({})).await, expected);
        }
    }
    left.call("pile_new", json!({"id": "of-the-left"})).await;
    assert!(Toolwit::find_tool(&right.tools, "pile_oftheleft_add").is_err());

    let put = json!({"name": "buyer", "kind": "customer", "value": "\"c-1\""});
    left.call("put", put.clone()).await;
    assert_eq!(left.value("get", json!({"name": "buyer"})).await, "\"c-1\"");
    assert_eq!(right.value("get", json!({"name": "buyer"})).await, Value::Null);
    assert_eq!(right.value("names", json!({})).await, json!([]));

    for (side, own, other) in [(&mut left, "left", "right"), (&mut right, "right", "left")] {
        assert_eq!(
            side.value("read_context", json!({"key": "tenant"})).await,
            json!(format!("\"{own}\""))
        );
        // The key of this conversation is the value of the variable, and is redacted in its results.
        assert_eq!(
            side.value("environment", json!({})).await,
            json!([["KEY", "[redacted]"]])
        );
        let said = |name: &str| json!({"text": format!("the-key-of-{name}")});
        assert_eq!(side.value("say", said(own)).await, "[redacted]");
        assert_eq!(side.value("say", said(other)).await, format!("the-key-of-{other}"));
    }
}

// attack: K10
#[tokio::test]
async fn conversations_of_a_model_have_a_blackboard_each() {
    let host = Setup::new().grant("blackboard = \"read-write\"").start().await;
    let put = json!({"name": "buyer", "kind": "customer", "value": "\"c-1\""});
    let mut results = Vec::new();
    let found = |name: &str| ScriptedModel::new().call("search_tools", json!({"need": name}));
    for model in [
        found("put")
            .call("put", put)
            .call("search_tools", json!({"need": "names"}))
            .call("names", json!({})),
        found("names").call("names", json!({})),
    ] {
        let conversation = host.host.conversation().model(model.answer("done"));
        let outcome = conversation.run("go").await.unwrap();
        let last = outcome.history.iter().rev();
        let mut last = last.filter(|message| matches!(message.role, Role::Tool { .. }));
        results.push(last.next().unwrap().content().to_owned());
    }
    assert!(results[0].contains("buyer"), "{results:?}");
    assert_eq!(results[1], "[]");
}
