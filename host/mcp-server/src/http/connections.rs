//! The connections of a listener, and how callers share them.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::principal::Principal;

/// The part of the connections that clients without a known token can keep when all connections are open: one in this
/// number, and at least one connection.
const UNADMITTED_PART: usize = 8;

/// The open connections of a listener, and their maximum number.
///
/// A connection is admitted once it has sent a request of a known caller. It then counts for this caller. If the maximum
/// number of connections is open, a new connection replaces another one:
///
/// - the oldest connection that is not admitted, if there are more of them than their part, or
/// - the connection of the caller with the most connections that has been idle for the longest time. The tokens and rules
///   are compared first, then the subjects of a rule.
///
/// A connection with a request that is not answered yet is never replaced. The number of such requests is limited for each
/// caller, so that no caller can exclude others.
pub(super) struct Connections {
    max: usize,
    state: Mutex<ConnectionsState>,
    /// Notified when a connection ends, or can be replaced.
    freed: Notify,
}

#[derive(Default)]
struct ConnectionsState {
    /// The open connections by their numbers, in the order of opening. A connection that was replaced is removed.
    open: BTreeMap<u64, ConnectionRecord>,
    next_number: u64,
    /// The number of uses of all connections, which orders the connections by their last use.
    uses: u64,
}

struct ConnectionRecord {
    /// The caller of the last request. `None` if the connection is not admitted.
    owner: Option<Owner>,
    /// The number of requests that are not answered yet.
    pending_count: usize,
    last_use: u64,
    /// Cancelled when another connection replaces this one.
    replaced: CancellationToken,
}

/// The caller for which a connection counts: the name of the principal, and its group.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Owner {
    group: Arc<str>,
    principal: Arc<str>,
}

/// An open connection. It is counted until it is dropped or replaced by another connection.
pub(super) struct OpenConnection {
    connections: Arc<Connections>,
    number: u64,
    replaced: CancellationToken,
}

/// A request that is not answered yet. No other connection replaces its connection until this value is dropped.
pub(super) struct BusyConnection {
    connections: Arc<Connections>,
    number: u64,
}

impl Connections {
    pub(super) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self {
            max,
            state: Mutex::default(),
            freed: Notify::new(),
        })
    }

    /// Returns the number of connections that clients without a known token can keep, out of `max`.
    pub(super) fn unadmitted_max(max: usize) -> usize {
        (max / UNADMITTED_PART).max(1)
    }

    /// Waits until [`Connections::open`] can succeed.
    pub(super) async fn wait_for_slot(&self) {
        loop {
            let freed = self.freed.notified();
            if self.has_slot(&self.state()) {
                return;
            }
            freed.await;
        }
    }

    /// Opens a connection. If the maximum number of connections is open, replaces another one. Returns `None` if none can be
    /// replaced.
    pub(super) fn open(self: &Arc<Self>) -> Option<OpenConnection> {
        let mut state = self.state();
        if state.open.len() >= self.max {
            let number = state.replaceable(Self::unadmitted_max(self.max))?;
            state.open.remove(&number)?.replaced.cancel();
        }
        let number = state.next_number;
        state.next_number += 1;
        let replaced = CancellationToken::new();
        let record = ConnectionRecord {
            owner: None,
            pending_count: 0,
            last_use: state.next_use(),
            replaced: replaced.clone(),
        };
        state.open.insert(number, record);
        drop(state);
        Some(OpenConnection {
            connections: self.clone(),
            number,
            replaced,
        })
    }

    fn has_slot(&self, state: &ConnectionsState) -> bool {
        state.open.len() < self.max || state.replaceable(Self::unadmitted_max(self.max)).is_some()
    }

    fn state(&self) -> MutexGuard<'_, ConnectionsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConnectionsState {
    fn next_use(&mut self) -> u64 {
        self.uses += 1;
        self.uses
    }

    /// Returns the number of the connection that a new one replaces. `None` if all connections have pending requests.
    fn replaceable(&self, unadmitted_max: usize) -> Option<u64> {
        let mut unadmitted = self.open.iter().filter(|(_, record)| record.owner.is_none());
        let oldest_unadmitted = unadmitted.next().map(|(number, _)| *number);
        if 1 + unadmitted.count() >= unadmitted_max && oldest_unadmitted.is_some() {
            return oldest_unadmitted;
        }
        self.idle_of_largest_owner().or(oldest_unadmitted)
    }

    /// Returns the number of the connection that has been idle for the longest time, among those of the owner with the most
    /// connections.
    fn idle_of_largest_owner(&self) -> Option<u64> {
        let mut group_counts: HashMap<&str, usize> = HashMap::new();
        let mut owner_counts: HashMap<&Owner, usize> = HashMap::new();
        for owner in self.open.values().filter_map(|record| record.owner.as_ref()) {
            *group_counts.entry(&owner.group).or_default() += 1;
            *owner_counts.entry(owner).or_default() += 1;
        }
        let idle = self.open.iter().filter(|(_, record)| record.pending_count == 0);
        let ranked = idle.filter_map(|(number, record)| {
            let owner = record.owner.as_ref()?;
            let counts = (group_counts.get(&*owner.group)?, owner_counts.get(owner)?);
            Some(((counts, std::cmp::Reverse(record.last_use)), *number))
        });
        ranked.max_by_key(|(rank, _)| *rank).map(|(_, number)| number)
    }
}

