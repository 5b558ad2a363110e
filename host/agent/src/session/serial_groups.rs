//! The order of calls that share a live object.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::OwnedMutexGuard;

/// The number of groups above which unused groups are removed.
const CLEANUP_THRESHOLD: usize = 64;

/// The locks of serial groups, so that the calls of one group run one after the other.
#[derive(Default)]
pub(super) struct SerialGroups {
    groups: Mutex<HashMap<u64, Arc<tokio::sync::Mutex<()>>>>,
}

impl SerialGroups {
    /// Waits until the earlier calls of a group have ended. Later calls wait while the returned guard exists.
    pub(super) async fn enter(&self, group: u64) -> OwnedMutexGuard<()> {
        let lock = {
            let mut groups = self.groups.lock().unwrap_or_else(PoisonError::into_inner);
            if groups.len() > CLEANUP_THRESHOLD {
                groups.retain(|_, lock| Arc::strong_count(lock) > 1);
            }
            groups.entry(group).or_default().clone()
        };
        lock.lock_owned().await
    }
}
