//! The plan of a compaction: the older messages of a history that a summary replaces.

use toolwit_core::{Message, Role};

/// The beginning of the message with the summary.
const SUMMARY_HEADING: &str = "[Summary of earlier messages of this conversation]\n";

/// The assumed average size of a token, in bytes.
const TOKEN_BYTES: usize = 4;

/// The estimated overhead of a message in addition to its text, in tokens.
const MESSAGE_TOKENS: usize = 4;

/// The assumed size of a picture, in tokens. It is that of a large picture at most providers.
const PICTURE_TOKENS: usize = 1_600;

/// Maximum size of one text in the transcript from which the summary is made, in bytes: the content of a message, or a call.
const EXCERPT_BYTES_MAX: usize = 4096;

/// The division of a history into older messages and recent messages. A summary replaces the older messages, except for the
/// pinned ones. The recent messages stay. Positions do not count the system message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CompactionPlan {
    /// The number of older messages, including the pinned ones.
    pub(crate) older_count: usize,
    /// The positions of the pinned messages, in ascending order. [`plan_compaction`] selects them.
    pub(crate) pinned: Vec<usize>,
}

/// Returns the estimated size of a text of this many bytes, in tokens.
pub(crate) fn estimated_tokens(bytes: usize) -> usize {
    bytes.div_ceil(TOKEN_BYTES)
}

fn message_tokens(message: &Message) -> usize {
    let calls = message.tool_calls().iter();
    let call_bytes: usize = calls.map(|call| call.name.len() + call.arguments.len()).sum();
    let picture_tokens = message.pictures.len() * PICTURE_TOKENS;
    estimated_tokens(message.content().len() + call_bytes) + picture_tokens + MESSAGE_TOKENS
}

/// Returns the estimated size of messages, in tokens.
pub(crate) fn history_tokens(messages: &[Message]) -> usize {
    messages.iter().map(message_tokens).sum()
}

/// Splits a history into the system message, if there is one, and the other messages.
fn split_system(messages: &[Message]) -> (&[Message], &[Message]) {
    let has_system = matches!(messages.first().map(|first| &first.role), Some(Role::System { .. }));
    messages.split_at(usize::from(has_system))
}

/// Returns whether the user wrote the message. A summary has the role of the user too, but is not a prompt.
fn is_prompt(message: &Message) -> bool {
    matches!(&message.role, Role::User { content } if !content.starts_with(SUMMARY_HEADING))
}

/// Pins the last message of the user. Returns its text, or `None` if there is no message of the user.
pub(crate) fn pin_last_user_message(messages: &mut [Message]) -> Option<&str> {
    let last = messages.iter_mut().rev().find(|message| is_prompt(message))?;
    last.is_pinned = true;
    Some(last.content())
}

/// Returns the plan of a compaction, or `None` if the compaction would save at most an eighth of `tokens_max`, and so would not
/// be worth an inference.
///
/// The newest messages stay: as many as fit into a quarter of `tokens_max`, and at least the last message that is not the
/// answer to a call, with the messages after it. They begin with a message that is not the answer to a call, so that calls and
/// answers stay together. The first user message, the last one and the messages that the application pinned stay too.
pub(crate) fn plan_compaction(messages: &[Message], tokens_max: usize) -> Option<CompactionPlan> {
    let (_, messages) = split_system(messages);
    let recent_tokens_max = tokens_max / 4;
    let (mut older_count, mut recent_tokens) = (messages.len(), 0);
    for (position, message) in messages.iter().enumerate().rev() {
        recent_tokens += message_tokens(message);
        if recent_tokens > recent_tokens_max && older_count < messages.len() {
            break;
        }
        if !matches!(message.role, Role::Tool { .. }) {
            older_count = position;
        }
    }
    let older_messages = messages.get(..older_count)?;
    let first_prompt = older_messages.iter().position(is_prompt);
    // If the last prompt is among the recent messages, it stays without being pinned.
    let has_recent_prompt = messages.iter().skip(older_count).any(is_prompt);
    let last_prompt = older_messages
        .iter()
        .rposition(is_prompt)
        .filter(|_| !has_recent_prompt);
    let numbered_messages = || older_messages.iter().enumerate();
    let stays = |position: usize, message: &Message| {
        message.is_pinned || first_prompt == Some(position) || last_prompt == Some(position)
    };
    let pinned: Vec<_> = numbered_messages()
        .filter(|(position, message)| stays(*position, message))
        .map(|(position, _)| position)
        .collect();
    let replaced = numbered_messages().filter(|(position, _)| !pinned.contains(position));
    let saved_tokens: usize = replaced.map(|(_, message)| message_tokens(message)).sum();
    (saved_tokens > tokens_max / 8).then_some(CompactionPlan { older_count, pinned })
}

