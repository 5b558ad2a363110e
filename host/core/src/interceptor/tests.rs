#![allow(clippy::unwrap_used)]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::{
    Arguments, Artifact, BackgroundTasks, Error, ErrorKind, NativeTool, Phase, Tool, ToolCaller, ToolContext,
    ToolError, ToolExt, ToolProvider, ToolResult, ToolSelector, ToolSet,
};

/// An interceptor that replaces `secret` in outcomes. The argument `rule` of a call selects the decision about the call.
#[derive(Default)]
struct RuleInterceptor {
    seen_calls: Mutex<Vec<(String, Arguments)>>,
}

#[async_trait]
impl Interceptor for Arc<RuleInterceptor> {
    fn name(&self) -> &str {
        "rules"
    }

    async fn before(&self, call: &InterceptedCall, _: &ToolContext) -> Result<CallDecision, Error> {
        self.seen_calls
            .lock()
            .unwrap()
            .push((call.tool.to_string(), call.arguments.clone()));
        match call.arguments.get("rule").and_then(Value::as_str) {
            Some("deny") => Ok(CallDecision::Deny {
                reason: "not today".to_owned(),
            }),
            Some("edit") => Ok(CallDecision::Edit(object(json!({"text": "edited"})))),
            Some("fail") => Err(failure()),
            _ => Ok(CallDecision::Continue),
        }
    }

    async fn after(
        &self,
        call: &InterceptedCall,
        outcome: CallOutcome,
        _: &ToolContext,
    ) -> Result<OutcomeReview, Error> {
        match call.arguments.get("rule").and_then(Value::as_str) {
            Some("fail after") => return Err(failure()),
            Some("withhold") => {
                return Ok(OutcomeReview::Withhold {
                    reason: "too long".to_owned(),
                });
            }
            _ => {}
        }
        let redact = |text: &str| text.replace("secret", "***");
        Ok(OutcomeReview::Replace(CallOutcome {
            for_llm: redact(&outcome.for_llm),
            for_user: outcome.for_user.as_deref().map(redact),
            value: outcome
                .value
                .map(|value| serde_json::from_str(&redact(&value.to_string())).unwrap()),
            artifacts: outcome
                .artifacts
                .iter()
                .map(|artifact| Artifact::new(&artifact.kind, redact(&artifact.value.to_string()).into()))
                .collect(),
            is_error: outcome.is_error,
        }))
    }
}

fn failure() -> Error {
    Error::new(ErrorKind::Trap, Phase::Execute, "unreachable executed, secret")
}

fn object(value: Value) -> Arguments {
    value.as_object().unwrap().clone()
}

/// Creates a tool that returns its argument `text` as text, value, user text and artifact, and counts its runs. If `text` is
/// `error`, the call fails.
fn echo(runs: &Arc<AtomicUsize>) -> NativeTool {
    let runs = runs.clone();
    NativeTool::new("echo", "Echoes.", json!({"type": "object"}), move |arguments, _| {
        runs.fetch_add(1, Ordering::Relaxed);
        async move {
            let text = arguments
                .get("text")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned();
            match text.as_str() {
                "error" => Err(ToolError::Model(
                    Error::new(ErrorKind::Tool, Phase::Execute, "no secret for you")
                        .with_suggestion("a secret hint")
                        .with_plugin("shop")
                        .with_details(json!({"a": "secret"})),
                )),
                _ => Ok(ToolResult::value(json!({ "text": text }))
                    .with_user_text(format!("to the user: {text}"))
                    .with_artifact(Artifact::new("note", text.into()))),
            }
        }
    })
    .unwrap()
}

fn guarded_echo(runs: &Arc<AtomicUsize>) -> (impl Tool + 'static, Arc<RuleInterceptor>) {
    let rules = Arc::new(RuleInterceptor::default());
    (echo(runs).with_decorator(Interception::new(rules.clone())), rules)
}

async fn call(tool: &impl Tool, arguments: Value) -> Result<ToolResult, Error> {
    let outcome = tool.call(object(arguments), &ToolContext::new()).await;
    outcome.map_err(|error| error.report().clone())
}

#[tokio::test]
async fn an_interceptor_edits_and_denies_calls() {
    let runs = Arc::default();
    let (tool, rules) = guarded_echo(&runs);
    assert_eq!(
        call(&tool, json!({"rule": "edit"})).await.unwrap().for_llm,
        r#"{"text":"edited"}"#
    );
    let error = call(&tool, json!({"rule": "deny"})).await.unwrap_err();
    assert_eq!((error.kind, error.phase), (ErrorKind::Denied, Phase::Validate));
    assert_eq!(error.message, "the interceptor `rules` denied the call: not today");
    assert_eq!(runs.load(Ordering::Relaxed), 1);
    assert_eq!(rules.seen_calls.lock().unwrap()[0].0, "native#echo");
}

