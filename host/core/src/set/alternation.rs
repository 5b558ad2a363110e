//! Histories in which the user and the model take turns.

use std::borrow::Cow;

use super::message::{Message, Role};

/// The message of the model that stands for an answer that is missing, because the run was interrupted.
const MISSING_ANSWER: &str = "[no answer: the run was interrupted]";

/// Returns a history in which the user and the model take turns, for a request to a model.
///
/// Messages that follow each other without a turn arise when a run ends without an answer, and when a summary replaces older
/// messages. The templates of many model servers refuse them. So consecutive messages of one role are joined, and a short
/// message of the model separates the results of calls from the next message of the user.
#[must_use]
pub fn with_alternating_roles(messages: &[Message]) -> Cow<'_, [Message]> {
    let is_turn = |pair: &[Message]| {
        let [last, next] = pair else { return true };
        !can_join(&last.role, &next.role) && !lacks_answer(&last.role, &next.role)
    };
    if messages.windows(2).all(is_turn) {
        return Cow::Borrowed(messages);
    }
    let mut alternating = Vec::with_capacity(messages.len());
    for message in messages {
        push_joined(&mut alternating, message.clone());
    }
    Cow::Owned(alternating)
}

/// Appends a message to a history in which the user and the model take turns, as in [`with_alternating_roles`].
pub fn push_joined(messages: &mut Vec<Message>, message: Message) {
    match messages.last_mut() {
        Some(last) if can_join(&last.role, &message.role) => join(last, message),
        Some(last) if lacks_answer(&last.role, &message.role) => {
            messages.push(Message::assistant(MISSING_ANSWER, Vec::new()));
            messages.push(message);
        }
        _ => messages.push(message),
    }
}

/// Returns whether two consecutive messages have one role and can be joined. Responses with provider blocks are not joined,
/// because the provider expects its blocks unchanged. Calls are followed by their results.
fn can_join(last: &Role, next: &Role) -> bool {
    match (last, next) {
        (Role::System { .. }, Role::System { .. }) | (Role::User { .. }, Role::User { .. }) => true,
        (
            Role::Assistant { tool_calls, blocks, .. },
            Role::Assistant {
                blocks: next_blocks, ..
            },
        ) => tool_calls.is_empty() && blocks.is_empty() && next_blocks.is_empty(),
        _ => false,
    }
}

/// Returns whether the model has not responded between two consecutive messages.
fn lacks_answer(last: &Role, next: &Role) -> bool {
    matches!((last, next), (Role::Tool { .. }, Role::User { .. }))
}

/// Appends the text, the calls and the pictures of a message to the last message, which has the same role.
fn join(last: &mut Message, next: Message) {
    match (&mut last.role, next.role) {
        (Role::System { content }, Role::System { content: next })
        | (Role::User { content }, Role::User { content: next }) => append_text(content, &next),
        (
            Role::Assistant {
                content, tool_calls, ..
            },
            Role::Assistant {
                content: next,
                tool_calls: next_calls,
                ..
            },
        ) => {
            append_text(content, &next);
            tool_calls.extend(next_calls);
        }
        _ => {}
    }
    last.pictures.extend(next.pictures);
    last.is_pinned |= next.is_pinned;
}

/// Appends a text after an empty line.
fn append_text(text: &mut String, next: &str) {
    if !text.is_empty() && !next.is_empty() {
        text.push_str("\n\n");
    }
    text.push_str(next);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{ProviderBlock, ToolCall};

    fn call() -> ToolCall {
        ToolCall {
            id: "call_1".to_owned(),
            name: "look".to_owned(),
            arguments: "{}".to_owned(),
        }
    }

    /// Returns the role and the text of each message.
    fn turns(messages: &[Message]) -> Vec<(&str, &str)> {
        messages
            .iter()
            .map(|message| {
                let role = match &message.role {
                    Role::System { .. } => "system",
                    Role::User { .. } => "user",
                    Role::Assistant { .. } => "model",
                    Role::Tool { .. } => "result",
                };
                (role, message.content())
            })
            .collect()
    }

    // accept: 9
    #[test]
    fn messages_without_an_answer_between_them_are_joined() {
        let messages = [
            Message::system("Be brief."),
            Message::user("one"),
            Message::user("two"),
            Message::assistant("yes", Vec::new()),
            Message::assistant("", vec![call()]),
            Message::tool(&call(), "found", false),
            Message::user("three"),
        ];
        let alternating = with_alternating_roles(&messages);
        assert_eq!(
            turns(&alternating),
            [
                ("system", "Be brief."),
                ("user", "one\n\ntwo"),
                ("model", "yes"),
                ("result", "found"),
                ("model", MISSING_ANSWER),
                ("user", "three"),
            ]
        );
        assert_eq!(alternating[2].tool_calls(), [call()]);
        assert!(
            matches!(with_alternating_roles(&alternating), Cow::Borrowed(_)),
            "an alternating history does not change"
        );
    }

    #[test]
    fn a_paused_response_stays_separate_from_its_continuation() {
        let block = ProviderBlock {
            issuer: "anthropic:host".to_owned(),
            data: json!({"type": "server_tool_use"}),
            text_bytes_before: 1,
            calls_before: 0,
        };
        let messages = [
            Message::user("one"),
            Message::assistant("a", Vec::new()).with_blocks(vec![block]),
            Message::assistant("b", Vec::new()),
        ];
        assert_eq!(with_alternating_roles(&messages).len(), 3);
    }
}
