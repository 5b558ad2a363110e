//! Follow-up calls: a result can request one call of a function of its plugin.

use std::sync::Arc;

use async_trait::async_trait;

use super::tool::PluginTool;
use toolwit_core::{
    Arguments, CallAccess, FollowUpCall, Guards, Tool, ToolContext, ToolDefinition, ToolError, ToolResult, ToolStatus,
    parse_arguments,
};
use toolwit_core::{Error, ErrorKind, Phase};

/// Runs the follow-up call of a result: in the background if the conversation can receive late results, inline otherwise.
///
/// A follow-up call is a separate call: it may need its own approval, and the guards of the conversation apply to it.
pub(super) async fn run_follow_up(
    tool: &PluginTool,
    mut result: ToolResult,
    context: &ToolContext,
) -> Result<ToolResult, Error> {
    let Some(follow_up) = result.follow_up.take() else {
        return Ok(result);
    };
    let (follow_up_tool, arguments) = match resolve_follow_up(tool, &follow_up, context) {
        Ok(tool_and_arguments) => tool_and_arguments,
        Err(error) => return Ok(into_failure(result, error)),
    };
    if let Ok(background_task) = context.background_task() {
        // The follow-up call cannot call other tools: it runs later, and the conversation may lock or remove these tools before.
        let context = background_task.context().clone().without_tools();
        background_task.spawn(async move { context.call_own_tool(&*follow_up_tool, arguments).await? });
        result.status = ToolStatus::Pending;
        return Ok(result);
    }
    let returned = match context.call_own_tool(&*follow_up_tool, arguments).await {
        Ok(returned) => returned,
        // The follow-up call is not permitted.
        Err(error) => return Ok(with_failure_note(result, &error.into())),
    };
    match returned.map_err(Error::from) {
        Ok(second) => Ok(join_results(result, second)),
        // An interceptor denied the follow-up call before it ran, so the result of the first call remains a success.
        Err(error) if error.kind == ErrorKind::Denied && error.phase == Phase::Validate => {
            Ok(with_failure_note(result, &error))
        }
        // The run ends when it is cancelled, so a model would not read the result of the first call.
        Err(error) if error.kind == ErrorKind::Cancelled => Err(error),
        Err(error) => Ok(into_failure(result, error)),
    }
}

/// Returns the tool of a follow-up call and the parsed arguments. The tool is decorated with the guards of the conversation.
fn resolve_follow_up(
    tool: &PluginTool,
    follow_up: &FollowUpCall,
    context: &ToolContext,
) -> Result<(Arc<dyn Tool>, Arguments), Error> {
    let sibling = tool.sibling(&follow_up.tool).ok_or_else(|| {
        let reason = "the plugin has no such function for this conversation";
        invalid_follow_up(&follow_up.tool, reason)
    })?;
    let follow_up_tool = Guards::of(context).apply_to(Arc::new(FollowUpTool(sibling)));
    let arguments = parse_arguments(&follow_up.arguments)
        .map_err(|error| invalid_follow_up(&follow_up.tool, &error.to_string()))?
        .arguments;
    Ok((follow_up_tool, arguments))
}

/// Joins the results of the first call and of its follow-up call. The value and the status are those of the follow-up call.
fn join_results(first: ToolResult, mut second: ToolResult) -> ToolResult {
    second.for_llm = format!("{}\n{}", first.for_llm, second.for_llm);
    second.for_user = second.for_user.or(first.for_user);
    second.artifacts.splice(0..0, first.artifacts);
    second.denied.splice(0..0, first.denied);
    second.accesses.splice(0..0, first.accesses);
    second.usage = match (first.usage, second.usage) {
        (Some(first), Some(second)) => Some(first.followed_by(second)),
        (first, second) => first.or(second),
    };
    second.log = match (first.log, second.log) {
        (Some(first), Some(second)) => Some(format!("{first}{second}").into()),
        (first, second) => first.or(second),
    };
    second
}

/// Adds the reason why the follow-up call did not succeed to the result of the first call. The result of the first call must not
/// be lost, because the first call may have changed something.
fn with_failure_note(mut result: ToolResult, error: &Error) -> ToolResult {
    let note = format!("\n[the work does not continue: {}]", error.message);
    result.for_llm.push_str(&note);
    result
}

