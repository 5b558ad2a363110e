//! Calls of the functions of an exported `toolwit:plugin/interceptor`.

use std::sync::Arc;

use serde_json::{Value, json};
use wasmtime::component::Val;

use super::function::invalid_arguments;
use super::guarded_call::{GuardedCall, GuestWork, RunningCall};
use super::instance::Instance;
use super::plugin::Plugin;
use super::scope::Scope;
use crate::grants::authority::Authority;
use crate::link::host::host_api::{CallStack, FuelMeter};
use crate::values::decode::{NoHandles, decode_arguments};
use crate::values::encode::encode;
use crate::values::types::Function;
use toolwit_core::limits::{ByteCount, CallLimits, INTERCEPTOR_WALL_MAX, LimitOverrides};
use toolwit_core::text::{parse_json, printable};
use toolwit_core::{
    Arguments, Artifact, CallDecision, CallOutcome, InterceptedCall, OutcomeReview, ToolContext, ToolResult,
    parse_arguments,
};
use toolwit_core::{Error, ErrorKind, ExceededLimit, Phase};

/// The maximum length of the reason for a decision, in characters. The reason is sent to a model.
const REASON_CHARS_MAX: usize = 2_000;

/// A function of `toolwit:plugin/interceptor`.
#[derive(Clone, Copy)]
pub(crate) enum InterceptorFunction {
    /// Decides about a call before it runs.
    Before,
    /// Reviews the outcome of a call.
    After,
}

/// Calls a function of an interceptor in a fresh instance. Returns the decision about the call or about its outcome, as JSON.
///
/// The interceptor works for the operator, not for the caller. Even inside a nested call, the interceptor has its own rights and
/// limits. It cannot call tools.
///
/// # Errors
/// The errors of a call, and [`ErrorKind::Unsupported`] for a plugin that is not an interceptor.
pub(crate) async fn call_interceptor(
    plugin: &Arc<Plugin>,
    function: InterceptorFunction,
    arguments: Arguments,
    scope: &Scope,
    context: &ToolContext,
) -> Result<Value, Error> {
    let inspection = plugin.inspection();
    let interceptor = inspection.shape.interceptor.ok_or_else(|| {
        Error::new(ErrorKind::Unsupported, Phase::Execute, "it is not an interceptor").with_plugin(plugin.name())
    })?;
    let function_index = match function {
        InterceptorFunction::Before => interceptor.before,
        InterceptorFunction::After => interceptor.after,
    };
    let mut work = InterceptorWork {
        function: &inspection.shape.functions[function_index],
        function_index,
        arguments,
        params: Vec::new(),
        decision: Value::Null,
    };
    let context = interceptor_context(context);
    let call = GuardedCall {
        plugin,
        conversation: scope.policy().conversation(),
        context: &context,
        deadline: None,
        is_long_running: false,
    };
    // Boxed, because this future would enlarge the future of every call.
    Box::pin(call.run(&mut work))
        .await
        .map_err(|error| error.with_plugin(plugin.name()))?;
    Ok(work.decision)
}

/// Returns the context for the call of an interceptor. The context has the time limit of interceptors. It does not have tools, a
/// person who could be asked, background tasks, or the rights and remaining fuel of the surrounding calls.
fn interceptor_context(context: &ToolContext) -> ToolContext {
    let limits = LimitOverrides::default().with_wall_max(INTERCEPTOR_WALL_MAX);
    context
        .clone()
        .without_tools()
        .without_respondent()
        .without_background_tasks()
        .without_extension::<CallStack>()
        .without_extension::<FuelMeter>()
        .with_extension(limits)
}

/// The work of a call of an interceptor.
struct InterceptorWork<'a> {
    function: &'a Function,
    /// The index of the function in the shape.
    function_index: usize,
    arguments: Arguments,
    /// The decoded arguments. Empty before the arguments are checked.
    params: Vec<Val>,
    /// The decision or the review that the guest returned. `null` until the guest has returned.
    decision: Value,
}

