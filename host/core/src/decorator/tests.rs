#![allow(clippy::unwrap_used)]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;

use crate::{
    Arguments, Artifact, ArtifactCapture, Blackboard, ErrorKind, ListSink, MemoryBlackboard, NativeTool, Parameter,
    Signal, Tool, ToolContext, ToolError, ToolExt, ToolId, ToolResult,
};

/// Returns a tool whose calls return the result of `respond`.
fn tool(name: &str, respond: impl Fn(&ToolContext) -> ToolResult + Send + Sync + 'static) -> NativeTool {
    let respond = Arc::new(respond);
    let parameters = [Parameter::integer("x", "Number").optional()];
    NativeTool::with_parameters(name, "Original description.", parameters, move |_, context| {
        let respond = respond.clone();
        async move { Ok(respond(&context)) }
    })
    .unwrap()
}

async fn call(tool: &dyn Tool, context: &ToolContext) -> ToolResult {
    tool.call(Arguments::new(), context).await.unwrap()
}

// accept: 78, accept: 148
#[tokio::test]
async fn description_and_note_change_nothing_else() {
    let original: Arc<dyn Tool> = Arc::new(tool("calculator", |_| ToolResult::text("42")));
    let tool_with_note = original.clone().with_note("Use this for large numbers.");
    assert_eq!(
        tool_with_note.definition().description,
        "Original description. Use this for large numbers."
    );
    let tool_with_both = original.clone().with_description("Special.").with_note("Very.");
    assert_eq!(tool_with_both.definition().description, "Special. Very.");
    assert_eq!(tool_with_both.definition().id, original.definition().id);
    assert_eq!(tool_with_both.definition().names, original.definition().names);
    assert_eq!(
        tool_with_both.definition().input_schema,
        original.definition().input_schema
    );
    assert_eq!(call(&tool_with_both, &ToolContext::new()).await.for_llm, "42");
    assert_eq!(original.definition().description, "Original description.");
}

// accept: 78
#[test]
fn renamed_tool_has_another_native_id() {
    let renamed = tool("add", |_| ToolResult::text("")).with_name("calc_add");
    assert_eq!(renamed.definition().name(), "calc_add");
    assert_ne!(renamed.definition().id, ToolId::native("add"));
    assert!(renamed.definition().id.is_native());
}

// accept: 27, accept: 80, accept: 87
#[tokio::test]
async fn decorators_pass_the_context_and_expose_the_inner_tool() {
    let inner: Arc<dyn Tool> = Arc::new(tool("who", |context| {
        ToolResult::text(context.text("tenant").unwrap_or("no tenant"))
    }));
    let outer: Arc<dyn Tool> = Arc::new(
        inner
            .clone()
            .with_note("Note.")
            .publish_artifacts()
            .with_timeout(Duration::from_secs(1))
            .one_shot_per_loop("Continue.")
            .return_direct()
            .replan_when(|_, _| None),
    );
    let layers: Vec<_> = std::iter::successors(Some(&outer), |tool| tool.inner_tool()).collect();
    assert_eq!(layers.len(), 7, "six decorated tools and the innermost tool");
    let context = ToolContext::new().with("tenant", "acme");
    let result = call(&*outer, &context).await;
    assert_eq!((result.for_llm.as_str(), result.is_final()), ("acme", true));
    assert_eq!(call(&*outer, &ToolContext::new()).await.for_llm, "no tenant");
}

// accept: 147
#[tokio::test]
async fn replan_when_adds_a_signal_to_results_but_not_to_errors() {
    let reason_to_replan =
        |result: &ToolResult, _: &ToolContext| (result.for_llm == "none").then(|| "nothing was found".to_owned());
    let finding_tool = tool("find", |_| ToolResult::text("two")).replan_when(reason_to_replan);
    assert_eq!(call(&finding_tool, &ToolContext::new()).await.signal, None);
    let unsuccessful_tool = tool("find", |_| ToolResult::text("none")).replan_when(reason_to_replan);
    let result = call(&unsuccessful_tool, &ToolContext::new()).await;
    assert_eq!(result.signal, Some(Signal::replan("nothing was found")));
    assert_eq!(result.for_llm, "none", "the result is unchanged");
    let failing_tool = tool("find", |_| ToolResult::error("none")).replan_when(reason_to_replan);
    assert_eq!(call(&failing_tool, &ToolContext::new()).await.signal, None);
}

#[tokio::test(start_paused = true)]
async fn call_over_its_timeout_is_cancelled_and_dropped() {
    let received_token = Arc::new(Mutex::new(None));
    let token_slot = received_token.clone();
    let slow = NativeTool::new("slow", "", json!({"type": "object"}), move |_, context| {
        *token_slot.lock().unwrap() = Some(context.cancel_token().clone());
        std::future::pending::<Result<ToolResult, ToolError>>()
    });
    let context = ToolContext::new();
    let slow = slow.unwrap().with_timeout(Duration::from_secs(5));
    let error = slow.call(Arguments::new(), &context).await.unwrap_err();
    assert_eq!(error.report().kind, ErrorKind::Timeout);
    assert!(error.to_string().contains("may have taken effect"));
    assert!(received_token.lock().unwrap().as_ref().unwrap().is_cancelled());
    assert!(!context.cancel_token().is_cancelled(), "only this call is cancelled");
    let quick = tool("quick", |_| ToolResult::text("ok")).with_timeout(Duration::from_secs(5));
    assert_eq!(call(&quick, &context).await.for_llm, "ok");
}

// accept: 80
#[tokio::test]
async fn published_artifacts_are_on_the_blackboard_and_in_the_result() {
    let find = tool("find", |_| {
        ToolResult::text("found").with_artifact(Artifact::new("Page", json!({"score": 1})))
    });
    let board: Arc<dyn Blackboard> = Arc::new(MemoryBlackboard::new());
    let context = ToolContext::new().with_blackboard(board.clone());
    let result = call(&find.publish_artifacts(), &context).await;
    assert_eq!(result.artifacts.len(), 1);
    assert_eq!(board.count("Page"), 1);
}

// accept: 80
#[tokio::test]
async fn error_of_a_sink_is_appended_to_the_result() {
    let find = tool("find", |_| {
        ToolResult::text("found").with_artifact(Artifact::new("Page", json!(1)))
    });
    let result = call(&find.publish_artifacts(), &ToolContext::new()).await;
    assert!(!result.is_error());
    assert!(
        result.for_llm.starts_with("found\n[an artifact was not stored: "),
        "{}",
        result.for_llm
    );
    let list = ListSink::new();
    let tool_without_artifacts =
        tool("quiet", |_| ToolResult::text("nothing")).capture_artifacts(ArtifactCapture::to(list.clone()));
    assert_eq!(
        call(&tool_without_artifacts, &ToolContext::new()).await.for_llm,
        "nothing"
    );
    assert!(list.artifacts().is_empty());
}
