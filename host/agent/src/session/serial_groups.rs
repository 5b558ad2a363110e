//! Locks for calls that must run one after the other, such as the calls on one live object.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::OwnedMutexGuard;

/// The number of stored locks above which unused locks are removed.
const CLEANUP_THRESHOLD: usize = 64;

/// The locks of [serial groups](toolwit_core::Tool::serial_group). The calls of one group run one after the other.
#[derive(Default)]
pub(super) struct SerialGroups {
    /// The lock of each group, by the number of the group.
    locks: Mutex<HashMap<u64, Arc<tokio::sync::Mutex<()>>>>,
}

impl SerialGroups {
    /// Waits until the earlier calls of a group have ended. Later calls wait while the returned guard exists.
    pub(super) async fn enter(&self, group: u64) -> OwnedMutexGuard<()> {
        let lock = {
            let mut locks = self.locks.lock().unwrap_or_else(PoisonError::into_inner);
            if locks.len() > CLEANUP_THRESHOLD {
                locks.retain(|_, lock| Arc::strong_count(lock) > 1);
            }
            locks.entry(group).or_default().clone()
        };
        lock.lock_owned().await
    }
}