/// Returns the messages with a summary in place of the older ones that the plan does not pin.
pub(crate) fn compact(messages: &[Message], plan: &CompactionPlan, summary: &str) -> Vec<Message> {
    let (system, messages) = split_system(messages);
    let older = messages.iter().take(plan.older_count).enumerate();
    let pinned = older.filter(|(position, _)| plan.pinned.contains(position));
    let pinned = pinned.map(|(_, message)| message.clone());
    let recent = messages.iter().skip(plan.older_count).cloned();
    let mut compacted = system.to_vec();
    compacted.extend(pinned);
    compacted.push(Message::user(format!("{SUMMARY_HEADING}{summary}")));
    compacted.extend(recent);
    compacted
}

/// Returns the text of the messages that a summary replaces. If the text would exceed `bytes_max`, it contains only the newest of
/// these messages, and at least one.
pub(crate) fn transcript(messages: &[Message], plan: &CompactionPlan, bytes_max: usize) -> String {
    let (_, messages) = split_system(messages);
    let older = messages.iter().take(plan.older_count).enumerate();
    let replaced = older.filter(|(position, _)| !plan.pinned.contains(position));
    let mut lines: Vec<_> = replaced.map(|(_, message)| message_text(message)).collect();
    let mut bytes = 0;
    let newest = lines.iter().rev().take_while(|line| {
        bytes += line.len();
        bytes <= bytes_max
    });
    // The newest line stays, however long it is.
    let newest_count = newest.count().max(1);
    lines.drain(..lines.len().saturating_sub(newest_count));
    lines.concat()
}

/// Returns a message as text, with its calls.
fn message_text(message: &Message) -> String {
    let author = match &message.role {
        Role::Assistant { .. } => "assistant",
        Role::Tool { .. } => "result",
        Role::System { .. } => "system",
        _ => "user",
    };
    let mut text = excerpt(author, message.content());
    for picture in &message.pictures {
        text.push_str(&excerpt("picture", &picture.to_string()));
    }
    for call in message.tool_calls() {
        text.push_str(&excerpt("call", &format!("{} {}", call.name, call.arguments)));
    }
    text
}

