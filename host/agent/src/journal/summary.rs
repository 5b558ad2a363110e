//! The summary of a session, for lists.

use serde::Serialize;

use super::error::JournalError;
use super::port::SessionId;
use crate::event::{Event, TraceEntry};

/// Maximum length of the first message in a summary, in characters.
const PROMPT_CHARS_MAX: usize = 80;

/// The summary of a session, as a list of sessions shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SessionSummary {
    /// The name of the session.
    pub session: SessionId,
    /// The time of its first entry, in milliseconds since 1970 UTC; 0 for an empty session.
    pub created_at_ms: u64,
    /// The time of its last entry, in milliseconds since 1970 UTC; 0 for an empty session.
    pub changed_at_ms: u64,
    /// The number of its entries.
    pub entries: u64,
    /// The number of its turns.
    pub turns: u32,
    /// The start of its first user message; empty if the session has no user message.
    pub prompt: String,
    /// Whether its last run did not end.
    pub is_interrupted: bool,
    /// The reason why an entry that the summary needs cannot be read, for example because a newer version of the program wrote
    /// it. Of the other fields, only `session` and `entries` are then set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

impl SessionSummary {
    /// Summarizes a session from its entries, or from a selection of them. A selection must contain the first entry, the last
    /// entry, and all entries that begin or end a turn. `count` is the number of entries in the session, not in the selection.
    #[must_use]
    pub fn of(session: SessionId, count: u64, entries: &[TraceEntry]) -> Self {
        let mut summary = Self {
            session,
            created_at_ms: entries.first().map_or(0, |entry| entry.at_ms),
            changed_at_ms: entries.last().map_or(0, |entry| entry.at_ms),
            entries: count,
            turns: 0,
            prompt: String::new(),
            is_interrupted: false,
            problem: None,
        };
        for entry in entries.iter().filter(|entry| entry.origin.parent_call.is_none()) {
            match &entry.event {
                Event::TurnStarted { turn, prompt, .. } => {
                    summary.turns = *turn;
                    summary.is_interrupted = true;
                    if let (Some(prompt), true) = (prompt, summary.prompt.is_empty()) {
                        summary.prompt = prompt.chars().take(PROMPT_CHARS_MAX).collect();
                    }
                }
                Event::Finished { .. } => summary.is_interrupted = false,
                _ => {}
            }
        }
        summary
    }

    /// Creates the summary of a session with an unreadable entry.
    #[must_use]
    pub fn unreadable(session: SessionId, count: u64, error: &JournalError) -> Self {
        Self {
            problem: Some(error.to_string()),
            ..Self::of(session, count, &[])
        }
    }
}
