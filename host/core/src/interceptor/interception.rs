//! The guard that applies an interceptor to the calls of tools.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;

use super::decisions::{CallDecision, CallOutcome, InterceptedCall, Interceptor, OutcomeReview};
use crate::context::{LateReview, LateReviews, PriorDecisions};
use crate::text::parse_json;
use crate::{
    Arguments, Decorator, Error, ErrorKind, Phase, RejectedProvider, Tool, ToolContext, ToolError, ToolId, ToolResult,
    ToolStatus,
};

/// A decorator that passes the calls of tools and their outcomes to an [`Interceptor`].
///
/// The decorator is a [guard](Decorator::is_guard): if another tool replaces a guarded tool, the guard applies to the new tool.
/// It also applies to the methods of entities and to the tools of agents. If the interceptor fails, the call does not run, or its
/// outcome is withheld.
///
/// ```
/// use async_trait::async_trait;
/// use toolwit_core::{CallDecision, CallOutcome, Error, InterceptedCall, Interception, Interceptor, OutcomeReview, ToolContext};
///
/// struct NoPayments;
///
/// #[async_trait]
/// impl Interceptor for NoPayments {
///     fn name(&self) -> &str {
///         "no-payments"
///     }
///
///     async fn before(&self, call: &InterceptedCall, _: &ToolContext) -> Result<CallDecision, Error> {
///         if call.name.starts_with("pay") {
///             return Ok(CallDecision::Deny { reason: "payments are closed".to_owned() });
///         }
///         Ok(CallDecision::Continue)
///     }
///
///     async fn after(&self, _: &InterceptedCall, _: CallOutcome, _: &ToolContext) -> Result<OutcomeReview, Error> {
///         Ok(OutcomeReview::Keep)
///     }
/// }
///
/// let guard = Interception::new(NoPayments);
/// ```
#[derive(Clone)]
pub struct Interception(Arc<dyn Interceptor>);

impl Interception {
    /// Creates the guard that applies an interceptor.
    #[must_use]
    pub fn new(interceptor: impl Interceptor + 'static) -> Self {
        Self(Arc::new(interceptor))
    }

    /// Returns the decision of the interceptor about a call.
    async fn decide(&self, call: &InterceptedCall, context: &ToolContext) -> Result<CallDecision, ToolError> {
        let decision = tokio::select! {
            biased;
            () = context.cancel_token().cancelled() => {
                let message = "the call was cancelled before it was checked; it did not run";
                return Err(refusal(ErrorKind::Cancelled, Phase::Validate, message.to_owned(), call));
            }
            decision = self.0.before(call, context) => decision,
        };
        decision.map_err(|error| {
            let message = format!(
                "the call did not run, because the interceptor `{}` failed",
                self.0.name()
            );
            self.log_failure(&error, message, Phase::Validate, call)
        })
    }

    /// Returns the arguments with which a call may run, or an error if the call may not run.
    async fn allowed_arguments(&self, call: &InterceptedCall, context: &ToolContext) -> Result<Arguments, ToolError> {
        match self.decide(call, context).await? {
            CallDecision::Continue => Ok(call.arguments.clone()),
            CallDecision::Edit(arguments) => Ok(arguments),
            CallDecision::Deny { reason } => {
                let message = format!("the interceptor `{}` denied the call: {reason}", self.0.name());
                Err(refusal(ErrorKind::Denied, Phase::Validate, message, call))
            }
        }
    }

    /// Returns the address of the interceptor, by which [`PriorDecisions`] identifies it.
    fn address(&self) -> usize {
        Arc::as_ptr(&self.0).cast::<()>() as usize
    }

    /// Passes an outcome to the interceptor, and returns the outcome that the interceptor allows.
    async fn review(
        &self,
        call: &InterceptedCall,
        outcome: Result<ToolResult, ToolError>,
        context: &ToolContext,
    ) -> Result<ToolResult, ToolError> {
        let outcome_to_review = match &outcome {
            Ok(result) => outcome_of_result(result),
            Err(ToolError::Model(error)) => outcome_of_error(error),
            // An operator error ends the run, and no model reads it.
            Err(ToolError::Operator(_)) => return outcome,
        };
        let review = self.0.after(call, outcome_to_review, context).await;
        let withheld = |reason: String| {
            let message = format!("the result is withheld, and the call may have taken effect: {reason}");
            Err(refusal(ErrorKind::Denied, Phase::Execute, message, call))
        };
        match review {
            Ok(OutcomeReview::Keep) => outcome,
            Ok(OutcomeReview::Replace(replacement)) => replace_outcome(outcome, replacement),
            Ok(OutcomeReview::Withhold { reason }) => withheld(reason),
            Err(error) => {
                let message = format!(
                    "the result is withheld, and the call may have taken effect, because the interceptor `{}` failed",
                    self.0.name()
                );
                Err(self.log_failure(&error, message, Phase::Execute, call))
            }
        }
    }