impl GuestWork for InterceptorWork<'_> {
    fn check(&mut self, _call: &GuardedCall<'_>) -> Result<(), Error> {
        self.params =
            decode_arguments(&self.function.params, &self.arguments, &mut NoHandles).map_err(invalid_arguments)?;
        Ok(())
    }

    fn check_authority(&self, authority: &Authority) -> Result<(), Error> {
        // An interceptor without some of its rights could make another decision than the operator expects.
        authority.require_full_rights()
    }

    async fn run(&mut self, instance: &mut Instance, call: &RunningCall<'_>) -> Result<ToolResult, Error> {
        let value = instance
            .call(call.component, self.function_index, &self.params, &call.clock)
            .await?;
        let typed_value = self.function.result.as_ref().zip(value);
        let decision = typed_value.and_then(|(ty, value)| encode(ty, value, &mut std::iter::empty()).ok());
        self.decision = decision.ok_or_else(|| {
            Error::new(
                ErrorKind::Internal,
                Phase::Execute,
                "the decision of the interceptor could not be read",
            )
        })?;
        require_decision_within(&self.decision, call.clock.limits)?;
        // The texts of the decision become part of the intercepted call. They must not contain secrets of the interceptor.
        call.authority.redactor.redact_value(&mut self.decision);
        Ok(ToolResult::default())
    }
}

/// Refuses a decision that is too large. A decision can contain the outcome twice, as text and as a value, so the limit is twice
/// the limit of a result.
///
/// # Errors
/// [`ErrorKind::ResultBytes`].
fn require_decision_within(decision: &Value, limits: &CallLimits) -> Result<(), Error> {
    let bytes = text_bytes(decision);
    let bytes_max = limits.result_bytes_max.saturating_mul(2);
    if bytes <= bytes_max {
        return Ok(());
    }
    let message = format!(
        "the decision of the interceptor has {} and may have {}, twice the limit of a result",
        ByteCount(bytes),
        ByteCount(bytes_max)
    );
    Err(Error::new(ErrorKind::ResultBytes, Phase::Execute, message)
        .with_suggestion("return a smaller decision")
        .with_limit(ExceededLimit::new("result_bytes_max", bytes_max, bytes)))
}

