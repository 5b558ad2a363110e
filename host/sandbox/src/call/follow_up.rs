//! Follow-up calls: a result can request one call of another function of its plugin.

use std::sync::Arc;

use async_trait::async_trait;

use super::tool::PluginTool;
use toolwit_core::{
    Arguments, CallAccess, CallChain, Guards, StartingCall, Tool, ToolContext, ToolDefinition, ToolError, ToolResult,
    ToolStatus, parse_arguments,
};
use toolwit_core::{Error, ErrorKind, Phase};

/// Runs the follow-up call of a result: in the background if the conversation can receive late results, inline otherwise.
///
/// It is a call of its own: it may need an approval of its own, and the guards of the conversation apply to it.
pub(super) async fn run_follow_up(
    tool: &PluginTool,
    mut result: ToolResult,
    context: &ToolContext,
) -> Result<ToolResult, Error> {
    let Some(follow_up) = result.follow_up.take() else {
        return Ok(result);
    };
    let next = tool.sibling(&follow_up.tool).ok_or_else(|| {
        let why = "the plugin has no such function for this conversation";
        invalid_follow_up(&follow_up.tool, why)
    })?;
    let next = Guards::of(context).applied(Arc::new(FollowUp(next)));
    let arguments = parse_arguments(&follow_up.arguments)
        .map_err(|error| invalid_follow_up(&follow_up.tool, &error.to_string()))?
        .arguments;
    if let Ok(completion) = context.background_task() {
        // The current tools of the conversation may be locked or removed when the follow-up call runs.
        let context = completion.context().clone().without_tools().for_new_call();
        completion.spawn(async move {
            let arguments = permitted(&*next, arguments, &context).await?;
            next.call(arguments, &context).await
        });
        result.status = ToolStatus::Pending;
        return Ok(result);
    }
    let context = &context.clone().for_new_call();
    let arguments = match permitted(&*next, arguments, context).await {
        Ok(arguments) => arguments,
        Err(error) => return Ok(not_continued(result, &error.into())),
    };
    let mut rest = match next.call(arguments, context).await.map_err(Error::from) {
        Ok(rest) => rest,
        Err(error) if error.kind == ErrorKind::Denied && error.phase == Phase::Validate => {
            return Ok(not_continued(result, &error));
        }
        Err(error) => return Err(error),
    };
    rest.for_llm = format!("{}\n{}", result.for_llm, rest.for_llm);
    rest.for_user = rest.for_user.or(result.for_user);
    rest.artifacts.splice(0..0, result.artifacts);
    Ok(rest)
}

/// Returns the result of the first part of the work, which is done, so that it is not lost.
fn not_continued(mut result: ToolResult, error: &Error) -> ToolResult {
    let note = format!("\n[the work does not continue: {}]", error.message);
    result.for_llm.push_str(&note);
    result
}

/// Returns the arguments with which a follow-up call may run.
async fn permitted(next: &dyn Tool, arguments: Arguments, context: &ToolContext) -> Result<Arguments, ToolError> {
    let id = format!("{}/follow-up", CallChain::id_of(context));
    let call = StartingCall::new(id, next, arguments, context);
    Ok(context.permit(call).await?.arguments)
}

/// The tool of a follow-up call. It must not request another one, which prevents endless chains.
struct FollowUp(PluginTool);

#[async_trait]
impl Tool for FollowUp {
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
                    "it is a follow-up call itself and may not request another one",
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

fn invalid_follow_up(tool: &str, why: &str) -> Error {
    let tool: String = tool.chars().take(200).collect();
    let message = format!("the follow-up call of `{tool}` is not possible: {why}");
    Error::new(ErrorKind::Tool, Phase::Execute, message)
}