/// Returns the beginning of a text in an XML element with this name, or an empty string for an empty text.
fn excerpt(element: &str, text: &str) -> String {
    let end = text.floor_char_boundary(EXCERPT_BYTES_MAX);
    match text.get(..end).unwrap_or_default() {
        "" => String::new(),
        start if end < text.len() => format!("<{element}>{start} …</{element}>\n"),
        full => format!("<{element}>{full}</{element}>\n"),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use toolwit_core::ToolCall;

    /// Returns a history with a system message, a prompt and this number of calls, each with a result of 400 bytes.
    fn history(call_count: usize) -> Vec<Message> {
        let mut messages = vec![Message::system("Be brief."), Message::user("first")];
        for number in 0..call_count {
            let call = ToolCall {
                id: format!("c{number}"),
                name: "look".to_owned(),
                arguments: "{}".to_owned(),
            };
            messages.push(Message::assistant("", vec![call.clone()]));
            messages.push(Message::tool(&call, "x".repeat(400), false));
        }
        messages
    }

    #[test]
    fn prompts_and_recent_calls_stay_and_no_call_loses_its_answer() {
        let mut messages = history(20);
        messages.push(Message::user("second"));
        messages.extend(history(20).split_off(2));
        let plan = plan_compaction(&messages, 2000).unwrap();
        let compacted = compact(&messages, &plan, "20 looks");
        let texts: Vec<_> = compacted.iter().take(4).map(Message::content).collect();
        assert_eq!(
            texts,
            ["Be brief.", "first", "second", &format!("{SUMMARY_HEADING}20 looks")]
        );
        assert!(
            matches!(compacted[4].role, Role::Assistant { .. }),
            "calls stay with their answers"
        );
        assert!(history_tokens(&compacted) < 1000, "{}", history_tokens(&compacted));
        let transcript = transcript(&messages, &plan, 1_000_000);
        assert!(transcript.contains("<call>look {}</call>") && !transcript.contains("second"));
    }

    #[test]
    fn an_earlier_summary_is_summarized_and_not_pinned() {
        let mut messages = history(1);
        let plan = CompactionPlan {
            older_count: 3,
            pinned: vec![0],
        };
        messages = compact(&messages, &plan, "one look");
        messages.extend(history(20).split_off(2));
        let plan = plan_compaction(&messages, 2000).unwrap();
        assert_eq!(plan.pinned, [0]);
        assert!(transcript(&messages, &plan, 1_000_000).contains("one look"));
    }

    #[test]
    fn pinned_messages_stay_in_every_compaction() {
        let mut messages = history(1);
        for text in ["my name is Ada", "look around"] {
            messages.push(Message::user(text));
            messages.extend(history(10).split_off(2));
            if text.contains("Ada") {
                assert_eq!(pin_last_user_message(&mut messages), Some("my name is Ada"));
            }
        }
        for _ in 0..2 {
            messages.push(Message::user("and now?"));
            messages.extend(history(20).split_off(2));
            let plan = plan_compaction(&messages, 2000).unwrap();
            messages = compact(&messages, &plan, "many looks");
            let texts: Vec<_> = messages.iter().map(Message::content).collect();
            assert!(
                texts.contains(&"my name is Ada") && !texts.contains(&"look around"),
                "{texts:?}"
            );
        }
        let mut only_summary = [Message::user(format!("{SUMMARY_HEADING}nothing"))];
        assert_eq!(pin_last_user_message(&mut only_summary), None);
    }

    #[test]
    fn pictures_count_as_tokens_and_are_named_in_the_transcript() {
        let picture = toolwit_core::Picture::from_bytes(b"GIF89a").unwrap();
        let seen = Message::user("see").with_pictures(vec![picture; 2]);
        assert!(history_tokens(std::slice::from_ref(&seen)) > 2 * PICTURE_TOKENS);
        assert!(message_text(&seen).contains("<picture>image/gif, 6 bytes</picture>"));
    }

    #[test]
    fn a_history_without_older_messages_is_not_compacted() {
        let messages = [Message::user("x".repeat(10_000))];
        assert_eq!(plan_compaction(&messages, 1000), None);
        assert_eq!(plan_compaction(&history(1), 100_000), None);
        assert_eq!(plan_compaction(&[], 1000), None);
    }

    #[test]
    fn a_transcript_has_the_newest_messages_within_its_limit() {
        let messages = history(20);
        let plan = plan_compaction(&messages, 2000).unwrap();
        let newest = transcript(&messages, &plan, 1000);
        assert!(!newest.is_empty() && newest.len() <= 1000, "{}", newest.len());
    }

    #[test]
    fn positions_beyond_the_history_are_ignored() {
        let plan = CompactionPlan {
            older_count: 99,
            pinned: vec![50],
        };
        assert_eq!(compact(&history(1), &plan, "all").len(), 2);
    }
}