/// Marks the result of the first call as failed, because the follow-up call failed. The result keeps the output of the first
/// call, and contains the log and the denied accesses of both calls.
fn into_failure(result: ToolResult, error: Error) -> ToolResult {
    let mut result = with_failure_note(result, &error);
    result.status = ToolStatus::Error;
    result.denied.extend(error.denied.iter().cloned());
    if let Some(log) = &error.log {
        let first = result.log.take();
        result.log = Some(first.map_or_else(|| log.clone(), |first| format!("{first}{log}").into()));
    }
    result.source = Some(Arc::new(error));
    result
}

/// The tool of a follow-up call. If its result requests another follow-up call, the call fails, to prevent endless chains.
struct FollowUpTool(PluginTool);

#[async_trait]
impl Tool for FollowUpTool {
    fn definition(&self) -> &ToolDefinition {
        self.0.definition()
    }

    async fn call(&self, arguments: Arguments, context: &ToolContext) -> Result<ToolResult, ToolError> {
        let outcome = self
            .0
            .run(arguments, context)
            .await
            .and_then(|result| match result.follow_up {
                None => Ok(result),
                Some(_) => Err(invalid_follow_up(
                    self.definition().id.as_str(),
                    "a follow-up call may not request another follow-up call",
                )),
            });
        outcome.map_err(|error| self.0.tool_error(error))
    }

    async fn access(&self, arguments: &Arguments, context: &ToolContext) -> CallAccess {
        self.0.access(arguments, context).await
    }

    async fn redacted(&self, arguments: Arguments, context: &ToolContext) -> Arguments {
        self.0.redacted(arguments, context).await
    }
}

/// Creates the error for an invalid follow-up call. Cuts the name of the tool, because it comes from the guest.
fn invalid_follow_up(tool: &str, reason: &str) -> Error {
    let tool: String = tool.chars().take(200).collect();
    let message = format!("the follow-up call of `{tool}` is not possible: {reason}");
    Error::new(ErrorKind::Tool, Phase::Execute, message)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use toolwit_core::{CallUsage, DeniedAccess};

    fn denied(access: &str) -> DeniedAccess {
        DeniedAccess {
            plugin: "courier".to_owned(),
            access: access.to_owned(),
            reason: "no grant names the plugin".to_owned(),
            suggestion: "grant it".to_owned(),
            missing_grant: None,
        }
    }

    fn call_result(name: &str, fuel: u64, memory_bytes: u64) -> ToolResult {
        let mut usage = CallUsage::default();
        (usage.fuel, usage.memory_bytes, usage.wall) = (fuel, memory_bytes, Duration::from_secs(fuel));
        let mut result = ToolResult::text(name);
        result.denied = vec![denied(name)];
        result.accesses = vec![name.to_owned()];
        result.usage = Some(usage);
        result.log = Some(format!("{name}\n").into());
        result
    }

    fn denied_accesses(denied: &[DeniedAccess]) -> Vec<&str> {
        denied.iter().map(|denied| &*denied.access).collect()
    }

    #[test]
    fn the_joined_result_has_the_accesses_usage_and_log_of_both_calls() {
        let joined = join_results(call_result("first", 2, 9), call_result("second", 3, 5));
        assert_eq!(joined.for_llm, "first\nsecond");
        assert_eq!(denied_accesses(&joined.denied), ["first", "second"]);
        assert_eq!(joined.accesses, ["first", "second"]);
        assert_eq!(joined.log.as_deref(), Some("first\nsecond\n"));
        let usage = joined.usage.unwrap_or_default();
        assert_eq!((usage.fuel, usage.memory_bytes, usage.wall.as_secs()), (5, 9, 5));
    }

    #[test]
    fn the_result_of_a_failed_follow_up_call_keeps_the_first_result_and_is_an_error() {
        let error = Error::new(ErrorKind::Fuel, Phase::Execute, "the fuel is used up")
            .with_denied(vec![denied("second")])
            .with_log(Some("second\n".into()));
        let joined = into_failure(call_result("first", 2, 9), error);
        assert!(joined.is_error());
        assert_eq!(
            joined.for_llm,
            "first\n[the work does not continue: the fuel is used up]"
        );
        assert_eq!(denied_accesses(&joined.denied), ["first", "second"]);
        assert_eq!(
            (joined.accesses.len(), joined.log.as_deref()),
            (1, Some("first\nsecond\n"))
        );
        assert_eq!(joined.usage.map(|usage| usage.fuel), Some(2));
    }
}
