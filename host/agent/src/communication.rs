//! Tools with which a model speaks to the user while it works.

use schemars::JsonSchema;
use serde::Deserialize;

use super::process::Process;
use toolwit_core::Error;
use toolwit_core::{NativeTool, ToolContext, ToolError, ToolId, ToolResult};

/// What both tools take.
#[derive(Deserialize, JsonSchema)]
struct Words {
    /// What the user is to read.
    message: String,
}

/// Makes the tool `progress`: a passing note about what is being done, which is shown while the work lasts.
///
/// Outside a conversation it does nothing and says so.
///
/// # Errors
/// None in practice; the schema is fixed.
pub fn progress_tool() -> Result<NativeTool, Error> {
    speaking_tool(
        "progress",
        "Tells the user in a few words what is being done right now. The note passes; use it during long work.",
        |words, context| {
            context.output().progress(&words.message);
            ToolResult::text("The user sees it.")
        },
    )
}

/// Makes the tool `communicate`: a message to the user that stays, in the conversation and in its history.
///
/// Outside a conversation it does nothing and says so.
///
/// # Errors
/// None in practice; the schema is fixed.
pub fn communicate_tool() -> Result<NativeTool, Error> {
    speaking_tool(
        "communicate",
        "Sends the user a message that stays: a result, a link, something important. The work goes on afterwards.",
        |words, _| ToolResult::text(format!("The user was told: {}", words.message)).with_user_text(words.message),
    )
}

fn speaking_tool(
    name: &'static str,
    description: &str,
    speak: impl Fn(Words, &ToolContext) -> ToolResult + Copy + Send + Sync + 'static,
) -> Result<NativeTool, Error> {
    let names = vec![name.to_owned()];
    NativeTool::typed_as(
        ToolId::host(name),
        names,
        description,
        move |words: Words, context: ToolContext| async move {
            if Process::of(&context).is_err() {
                tracing::warn!(
                    tool = name,
                    "there is no process, so that nobody hears what a tool says"
                );
                return Ok::<_, ToolError>(ToolResult::text("There is nobody who could hear it; go on."));
            }
            Ok(speak(words, &context))
        },
    )
}
