//! The order of calls that share a live object.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::OwnedMutexGuard;

/// The number of groups above which unused ones are removed.
const GROUPS_KEPT: usize = 64;

/// The serial groups with waiting or running calls. Calls of one group run in the order in which they were made.
#[derive(Default)]
pub(super) struct SerialGroups {
    groups: Mutex<HashMap<u64, Arc<tokio::sync::Mutex<()>>>>,
}

impl SerialGroups {
    /// Waits until the earlier calls of a group have ended. The call runs while the guard exists.
    pub(super) async fn enter(&self, group: u64) -> OwnedMutexGuard<()> {
        let lock = {
            let mut groups = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
            if groups.len() > GROUPS_KEPT {
                groups.retain(|_, lock| Arc::strong_count(lock) > 1);
            }
            groups.entry(group).or_default().clone()
        };
        lock.lock_owned().await
    }
}
