//! The ids of calls.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use toolwit_core::ToolContext;

/// Maximum length of a call id that is accepted from a model, in bytes. A longer id is replaced.
const CALL_ID_BYTES_MAX: usize = 256;

/// The ids of the calls of a conversation and of all agents inside it. Clones share one set of ids.
#[derive(Clone, Default)]
pub(crate) struct CallIds(Arc<Mutex<ClaimedIds>>);

#[derive(Default)]
struct ClaimedIds {
    ids: HashSet<String>,
    /// The number in the last generated id, such as 1 for `call_1`.
    last_number: u64,
}

impl CallIds {
    /// Returns the call ids of the conversation to which a context belongs. Outside a conversation, returns a new empty
    /// set.
    pub(crate) fn of(context: &ToolContext) -> Self {
        context.extension::<Self>().cloned().unwrap_or_default()
    }

    /// Claims the ids of earlier calls.
    pub(crate) fn claim_all<'i>(&self, ids: impl IntoIterator<Item = &'i String>) {
        let mut claimed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        claimed.ids.extend(ids.into_iter().cloned());
    }

    /// Returns a unique id for a call: the requested one, or a generated id if the requested id is empty, too long or
    /// taken.
    pub(super) fn claim(&self, requested: &str) -> String {
        let mut claimed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_usable = !requested.is_empty() && requested.len() <= CALL_ID_BYTES_MAX;
        if is_usable && claimed.ids.insert(requested.to_owned()) {
            return requested.to_owned();
        }
        loop {
            claimed.last_number += 1;
            let id = format!("call_{}", claimed.last_number);
            if claimed.ids.insert(id.clone()) {
                return id;
            }
        }
    }
}