impl OpenConnection {
    /// Admits the connection, because it sent a request of a known caller. It counts for this caller from now on.
    pub(super) fn admit(&self, principal: &Principal) {
        let mut state = self.connections.state();
        let last_use = state.next_use();
        if let Some(record) = state.open.get_mut(&self.number) {
            record.last_use = last_use;
            let is_same = |owner: &Owner| *owner.principal == *principal.name();
            if !record.owner.as_ref().is_some_and(is_same) {
                record.owner = Some(Owner {
                    group: principal.group().into(),
                    principal: principal.name().into(),
                });
            }
        }
    }

    /// Counts a request until the returned value is dropped.
    pub(super) fn begin_request(&self) -> BusyConnection {
        if let Some(record) = self.connections.state().open.get_mut(&self.number) {
            record.pending_count += 1;
        }
        BusyConnection {
            connections: self.connections.clone(),
            number: self.number,
        }
    }

    /// Waits until another connection replaces this one.
    pub(super) async fn wait_until_replaced(&self) {
        self.replaced.cancelled().await;
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        // A connection that was replaced is not in the map any more.
        self.connections.state().open.remove(&self.number);
        self.connections.freed.notify_one();
    }
}

impl Drop for BusyConnection {
    fn drop(&mut self) {
        let mut state = self.connections.state();
        let last_use = state.next_use();
        if let Some(record) = state.open.get_mut(&self.number) {
            record.pending_count -= 1;
            record.last_use = last_use;
        }
        drop(state);
        self.connections.freed.notify_one();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use toolwit::Toolwit;

    async fn principals() -> (Principal, Principal) {
        let host = Toolwit::builder().build().await.unwrap();
        (Principal::new("ada", host.clone()), Principal::new("bob", host))
    }

    fn is_replaced(connection: &OpenConnection) -> bool {
        connection.replaced.is_cancelled()
    }

    #[tokio::test]
    async fn the_oldest_connection_that_is_not_admitted_is_replaced() {
        let (ada, _) = principals().await;
        let connections = Connections::new(2);
        let first = connections.open().unwrap();
        let second = connections.open().unwrap();
        first.admit(&ada);
        let third = connections.open().unwrap();
        second.wait_until_replaced().await;
        assert!(!is_replaced(&first) && !is_replaced(&third));
    }

    // attack: G17
    #[tokio::test]
    async fn idle_connections_of_one_caller_give_way_to_other_callers() {
        let (ada, bob) = principals().await;
        let connections = Connections::new(16);
        let adas: Vec<_> = (0..15).map(|_| connections.open().unwrap()).collect();
        adas.iter().for_each(|connection| connection.admit(&ada));
        let mut bobs = vec![connections.open().unwrap()];
        bobs[0].admit(&bob);
        let busy = adas[0].begin_request();
        for replaced in 1..4 {
            let new = connections.open().unwrap();
            assert!(
                is_replaced(&adas[replaced]),
                "the connection that was idle for the longest time"
            );
            new.admit(&bob);
            bobs.push(new);
        }
        assert!(!is_replaced(&adas[0]), "its request is not answered");
        assert!(!bobs.iter().any(is_replaced), "another caller has more connections");
        drop(busy);
        // Now the connection was used last.
        drop(connections.open().unwrap());
        assert!(!is_replaced(&adas[0]));
    }

    // attack: G17
    #[tokio::test]
    async fn connections_without_a_caller_keep_a_small_part() {
        let (ada, _) = principals().await;
        let connections = Connections::new(16);
        let admitted: Vec<_> = (0..14).map(|_| connections.open().unwrap()).collect();
        admitted.iter().for_each(|connection| connection.admit(&ada));
        let waiting = [connections.open().unwrap(), connections.open().unwrap()];
        let new = connections.open().unwrap();
        assert!(is_replaced(&waiting[0]), "there were as many as their part");
        assert!(admitted.iter().all(|connection| !is_replaced(connection)));
        drop(waiting);
        let second = connections.open().unwrap();
        assert!(!is_replaced(&new) && !is_replaced(&second));
    }

    #[tokio::test]
    async fn subjects_of_a_rule_are_compared_with_each_other_only() {
        let (rule, token) = principals().await;
        let connections = Connections::new(6);
        let open = |principal: &Principal| {
            let connection = connections.open().unwrap();
            connection.admit(principal);
            connection
        };
        let of_token = [open(&token), open(&token)];
        let subjects = ["1", "1", "2", "3"].map(|subject| open(&rule.of_subject(subject)));
        let _new = connections.open().unwrap();
        assert!(
            is_replaced(&subjects[0]),
            "the rule has most connections, and this subject of the rule"
        );
        assert!(
            of_token
                .iter()
                .chain(&subjects[1..])
                .all(|connection| !is_replaced(connection))
        );
    }

    #[tokio::test]
    async fn a_slot_becomes_free_when_a_request_is_answered() {
        let (ada, _) = principals().await;
        let connections = Connections::new(1);
        let only = connections.open().unwrap();
        only.admit(&ada);
        let busy = only.begin_request();
        assert!(connections.open().is_none());
        let waiting = tokio::spawn({
            let connections = connections.clone();
            async move { connections.wait_for_slot().await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        drop(busy);
        waiting.await.unwrap();
        assert!(connections.open().is_some());
    }
}
