//! The plan of a compaction: the older messages of a history that a summary replaces.

use toolwit_core::{Message, Role};

/// The beginning of the message with the summary.
const HEADING: &str = "[Summary of earlier messages of this conversation]\n";

/// The average size of a token, in bytes.
const TOKEN_BYTES: usize = 4;

/// The size of a message in addition to its text, in tokens.
const MESSAGE_TOKENS: usize = 4;

/// Maximum size of one message in the transcript from which the summary is made, in bytes.
const EXCERPT_BYTES_MAX: usize = 4096;

/// The messages that a summary replaces. Positions do not count the system message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CompactionPlan {
    /// The number of the oldest messages that are compacted, including the pinned ones.
    pub(crate) older: usize,
    /// The positions of the pinned messages among the oldest ones. Pinned messages stay.
    pub(crate) pinned: Vec<usize>,
}

/// Returns the estimated size of a text, in tokens.
pub(crate) fn estimated_tokens(bytes: usize) -> usize {
    bytes.div_ceil(TOKEN_BYTES)
}

fn message_tokens(message: &Message) -> usize {
    let calls = message.tool_calls().iter();
    let calls: usize = calls.map(|call| call.name.len() + call.arguments.len()).sum();
    estimated_tokens(message.content().len() + calls) + MESSAGE_TOKENS
}

/// Returns the estimated size of messages, in tokens.
pub(crate) fn history_tokens(messages: &[Message]) -> usize {
    messages.iter().map(message_tokens).sum()
}

/// Divides a history into the instructions and the other messages.
fn without_system(messages: &[Message]) -> (&[Message], &[Message]) {
    let has_system = matches!(messages.first().map(|first| &first.role), Some(Role::System { .. }));
    messages.split_at(usize::from(has_system))
}

/// Returns whether the user wrote the message, so that it is not a summary of earlier messages.
fn is_prompt(message: &Message) -> bool {
    matches!(&message.role, Role::User { content } if !content.starts_with(HEADING))
}

/// Pins the last message of the user. Returns its text; `None` if the user wrote no message.
pub(crate) fn pin_last_prompt(messages: &mut [Message]) -> Option<&str> {
    let last = messages.iter_mut().rev().find(|message| is_prompt(message))?;
    last.is_pinned = true;
    Some(last.content())
}

/// Returns the messages to replace, or `None` if their replacement would not shorten the history enough to be worth an
/// inference.
///
/// The newest messages stay, up to a quarter of `tokens_max`. They begin with a message that is not the answer to a
/// call, so that calls and answers stay together. The first user message, the last one and the pinned messages stay
/// too.
pub(crate) fn plan_compaction(messages: &[Message], tokens_max: usize) -> Option<CompactionPlan> {
    let (_, messages) = without_system(messages);
    let recent_max = tokens_max / 4;
    let (mut older, mut recent) = (messages.len(), 0);
    for (at, message) in messages.iter().enumerate().rev() {
        recent += message_tokens(message);
        if recent > recent_max && older < messages.len() {
            break;
        }
        if !matches!(message.role, Role::Tool { .. }) {
            older = at;
        }
    }
    let older_messages = messages.get(..older)?;
    let first = older_messages.iter().position(is_prompt);
    // A newer prompt among the recent messages is not pinned, because it stays anyway.
    let has_recent_prompt = messages.iter().skip(older).any(is_prompt);
    let last = older_messages
        .iter()
        .rposition(is_prompt)
        .filter(|_| !has_recent_prompt);
    let older_numbered = older_messages.iter().enumerate();
    let stays = |at: usize, message: &Message| message.is_pinned || first == Some(at) || last == Some(at);
    let pinned: Vec<_> = older_numbered
        .filter(|(at, message)| stays(*at, message))
        .map(|(at, _)| at)
        .collect();
    let replaced = older_messages.iter().enumerate();
    let replaced = replaced.filter(|(at, _)| !pinned.contains(at));
    let saved: usize = replaced.map(|(_, message)| message_tokens(message)).sum();
    (saved > tokens_max / 8).then_some(CompactionPlan { older, pinned })
}

/// Replaces the messages of a plan by a summary.
pub(crate) fn compacted(messages: &[Message], plan: &CompactionPlan, summary: &str) -> Vec<Message> {
    let (system, messages) = without_system(messages);
    let older = messages.iter().take(plan.older).enumerate();
    let pinned = older.filter(|(at, _)| plan.pinned.contains(at));
    let pinned = pinned.map(|(_, message)| message.clone());
    let recent = messages.iter().skip(plan.older).cloned();
    let mut compacted = system.to_vec();
    compacted.extend(pinned);
    compacted.push(Message::user(format!("{HEADING}{summary}")));
    compacted.extend(recent);
    compacted
}