// attack: Q1
#[tokio::test]
async fn an_interceptor_that_fails_denies_the_call_or_withholds_the_result() {
    let runs = Arc::default();
    let (tool, _) = guarded_echo(&runs);
    let error = call(&tool, json!({"rule": "fail"})).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Denied);
    assert!(
        error.message.contains("did not run") && !error.message.contains("secret"),
        "{error}"
    );
    assert_eq!(runs.load(Ordering::Relaxed), 0);
    for rule in ["fail after", "withhold"] {
        let error = call(&tool, json!({"rule": rule, "text": "secret"})).await.unwrap_err();
        assert_eq!((error.kind, error.phase), (ErrorKind::Denied, Phase::Execute));
        assert!(
            error.message.contains("may have taken effect") && !error.message.contains("secret"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn every_text_of_a_result_and_of_an_error_is_replaced() {
    let (tool, _) = guarded_echo(&Arc::default());
    let result = call(&tool, json!({"text": "a secret"})).await.unwrap();
    assert_eq!(result.for_llm, r#"{"text":"a ***"}"#);
    assert_eq!(result.value, Some(json!({"text": "a ***"})));
    assert_eq!(result.for_user.as_deref(), Some("to the user: a ***"));
    assert!(!result.artifacts[0].value.to_string().contains("secret"));
    let error = call(&tool, json!({"text": "error"})).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Tool);
    assert_eq!(error.message, "no *** for you\na *** hint");
    assert_eq!(
        error.plugin.as_deref(),
        Some("shop"),
        "the operator reads which plugin failed"
    );
    assert!(!serde_json::to_string(&error).unwrap().contains("secret"), "{error:?}");
}

// attack: Q2
#[tokio::test]
async fn nested_calls_and_late_results_are_intercepted() {
    let runs = Arc::default();
    let rules = Arc::new(RuleInterceptor::default());
    let mut tools = ToolSet::new();
    tools.decorate(&ToolSelector::all(), Arc::new(Interception::new(rules.clone())));
    tools.add(Arc::new(echo(&runs)));
    let late = NativeTool::new("late", "Later.", json!({"type": "object"}), |_, context| async move {
        let task = context.background_task()?;
        // A thread outside the tokio runtime can deliver the result too.
        std::thread::spawn(move || task.deliver(ToolResult::text("a late secret")));
        Ok(ToolResult::background("started with a secret"))
    });
    tools.add(Arc::new(late.unwrap()));
    let context = ToolContext::new();
    let denied = tools.call_tool("native#echo", object(json!({"rule": "deny"})), &context);
    assert_eq!(denied.await.unwrap_err().report().kind, ErrorKind::Denied);
    assert_eq!(runs.load(Ordering::Relaxed), 0);

    let mut background = BackgroundTasks::new(&CancellationToken::new());
    let task_context = background.context_for_call("1", &context);
    let started = tools
        .call_tool("native#late", Arguments::new(), &task_context)
        .await
        .unwrap();
    assert!(started.is_pending());
    assert_eq!(started.for_llm, "started with a ***");
    assert_eq!(background.next().await.unwrap().result.for_llm, "a late ***");
}

/// A customer without methods.
struct Customer(&'static str);

impl ToolProvider for Customer {
    fn prefix(&self) -> &str {
        "customer"
    }

    fn instance_id(&self) -> Option<String> {
        Some(self.0.to_owned())
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        Vec::new()
    }
}

// attack: Q8
#[tokio::test]
async fn an_entity_is_rejected_if_an_interceptor_removes_its_id() {
    let list = NativeTool::new("list", "Lists.", json!({"type": "object"}), |_, _| async {
        let mut result = ToolResult::value(json!([{"id": "c-1"}, {"id": "secret-2"}]));
        result.providers = vec![Arc::new(Customer("c-1")), Arc::new(Customer("secret-2"))];
        Ok(result)
    });
    let list = list
        .unwrap()
        .with_decorator(Interception::new(Arc::new(RuleInterceptor::default())));
    let result = call(&list, json!({})).await.unwrap();
    assert_eq!(result.for_llm, r#"[{"id":"c-1"},{"id":"***-2"}]"#);
    let ids: Vec<_> = result
        .providers
        .iter()
        .filter_map(|provider| provider.instance_id())
        .collect();
    assert_eq!(ids, ["c-1"]);
    assert_eq!(
        result.rejected[0].reason,
        "an interceptor removed its id from the result"
    );
}
