//! Conversion of a history to messages of the system, the user and the model only. Calls and results become text.

use super::call_text;
use super::instructions::instructions;
use super::json_reply;
use toolwit_agent::model::ChatRequest;
use toolwit_core::{Message, Role, push_joined};

/// The format of calls in the text of prompts and responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PromptFormat {
    /// A response is a JSON object.
    Json,
    /// A response is text, with marks around each call.
    Text,
}

/// Returns the messages of a request, with a description of its tools in the system message.
///
/// The templates of many models accept a system message only at the start, and require that the user and the model take
/// turns. So a later system message becomes a user message, and consecutive messages of one role are joined.
pub(super) fn prompt_messages(request: &ChatRequest<'_>, format: PromptFormat) -> Vec<Message> {
    let mut messages: Vec<Message> = Vec::new();
    for message in request.messages {
        let has_earlier_turn = messages
            .last()
            .is_some_and(|message| !matches!(message.role, Role::System { .. }));
        // A `Role` contains the text of its message.
        let converted = match &message.role {
            Role::System { content } if has_earlier_turn => user_role(format!("Notice of the application:\n{content}")),
            Role::System { content } => Role::System {
                content: content.clone(),
            },
            Role::User { content } => user_role(content.clone()),
            Role::Assistant {
                content, tool_calls, ..
            } => Role::Assistant {
                content: match format {
                    // Without tools, the model responds in plain text, so its earlier answers are plain text too.
                    PromptFormat::Json if request.tools.is_empty() && tool_calls.is_empty() => content.clone(),
                    PromptFormat::Json => json_reply::reply_text(content, tool_calls),
                    PromptFormat::Text => call_text::reply_text(content, tool_calls),
                },
                tool_calls: Vec::new(),
                blocks: Vec::new(),
            },
            Role::Tool {
                name,
                content,
                is_error,
                ..
            } => user_role(result_text(name, content, *is_error)),
        };
        let mut converted = Message::new(converted);
        converted.pictures.clone_from(&message.pictures);
        push_joined(&mut messages, converted);
    }
    if request.tools.is_empty() {
        return messages;
    }
    let tools = instructions(request, format);
    match messages.first_mut().map(|message| &mut message.role) {
        Some(Role::System { content }) => *content = format!("{content}\n\n{tools}"),
        _ => messages.insert(0, Message::system(tools)),
    }
    messages
}

fn user_role(content: String) -> Role {
    Role::User { content }
}

fn result_text(name: &str, content: &str, is_error: bool) -> String {
    let label = if is_error { "Error" } else { "Result" };
    // A result can contain the marks of a call. If the model repeated them in its response, they would be read as a call.
    format!("{label} of `{name}`:\n{}", call_text::break_marks(content))
}