/// Returns the text of the messages that a summary replaces. Only the newest of them that fit into `bytes_max` are
/// included, but at least one.
pub(crate) fn transcript(messages: &[Message], plan: &CompactionPlan, bytes_max: usize) -> String {
    let (_, messages) = without_system(messages);
    let older = messages.iter().take(plan.older).enumerate();
    let replaced = older.filter(|(at, _)| !plan.pinned.contains(at));
    let mut lines: Vec<_> = replaced.map(|(_, message)| described(message)).collect();
    let mut bytes = 0;
    let newest = lines.iter().rev().take_while(|line| {
        bytes += line.len();
        bytes <= bytes_max
    });
    // The newest line stays, however long it is.
    let kept = newest.count().max(1);
    lines.drain(..lines.len().saturating_sub(kept));
    lines.concat()
}

/// Returns a message as text, with its calls.
fn described(message: &Message) -> String {
    let author = match &message.role {
        Role::Assistant { .. } => "assistant",
        Role::Tool { .. } => "result",
        Role::System { .. } => "system",
        _ => "user",
    };
    let mut text = excerpt(author, message.content());
    for call in message.tool_calls() {
        text.push_str(&excerpt("call", &format!("{} {}", call.name, call.arguments)));
    }
    text
}

fn excerpt(author: &str, text: &str) -> String {
    let end = text.floor_char_boundary(EXCERPT_BYTES_MAX);
    match text.get(..end).unwrap_or_default() {
        "" => String::new(),
        start if end < text.len() => format!("<{author}>{start} …</{author}>\n"),
        full => format!("<{author}>{full}</{author}>\n"),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use toolwit_core::ToolCall;

    /// Returns a history with a prompt and this number of calls, each with a result of 400 bytes.
    fn history(calls: usize) -> Vec<Message> {
        let mut messages = vec![Message::system("Be brief."), Message::user("first")];
        for number in 0..calls {
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
        let short = compacted(&messages, &plan, "20 looks");
        let texts: Vec<_> = short.iter().take(4).map(Message::content).collect();
        assert_eq!(texts, ["Be brief.", "first", "second", &format!("{HEADING}20 looks")]);
        assert!(
            matches!(short[4].role, Role::Assistant { .. }),
            "calls stay with their answers"
        );
        assert!(history_tokens(&short) < 1000, "{}", history_tokens(&short));
        let transcript = transcript(&messages, &plan, 1_000_000);
        assert!(transcript.contains("<call>look {}</call>") && !transcript.contains("second"));
    }

    #[test]
    fn a_summary_is_summarized_again_and_not_pinned() {
        let mut messages = history(1);
        let plan = CompactionPlan {
            older: 3,
            pinned: vec![0],
        };
        messages = compacted(&messages, &plan, "one look");
        messages.extend(history(20).split_off(2));
        let plan = plan_compaction(&messages, 2000).unwrap();
        assert_eq!(plan.pinned, [0]);
        assert!(transcript(&messages, &plan, 1_000_000).contains("one look"));
    }

    #[test]
    fn pinned_messages_stay_in_every_summary() {
        let mut messages = history(1);
        for text in ["my name is Ada", "look around"] {
            messages.push(Message::user(text));
            messages.extend(history(10).split_off(2));
            if text.contains("Ada") {
                assert_eq!(pin_last_prompt(&mut messages), Some("my name is Ada"));
            }
        }
        for _ in 0..2 {
            messages.push(Message::user("and now?"));
            messages.extend(history(20).split_off(2));
            let plan = plan_compaction(&messages, 2000).unwrap();
            messages = compacted(&messages, &plan, "many looks");
            let texts: Vec<_> = messages.iter().map(Message::content).collect();
            assert!(
                texts.contains(&"my name is Ada") && !texts.contains(&"look around"),
                "{texts:?}"
            );
        }
        let mut only_summary = [Message::user(format!("{HEADING}nothing"))];
        assert_eq!(pin_last_prompt(&mut only_summary), None);
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
        let short = transcript(&messages, &plan, 1000);
        assert!(!short.is_empty() && short.len() <= 1000, "{}", short.len());
    }

    #[test]
    fn positions_beyond_the_history_are_ignored() {
        let plan = CompactionPlan {
            older: 99,
            pinned: vec![50],
        };
        assert_eq!(compacted(&history(1), &plan, "all").len(), 2);
    }
}