    /// Logs the error of an interceptor for the operator, and returns the error that the model receives.
    fn log_failure(&self, error: &Error, message: String, phase: Phase, call: &InterceptedCall) -> ToolError {
        tracing::warn!(interceptor = self.0.name(), tool = %call.tool, %error, "an interceptor failed");
        refusal(ErrorKind::Denied, phase, message, call)
    }
}

#[async_trait]
impl Decorator for Interception {
    fn is_guard(&self) -> bool {
        true
    }

    async fn prepare(
        &self,
        tool: &dyn Tool,
        arguments: Arguments,
        context: &ToolContext,
    ) -> Result<Arguments, ToolError> {
        if is_host_tool(tool) {
            return Ok(arguments);
        }
        let call = intercepted_call(tool, arguments);
        let arguments = self.allowed_arguments(&call, context).await?;
        PriorDecisions::record(context, &call.tool, &arguments, self.address());
        Ok(arguments)
    }

    async fn call(
        &self,
        tool: &dyn Tool,
        arguments: Arguments,
        context: &ToolContext,
    ) -> Result<ToolResult, ToolError> {
        if is_host_tool(tool) {
            return tool.call(arguments, context).await;
        }
        let mut call = intercepted_call(tool, arguments);
        // The interceptor decides about each call once: in `prepare`, or here if `prepare` did not run for these arguments.
        if !PriorDecisions::take(context, &call.tool, &call.arguments, self.address()) {
            call.arguments = self.allowed_arguments(&call, context).await?;
        }
        let call = Arc::new(call);
        let late_reviewer = LateReviewer {
            interception: self.clone(),
            call: call.clone(),
        };
        let inner_context = LateReviews::add(context, Arc::new(late_reviewer));
        let outcome = tool.call(call.arguments.clone(), &inner_context).await;
        self.review(&call, outcome, context).await
    }
}

/// Returns whether a tool belongs to the host, such as `search_tools`. Such a tool is not intercepted. If it calls another
/// tool, the call of that tool is intercepted.
fn is_host_tool(tool: &dyn Tool) -> bool {
    let definition = tool.definition();
    definition.id == ToolId::host(definition.name())
}

fn intercepted_call(tool: &dyn Tool, arguments: Arguments) -> InterceptedCall {
    let definition = tool.definition();
    // The id of a method contains the entity that the method is bound to. The interceptor receives the id without the entity.
    InterceptedCall::new(definition.id.unbound(), definition.name(), arguments)
}

/// Passes the late result of a call to the interceptor. A result is late if a background task delivers it after the call has
/// returned.
struct LateReviewer {
    interception: Interception,
    call: Arc<InterceptedCall>,
}

#[async_trait]
impl LateReview for LateReviewer {
    async fn review(&self, result: ToolResult, context: &ToolContext) -> ToolResult {
        let reviewed = self.interception.review(&self.call, Ok(result), context).await;
        reviewed.unwrap_or_else(|error| ToolResult::error(error.report().message.clone()))
    }
}

fn refusal(kind: ErrorKind, phase: Phase, message: String, call: &InterceptedCall) -> ToolError {
    ToolError::Model(Error::new(kind, phase, message).with_tool(call.name.clone()))
}

fn outcome_of_result(result: &ToolResult) -> CallOutcome {
    CallOutcome {
        for_llm: result.content(),
        for_user: result.for_user.clone(),
        is_error: result.is_error(),
        value: result
            .value
            .clone()
            .filter(|value| !is_text_form(&result.for_llm, value)),
        artifacts: result.artifacts.clone(),
    }
}

fn outcome_of_error(error: &Error) -> CallOutcome {
    let mut for_llm = error.message.clone();
    if let Some(suggestion) = &error.suggestion {
        for_llm = format!("{for_llm}\n{suggestion}");
    }
    CallOutcome {
        for_llm,
        is_error: true,
        value: error.details.clone(),
        ..CallOutcome::default()
    }
}

