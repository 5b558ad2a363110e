//! The event of a history whose older messages were replaced by a summary.

use serde::{Deserialize, Serialize};

use crate::model::TokenUsage;

/// A summary that replaced the older messages of a history. Positions do not count the system message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CompactedHistory {
    /// The duration of the summarization in milliseconds.
    pub wall_ms: u64,
    /// The token usage of the summarization.
    pub usage: TokenUsage,
    /// The estimated size of the request before the compaction, in tokens.
    pub tokens: u64,
    /// The number of older messages: those that the summary replaced, and the pinned messages among them, which remain.
    pub older: usize,
    /// The positions of the pinned messages among the older messages, in ascending order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pinned: Vec<usize>,
    /// The summary.
    pub summary: String,
    /// Whether the history was compacted because the provider had refused a request that exceeded the context of the model.
    #[serde(default, rename = "after_refusal", skip_serializing_if = "std::ops::Not::not")]
    pub is_after_refusal: bool,
}
