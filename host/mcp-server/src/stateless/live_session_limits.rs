//! The number of live sessions, and the share of each group of principals.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Counts the live sessions of each group of principals. Clones share the count. A server over HTTP sets the limits;
/// over standard input, only `SESSIONS_PER_PRINCIPAL_MAX` applies.
#[derive(Clone, Default)]
pub(super) struct LiveSessionLimits(Arc<Mutex<SessionCounts>>);

struct SessionCounts {
    /// Maximum number of sessions of all groups.
    all_max: usize,
    /// Maximum number of sessions of one group.
    group_max: usize,
    live: HashMap<String, usize>,
}

impl Default for SessionCounts {
    fn default() -> Self {
        Self {
            all_max: usize::MAX,
            group_max: usize::MAX,
            live: HashMap::new(),
        }
    }
}

/// The permit of one live session. The session counts until the permit is dropped.
pub(super) struct SessionPermit {
    shares: LiveSessionLimits,
    group: String,
}

impl LiveSessionLimits {
    /// Sets the maximum number of sessions. `groups` is the number of groups that share them equally.
    pub(super) fn limit(&self, all_max: usize, groups: usize) {
        let mut counts = self.counts();
        counts.all_max = all_max;
        counts.group_max = (all_max / groups.max(1)).max(1);
    }

    /// Returns the permit for one more session of a group, if there is room.
    pub(super) fn permit(&self, group: &str) -> Option<SessionPermit> {
        let mut counts = self.counts();
        let all: usize = counts.live.values().sum();
        let own = counts.live.get(group).copied().unwrap_or_default();
        if all >= counts.all_max || own >= counts.group_max {
            return None;
        }
        counts.live.insert(group.to_owned(), own + 1);
        Some(SessionPermit {
            shares: self.clone(),
            group: group.to_owned(),
        })
    }

    fn counts(&self) -> MutexGuard<'_, SessionCounts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SessionPermit {
    pub(super) fn group(&self) -> &str {
        &self.group
    }
}

impl Drop for SessionPermit {
    fn drop(&mut self) {
        let mut counts = self.shares.counts();
        if let Some(live) = counts.live.get_mut(&self.group) {
            *live -= 1;
            if *live == 0 {
                counts.live.remove(&self.group);
            }
        }
    }
}