/// Returns whether a text is the text form of a value, as the model reads it: its JSON, or a string without quotes.
fn is_text_form(text: &str, value: &Value) -> bool {
    match value {
        Value::String(string) => string == text,
        value => {
            let json = value.to_string();
            json == text
        }
    }
}

/// Replaces an outcome by the one that the interceptor returned.
///
/// An error keeps its kind, phase, tool, limit and denied accesses. The new text becomes its message, and the new value its
/// details. A result gets the new texts, value, artifacts and status. If the interceptor returns no value, and the old text was the
/// text form of the old value, the value is read from the new text. The Rust value of the result and the cause of its failure
/// are removed. An entity is rejected if its id is in the old text but not in the new one.
fn replace_outcome(outcome: Result<ToolResult, ToolError>, replacement: CallOutcome) -> Result<ToolResult, ToolError> {
    let mut result = match outcome {
        Ok(result) => result,
        Err(error) => {
            let report = error.report();
            let mut new_error = Error::new(report.kind, report.phase, replacement.for_llm);
            if let Some(tool) = &report.tool {
                new_error = new_error.with_tool(tool);
            }
            if let Some(limit) = report.limit.clone() {
                new_error = new_error.with_limit(limit);
            }
            if let Some(details) = replacement.value {
                new_error = new_error.with_details(details);
            }
            if let Some(plugin) = &report.plugin {
                new_error = new_error.with_plugin(plugin);
            }
            if let Some(agent) = &report.agent {
                new_error = new_error.with_agent(agent);
            }
            return Err(ToolError::Model(new_error.with_denied(report.denied.clone())));
        }
    };
    reject_hidden_entities(&mut result, &replacement.for_llm);
    result.value = match (replacement.value, &result.value) {
        (Some(value), _) => Some(value),
        (None, Some(value)) if is_text_form(&result.for_llm, value) => Some(match value {
            Value::String(_) => Value::String(replacement.for_llm.clone()),
            _ => parse_json(&replacement.for_llm).unwrap_or_else(|_| Value::String(replacement.for_llm.clone())),
        }),
        (None, _) => None,
    };
    result.for_llm = replacement.for_llm;
    result.for_user = replacement.for_user;
    result.artifacts = replacement.artifacts;
    if replacement.is_error != result.is_error() && !result.is_pending() {
        result.status = if replacement.is_error {
            ToolStatus::Error
        } else {
            ToolStatus::Success
        };
    }
    result.output = None;
    result.source = None;
    Ok(result)
}

/// Rejects each entity whose id is in the old text of the result but not in the new text. The names of its tools would contain
/// the id.
fn reject_hidden_entities(result: &mut ToolResult, new_text: &str) {
    // Each provider has the methods of one entity. An entity without an id cannot be rejected here.
    for provider in std::mem::take(&mut result.providers) {
        let is_hidden = |id: &String| is_id_removed(id, &result.for_llm, new_text);
        if provider.instance_id().as_ref().is_some_and(is_hidden) {
            let reason = "an interceptor removed its id from the result";
            result.rejected.push(RejectedProvider::new(provider.prefix(), reason));
        } else {
            result.providers.push(provider);
        }
    }
}

/// Returns whether the old text contains an id and the new one does not. An id that is a complete word of the old text must be
/// a complete word of the new one. For example, the id `7` is removed if a new text contains only `17`.
fn is_id_removed(id: &str, old_text: &str, new_text: &str) -> bool {
    let is_word_of = |text: &str| {
        text.match_indices(id).any(|(start, _)| {
            let before = text[..start].chars().next_back();
            let after = text[start + id.len()..].chars().next();
            !before.into_iter().chain(after).any(char::is_alphanumeric)
        })
    };
    if is_word_of(old_text) {
        !is_word_of(new_text)
    } else {
        old_text.contains(id) && !new_text.contains(id)
    }
}

#[cfg(test)]
mod tests {
    use super::is_id_removed;

    // attack: Q8
    #[test]
    fn a_removed_id_is_found_even_if_a_longer_word_contains_it() {
        assert!(is_id_removed(
            "7",
            r#"{"id":"7","count":17}"#,
            r#"{"id":"*","count":17}"#
        ));
        assert!(!is_id_removed(
            "7",
            r#"{"id":"7","count":17}"#,
            r#"{"id":"7","count":0}"#
        ));
        assert!(
            is_id_removed("7", "item17", "item"),
            "an id can be a part of a word in the old text"
        );
        assert!(!is_id_removed("7", "item17", "item17"));
        assert!(!is_id_removed("7", "nothing", "else"));
    }
}
