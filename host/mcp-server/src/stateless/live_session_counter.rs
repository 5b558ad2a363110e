//! The number of live sessions, and its limits: for all principals together, and for each group of principals.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Counts and limits the live sessions of each group of principals. Clones share the count. There are no limits until a
/// server over HTTP sets them. Over standard input, only `SESSIONS_PER_PRINCIPAL_MAX` of `handle_table` applies.
#[derive(Clone, Default)]
pub(super) struct LiveSessionCounter(Arc<Mutex<CounterState>>);

struct CounterState {
    /// Maximum number of sessions of all groups.
    all_max: usize,
    /// Maximum number of sessions of one group.
    group_max: usize,
    /// The number of live sessions of each group.
    live: HashMap<String, usize>,
}

impl Default for CounterState {
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
    counter: LiveSessionCounter,
    group: String,
}

impl LiveSessionCounter {
    /// Sets the maximum number of sessions. `groups` is the number of groups that share the sessions equally. Each
    /// group may have at least one session.
    pub(super) fn set_limits(&self, all_max: usize, groups: usize) {
        let mut state = self.state();
        state.all_max = all_max;
        state.group_max = (all_max / groups.max(1)).max(1);
    }

    /// Returns the permit for one more session of a group, or `None` if a limit is reached.
    pub(super) fn permit(&self, group: &str) -> Option<SessionPermit> {
        let mut state = self.state();
        let all: usize = state.live.values().sum();
        let own = state.live.get(group).copied().unwrap_or_default();
        if all >= state.all_max || own >= state.group_max {
            return None;
        }
        state.live.insert(group.to_owned(), own + 1);
        Some(SessionPermit {
            counter: self.clone(),
            group: group.to_owned(),
        })
    }

    fn state(&self) -> MutexGuard<'_, CounterState> {
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
        let mut state = self.counter.state();
        if let Some(live) = state.live.get_mut(&self.group) {
            *live -= 1;
            if *live == 0 {
                state.live.remove(&self.group);
            }
        }
    }
}
