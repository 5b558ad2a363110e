//! The identity of a conversation, for grants that are limited to one conversation.

use std::sync::atomic::{AtomicU64, Ordering};

/// The number of a conversation, unique in this process. `default` returns a new number at each call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ConversationNumber(u64);

impl Default for ConversationNumber {
    fn default() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}
