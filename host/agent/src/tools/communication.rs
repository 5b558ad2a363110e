//! Communication tools, with which a model sends messages to the user during a run.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::process::AgentProcess;
use toolwit_core::Error;
use toolwit_core::{EffectClass, NativeTool, ToolContext, ToolError, ToolId, ToolResult};

/// The arguments of `progress` and of `communicate`.
#[derive(Deserialize, JsonSchema)]
struct MessageArguments {
    /// The text for the user.
    message: String,
}

/// Returns the tool `progress`, which shows the user a transient note about the current step.
///
/// Outside a conversation, the tool sends nothing, and its result states that no user is connected.
///
/// # Errors
/// Never in practice: the schema is fixed.
pub fn progress_tool() -> Result<NativeTool, Error> {
    message_tool(
        "progress",
        "Shows the user a short note about the current step. The note is transient; use it during long tasks.",
        |arguments, context| {
            context.output().progress(&arguments.message);
            ToolResult::text("The user sees the note.")
        },
    )
}

/// Returns the tool `communicate`, which sends the user a lasting message. The history also contains the message.
///
/// Outside a conversation, the tool sends nothing, and its result states that no user is connected.
///
/// # Errors
/// Never in practice: the schema is fixed.
pub fn communicate_tool() -> Result<NativeTool, Error> {
    message_tool(
        "communicate",
        "Sends the user a lasting message, such as a result or a link. The task continues afterwards.",
        |arguments, _| {
            ToolResult::text(format!("The user received: {}", arguments.message)).with_user_text(arguments.message)
        },
    )
}

/// Creates a tool that sends a message to the user of its conversation.
fn message_tool(
    name: &'static str,
    description: &str,
    send: impl Fn(MessageArguments, &ToolContext) -> ToolResult + Copy + Send + Sync + 'static,
) -> Result<NativeTool, Error> {
    let names = vec![name.to_owned()];
    let tool = NativeTool::typed_as(
        ToolId::host(name),
        names,
        description,
        move |arguments: MessageArguments, context: ToolContext| async move {
            if AgentProcess::of(&context).is_err() {
                tracing::warn!(
                    tool = name,
                    "the tool runs outside a conversation; its message is dropped"
                );
                return Ok::<_, ToolError>(ToolResult::text("No user is connected; continue without the message."));
            }
            Ok(send(arguments, &context))
        },
    )?;
    // A message to the user changes nothing outside the conversation.
    Ok(tool.with_effect(EffectClass::Read))
}
