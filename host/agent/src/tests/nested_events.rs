//! Events of nested calls.

use super::*;
use toolwit_core::{EffectClass, ErrorKind, ToolDefinition, ToolId};

/// A tool whose arguments map tool ids to arguments. It calls these tools in order and returns the result of the last call.
pub(super) struct Caller(ToolDefinition);

impl Caller {
    pub(super) fn named(name: &str) -> Arc<dyn Tool> {
        let schema = json!({"type": "object"});
        Arc::new(Self(ToolDefinition::new(
            ToolId::native(name),
            name,
            "Calls other tools.",
            schema,
        )))
    }

    /// Returns a caller that declares that it is idempotent.
    pub(super) fn idempotent(name: &str) -> Arc<dyn Tool> {
        let schema = json!({"type": "object"});
        let definition = ToolDefinition::new(ToolId::native(name), name, "Calls other tools.", schema);
        Arc::new(Self(definition.with_effect(EffectClass::Idempotent)))
    }
}

#[async_trait]
impl Tool for Caller {
    fn definition(&self) -> &ToolDefinition {
        &self.0
    }

    async fn call(&self, arguments: Arguments, context: &ToolContext) -> Result<ToolResult, ToolError> {
        let tools = context.tools().expect("a tool that calls tools receives them");
        let mut last = Ok(ToolResult::text("nothing to call"));
        for (id, arguments) in arguments {
            let arguments = arguments.as_object().cloned().unwrap_or_default();
            last = tools.call_tool(&id, arguments, context).await;
        }
        last
    }

    fn calls_tools(&self) -> bool {
        true
    }
}

/// Returns the events of nested calls without their durations.
fn nested_call_events(model: &TestModel) -> Vec<Value> {
    let events = model
        .events()
        .into_iter()
        .map(|event| serde_json::to_value(event).unwrap());
    events
        .filter(|event| event["event"].as_str().unwrap().starts_with("nested_call"))
        .map(|mut event| {
            event.as_object_mut().unwrap().remove("wall_ms");
            event
        })
        .collect()
}

#[tokio::test]
async fn nested_calls_emit_events_in_order_without_their_contents() {
    let failing = tool("fail", |_, _| Ok(ToolResult::error("a secret reason")));
    let arguments = json!({
        "native#inner": {"native#look": {"token": "hunter2"}},
        "native#fail": {},
        "native#nowhere": {},
    });
    let (builder, model) = TestModel::playing([call([("outer", arguments)]), reply("ok")]);
    let tools = [Caller::named("outer"), Caller::named("inner"), echo("look"), failing];
    builder.tools(tools).run("go").await.unwrap();
    let ids = |parent: &str, number: u32| (format!("{parent}/{number}"), parent.to_owned());
    let started = |parent: &str, number: u32, caller: &str, tool: &str| {
        let (event, (id, parent)) = ("nested_call_started", ids(parent, number));
        json!({"event": event, "id": id, "parent": parent, "number": number, "caller": caller, "tool": tool})
    };
    let finished = |parent: &str, number: u32, tool: &str, kind: Value| {
        let (is_error, (id, parent)) = (!kind.is_null(), ids(parent, number));
        json!({"event": "nested_call_finished", "id": id, "parent": parent, "number": number, "tool": tool,
            "is_error": is_error, "kind": kind})
    };
    assert_eq!(
        nested_call_events(&model),
        [
            started("1-0", 1, "native#outer", "native#inner"),
            started("1-0/1", 1, "native#inner", "native#look"),
            finished("1-0/1", 1, "native#look", Value::Null),
            finished("1-0", 1, "native#inner", Value::Null),
            started("1-0", 2, "native#outer", "native#fail"),
            finished("1-0", 2, "native#fail", json!("tool")),
            started("1-0", 3, "native#outer", "native#nowhere"),
            finished("1-0", 3, "native#nowhere", json!("unknown-tool")),
        ]
    );
    let text = serde_json::to_string(&nested_call_events(&model)).unwrap();
    assert!(!text.contains("hunter2") && !text.contains("secret"), "{text}");
}

#[tokio::test]
async fn a_nested_call_that_is_cancelled_emits_its_end() {
    let wait = NativeTool::new("wait", "Waits.", json!({"type": "object"}), |_, _| async {
        std::future::pending::<Result<ToolResult, ToolError>>().await
    });
    let (builder, model) = TestModel::playing([call([("outer", json!({"native#wait": {}}))])]);
    let cancel = tokio_util::sync::CancellationToken::new();
    let (stop, events) = (cancel.clone(), model.events.clone());
    let builder = builder.observer(move |event: &Event, _: &Origin| {
        if matches!(event, Event::NestedCallStarted(_)) {
            stop.cancel();
        }
    });
    let mut conversation = builder
        .tools([Caller::named("outer"), Arc::new(wait.unwrap())])
        .build()
        .unwrap();
    conversation.turn("go").cancel(cancel).run().await.unwrap_err();
    let events = events.lock().unwrap();
    let is_cancelled = events
        .iter()
        .any(|event| matches!(event, Event::NestedCallFinished(call) if call.kind == Some(ErrorKind::Cancelled)));
    assert!(is_cancelled, "{events:?}");
}

#[tokio::test]
async fn events_of_nested_calls_do_not_change_a_resumed_conversation() {
    let steps = || [call([("outer", json!({"native#look": {}}))]), reply("ok")];
    let (builder, model) = TestModel::playing(steps());
    let tools = || [Caller::named("outer"), echo("look")];
    let outcome = builder.tools(tools()).run("go").await.unwrap();
    assert_eq!(nested_call_events(&model).len(), 2);
    let lines = model
        .events()
        .iter()
        .map(|event| serde_json::to_string(event).unwrap())
        .collect::<Vec<_>>();
    let events = lines
        .iter()
        .map(|line| serde_json::from_str::<Event>(line).unwrap())
        .collect::<Vec<_>>();
    assert_eq!(events, model.events(), "the events are unchanged after serialization");
    let (builder, _) = TestModel::playing([reply("again")]);
    let resumed = builder
        .tools(tools())
        .history(outcome.history)
        .resume(events)
        .build()
        .unwrap();
    let names: Vec<_> = resumed.tools().iter().map(|tool| tool.name.to_string()).collect();
    assert_eq!(names, ["outer", "look"]);
}
