//! Converts a history to one without calls and results, which has only messages of the system, the user and the model.

use super::call_text;
use super::instructions::instructions;
use super::json_reply;
use toolwit_agent::model::ChatRequest;
use toolwit_core::{Message, Role};

/// The format of calls in prompts and responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PromptFormat {
    Json,
    Text,
}

/// Returns the messages of a request, with a description of its tools in the system prompt.
///
/// The templates of many models accept a system prompt only at the start, and require that the user and the model take turns.
/// So a later message of the system becomes one of the user, and consecutive messages of one role are joined.
pub(super) fn prompt_messages(request: &ChatRequest<'_>, format: PromptFormat) -> Vec<Message> {
    let mut messages: Vec<Message> = Vec::new();
    for message in request.messages {
        let has_turns = messages
            .last()
            .is_some_and(|message| !matches!(message.role, Role::System { .. }));
        let role = match &message.role {
            Role::System { content } if has_turns => user(format!("Notice of the application:\n{content}")),
            Role::System { content } => Role::System {
                content: content.clone(),
            },
            Role::User { content } => user(content.clone()),
            Role::Assistant {
                content, tool_calls, ..
            } => Role::Assistant {
                content: match format {
                    // If there are no tools, the response to this request is plain text too.
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
            } => user(result_text(name, content, *is_error)),
        };
        push_or_join(&mut messages, role);
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

/// Appends a message, or its text to the last message if both have the same role.
pub(super) fn push_or_join(messages: &mut Vec<Message>, role: Role) {
    if let Some(last) = messages.last_mut() {
        match (&mut last.role, &role) {
            (Role::System { content: last }, Role::System { content })
            | (Role::User { content: last }, Role::User { content })
            | (Role::Assistant { content: last, .. }, Role::Assistant { content, .. }) => {
                last.push_str("\n\n");
                last.push_str(content);
            }
            _ => messages.push(Message::new(role)),
        }
        return;
    }
    messages.push(Message::new(role));
}

pub(super) fn user(content: String) -> Role {
    Role::User { content }
}

fn result_text(name: &str, content: &str, is_error: bool) -> String {
    let outcome = if is_error { "Error" } else { "Result" };
    // Without the marks, the model does not learn from a result to write them, and a repetition of the result is not a call.
    format!("{outcome} of `{name}`:\n{}", call_text::without_marks(content))
}
