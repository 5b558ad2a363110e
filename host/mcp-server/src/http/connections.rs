//! The connections of a listener.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// The open connections of a listener, and their maximum number.
///
/// A connection is admitted once it has sent a request of a known caller. If the maximum number of connections is open, a
/// new connection replaces the oldest connection that is not admitted. So clients without a token cannot block other
/// clients.
pub(super) struct Connections {
    max: usize,
    state: Mutex<ConnectionsState>,
    /// Notified when a connection ends.
    ended: Notify,
}

#[derive(Default)]
struct ConnectionsState {
    open_count: usize,
    /// The connections that are not admitted, by their numbers. Connections are numbered in the order of opening.
    not_admitted: BTreeMap<u64, CancellationToken>,
    next_number: u64,
}

/// An open connection. It is counted until it is dropped or replaced by another connection.
pub(super) struct OpenConnection {
    connections: Arc<Connections>,
    number: u64,
    /// Cancelled when another connection replaces this one.
    replaced: CancellationToken,
}

impl Connections {
    pub(super) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self {
            max,
            state: Mutex::default(),
            ended: Notify::new(),
        })
    }

    /// Waits until [`Connections::open`] can succeed.
    pub(super) async fn wait_for_slot(&self) {
        loop {
            let ended = self.ended.notified();
            if self.has_slot(&self.state()) {
                return;
            }
            ended.await;
        }
    }

    /// Opens a connection. If the maximum number of connections is open, replaces the oldest connection that is not
    /// admitted. Returns `None` if all of them are admitted.
    pub(super) fn open(self: &Arc<Self>) -> Option<OpenConnection> {
        let mut state = self.state();
        if !self.has_slot(&state) {
            return None;
        }
        if state.open_count == self.max {
            let (_, replaced) = state.not_admitted.pop_first()?;
            replaced.cancel();
        } else {
            state.open_count += 1;
        }
        let number = state.next_number;
        state.next_number += 1;
        let replaced = CancellationToken::new();
        state.not_admitted.insert(number, replaced.clone());
        Some(OpenConnection {
            connections: self.clone(),
            number,
            replaced,
        })
    }

    fn has_slot(&self, state: &ConnectionsState) -> bool {
        state.open_count < self.max || !state.not_admitted.is_empty()
    }

    fn state(&self) -> MutexGuard<'_, ConnectionsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OpenConnection {
    /// Admits the connection, because it sent a request of a known caller.
    pub(super) fn admit(&self) {
        self.connections.state().not_admitted.remove(&self.number);
    }

    /// Waits until another connection replaces this one.
    pub(super) async fn wait_until_replaced(&self) {
        self.replaced.cancelled().await;
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        let mut state = self.connections.state();
        state.not_admitted.remove(&self.number);
        // If another connection replaced this one, `open_count` counts the other connection.
        if !self.replaced.is_cancelled() {
            state.open_count -= 1;
        }
        drop(state);
        self.connections.ended.notify_one();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_oldest_connection_that_is_not_admitted_is_replaced() {
        let connections = Connections::new(2);
        let first = connections.open().unwrap();
        let second = connections.open().unwrap();
        first.admit();
        let third = connections.open().unwrap();
        second.wait_until_replaced().await;
        assert!(!first.replaced.is_cancelled() && !third.replaced.is_cancelled());
        drop(second);
        third.admit();
        assert!(connections.open().is_none(), "both open connections are admitted");
        drop(first);
        connections.wait_for_slot().await;
        assert!(connections.open().is_some());
    }

    #[tokio::test]
    async fn a_slot_becomes_free_when_an_admitted_connection_ends() {
        let connections = Connections::new(1);
        let only = connections.open().unwrap();
        only.admit();
        let waiting = tokio::spawn({
            let connections = connections.clone();
            async move { connections.wait_for_slot().await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(only);
        waiting.await.unwrap();
    }
}