/// Returns the total length of the strings in a value, in bytes. Field names do not count.
fn text_bytes(value: &Value) -> u64 {
    match value {
        Value::String(text) => text.len() as u64,
        Value::Array(items) => items.iter().map(text_bytes).sum(),
        Value::Object(fields) => fields.values().map(text_bytes).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

/// Returns the argument `call` of the functions `before` and `after`.
pub(crate) fn call_argument(call: &InterceptedCall) -> Value {
    json!({
        "tool": call.tool.as_str(),
        "name": call.name,
        "arguments": Value::Object(call.arguments.clone()).to_string(),
    })
}

/// Returns the argument `outcome` of the function `after`.
pub(crate) fn outcome_argument(outcome: &CallOutcome) -> Value {
    let artifact = |artifact: &Artifact| json!({"kind": artifact.kind, "value": artifact.value.to_string()});
    json!({
        "for_llm": outcome.for_llm,
        "for_user": outcome.for_user,
        "is_error": outcome.is_error,
        "value": outcome.value.as_ref().map(ToString::to_string),
        "artifacts": outcome.artifacts.iter().map(artifact).collect::<Vec<_>>(),
    })
}

/// Converts the JSON of a decision that `before` returned.
///
/// # Errors
/// [`ErrorKind::Tool`] for edited arguments that are not a valid JSON object, and for an unknown decision.
pub(crate) fn read_decision(decision: &Value) -> Result<CallDecision, Error> {
    if decision.as_str() == Some("continue") {
        return Ok(CallDecision::Continue);
    }
    if let Some(arguments) = decision.get("edit").and_then(Value::as_str) {
        let parsed = parse_arguments(arguments)
            .map_err(|error| unusable_decision(&format!("its arguments are not a JSON object: {error}")))?;
        return Ok(CallDecision::Edit(parsed.arguments));
    }
    match decision.get("deny").and_then(Value::as_str) {
        Some(reason) => Ok(CallDecision::Deny {
            reason: reason_for_model(reason),
        }),
        None => Err(unusable_decision("it is unknown")),
    }
}

/// Converts the JSON of a review that `after` returned.
///
/// # Errors
/// [`ErrorKind::Tool`] for a replacement with a value that is not JSON, and for an unknown review.
pub(crate) fn read_review(review: &Value) -> Result<OutcomeReview, Error> {
    if review.as_str() == Some("keep") {
        return Ok(OutcomeReview::Keep);
    }
    if let Some(outcome) = review.get("replace") {
        return read_outcome(outcome).map(OutcomeReview::Replace);
    }
    match review.get("withhold").and_then(Value::as_str) {
        Some(reason) => Ok(OutcomeReview::Withhold {
            reason: reason_for_model(reason),
        }),
        None => Err(unusable_decision("it is unknown")),
    }
}

fn read_outcome(outcome: &Value) -> Result<CallOutcome, Error> {
    let text = |field: &str| outcome[field].as_str().map(str::to_owned);
    let json =
        |text: &str| parse_json(text).map_err(|error| unusable_decision(&format!("a value is not JSON: {error}")));
    let artifacts = outcome["artifacts"].as_array().into_iter().flatten();
    let artifacts = artifacts.map(|artifact| {
        let field = |name: &str| artifact[name].as_str().unwrap_or_default();
        Ok(Artifact::new(field("kind"), json(field("value"))?))
    });
    Ok(CallOutcome {
        for_llm: text("for_llm").unwrap_or_default(),
        for_user: text("for_user").map(|text| printable(&text)),
        is_error: outcome["is_error"].as_bool().unwrap_or(true),
        value: text("value").as_deref().map(json).transpose()?,
        artifacts: artifacts.collect::<Result<_, Error>>()?,
    })
}

fn unusable_decision(reason: &str) -> Error {
    let message = format!("the decision of the interceptor cannot be used: {reason}");
    Error::new(ErrorKind::Tool, Phase::Execute, message)
}

/// Returns the reason for a decision as printable text of limited length. Replaces an empty reason by a fixed text.
fn reason_for_model(reason: &str) -> String {
    let reason: String = printable(reason).chars().take(REASON_CHARS_MAX).collect();
    if reason.trim().is_empty() {
        return "it gave no reason".to_owned();
    }
    reason
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_may_have_twice_the_limit_of_a_result_and_the_error_contains_the_limit() {
        let limits = CallLimits {
            result_bytes_max: 10,
            ..CallLimits::default()
        };
        assert!(require_decision_within(&json!({"edit": "x".repeat(20)}), &limits).is_ok());
        let error = require_decision_within(&json!({"edit": "x".repeat(21)}), &limits).unwrap_err();
        assert_eq!(error.kind, ErrorKind::ResultBytes);
        assert!(error.message.contains("has 21 bytes and may have 20 bytes"), "{error}");
        let limit = error.limit.as_ref().unwrap();
        assert_eq!((limit.limit, limit.max, limit.used), ("result_bytes_max", 20, 21));
    }

    #[test]
    fn decisions_and_reviews_are_read_and_unusable_ones_are_errors() {
        assert_eq!(read_decision(&json!("continue")).unwrap(), CallDecision::Continue);
        let edited = read_decision(&json!({"edit": "{\"a\": 1}"})).unwrap();
        assert_eq!(edited, CallDecision::Edit(json!({"a": 1}).as_object().unwrap().clone()));
        let denied = read_decision(&json!({"deny": " "})).unwrap();
        assert_eq!(
            denied,
            CallDecision::Deny {
                reason: "it gave no reason".to_owned()
            }
        );
        for unusable in [json!({"edit": "[1]"}), json!({"edit": "{"}), json!("keep"), json!(null)] {
            assert_eq!(
                read_decision(&unusable).unwrap_err().kind,
                ErrorKind::Tool,
                "{unusable}"
            );
        }
        assert_eq!(read_review(&json!("keep")).unwrap(), OutcomeReview::Keep);
        let outcome = CallOutcome {
            for_llm: "text".to_owned(),
            for_user: Some("for the user".to_owned()),
            is_error: true,
            value: Some(json!([1])),
            artifacts: vec![Artifact::new("k", json!({"a": "b"}))],
        };
        let replaced = read_review(&json!({"replace": outcome_argument(&outcome)})).unwrap();
        assert_eq!(replaced, OutcomeReview::Replace(outcome));
        let invalid_value = json!({"replace": {"for_llm": "x", "is_error": false, "value": "{", "artifacts": []}});
        for unusable in [invalid_value, json!({"hold": "x"}), json!("continue")] {
            assert_eq!(read_review(&unusable).unwrap_err().kind, ErrorKind::Tool, "{unusable}");
        }
    }
}
