//! Limits the number of live sessions: for all principals together, and for each group of principals.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Counts and limits the live sessions of each group of principals. Clones share the counts. Without a call of
/// [`LiveSessionCounter::set_limits`], there are no limits. Only a server over HTTP sets them: over standard input, only
/// `SESSIONS_PER_PRINCIPAL_MAX` of `handle_table` applies.
#[derive(Clone, Default)]
pub(super) struct LiveSessionCounter(Arc<Mutex<CounterState>>);

struct CounterState {
    /// Maximum number of sessions of all groups.
    all_max: usize,
    /// Maximum number of sessions of one group.
    group_max: usize,
    /// The number of live sessions of each group that has one.
    live_by_group: HashMap<String, usize>,
}

impl Default for CounterState {
    fn default() -> Self {
        Self {
            all_max: usize::MAX,
            group_max: usize::MAX,
            live_by_group: HashMap::new(),
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
        let all_sessions: usize = state.live_by_group.values().sum();
        let group_sessions = state.live_by_group.get(group).copied().unwrap_or_default();
        if all_sessions >= state.all_max || group_sessions >= state.group_max {
            return None;
        }
        state.live_by_group.insert(group.to_owned(), group_sessions + 1);
        Some(SessionPermit {
            counter: self.clone(),
            group: group.to_owned(),
        })
    }

    fn state(&self) -> MutexGuard<'_, CounterState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for SessionPermit {
    fn drop(&mut self) {
        let mut state = self.counter.state();
        if let Some(group_sessions) = state.live_by_group.get_mut(&self.group) {
            *group_sessions -= 1;
            if *group_sessions == 0 {
                state.live_by_group.remove(&self.group);
            }
        }
    }
}
