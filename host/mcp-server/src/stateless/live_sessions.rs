//! The live sessions of all principals.

use std::collections::HashMap;
use std::sync::Arc;

use super::current_sessions::CurrentSessions;
use super::handle_table::HandleTable;
use super::live_session::LiveSession;
use super::live_session_counter::{LiveSessionCounter, SessionPermit};
use crate::principal::Principal;
use toolwit::registry::Registry;
use toolwit::{Error, ErrorKind, Phase};

/// The sessions in which calls run: the current sessions of principals, and the sessions that have handles. The number of
/// sessions is limited.
#[derive(Default)]
pub(super) struct LiveSessions {
    current: CurrentSessions,
    pub(super) handles: HandleTable,
    pub(super) counter: LiveSessionCounter,
}

impl LiveSessions {
    /// Returns the session for a call without a handle. If a new session would exceed a limit, ends the least recently
    /// used idle session of the principal's group first.
    ///
    /// # Errors
    /// [`ErrorKind::Busy`] if there are too many sessions, and each session of the group runs a call. Another error if a
    /// new session cannot be built.
    pub(super) async fn current(&self, principal: &Principal, packages: &Registry) -> Result<Arc<LiveSession>, Error> {
        if let Some(session) = self.current.for_call(principal, packages) {
            return Ok(session);
        }
        let Some(permit) = self.permit(principal.group()) else {
            let message = "the server runs too many calls in other sessions; repeat the call later";
            return Err(Error::new(ErrorKind::Busy, Phase::Execute, message));
        };
        let session = Arc::new(LiveSession::begin(principal, Some(permit)).await?);
        self.current.set(principal, session.clone(), packages.clone());
        Ok(session)
    }

    /// Counts the session of a client, because it has handles from now on. Returns `false` if there are too many sessions, and
    /// each session of the group runs a call.
    pub(super) fn count(&self, session: &LiveSession) -> bool {
        if session.is_counted() {
            return true;
        }
        let permit = self.permit(session.group());
        permit.map(|permit| session.count(permit)).is_some()
    }

    /// Returns the permit of a new session. Ends idle sessions of the group if there are too many. `None` if no session of the
    /// group is idle.
    fn permit(&self, group: &str) -> Option<SessionPermit> {
        loop {
            if let Some(permit) = self.counter.permit(group) {
                return Some(permit);
            }
            if !self.end_idle(group) {
                return None;
            }
        }
    }

    /// Removes the sessions whose handles have expired, and the current sessions that are too old for further calls.
    pub(super) fn expire(&self) {
        self.handles.expire();
        self.current.expire();
    }

    /// Ends the least recently used idle session of a group. Returns whether a session was ended.
    fn end_idle(&self, group: &str) -> bool {
        let mut sessions: HashMap<*const LiveSession, (Arc<LiveSession>, usize)> = HashMap::new();
        for session in self.current.sessions().into_iter().chain(self.handles.sessions()) {
            sessions.entry(Arc::as_ptr(&session)).or_insert((session, 0)).1 += 1;
        }
        // Each table and this map hold one reference to a session. A running call holds another reference.
        let is_idle =
            |(session, table_count): &(Arc<LiveSession>, usize)| Arc::strong_count(session) == table_count + 1;
        let group_sessions = sessions.into_values().filter(|(session, _)| session.group() == group);
        let oldest = group_sessions
            .filter(is_idle)
            .min_by_key(|(session, _)| session.last_use());
        let Some((session, _)) = oldest else { return false };
        self.current.remove(&session);
        self.handles.remove(&session);
        true
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Weak;
    use std::time::Duration;

    use super::*;
    use toolwit::Toolwit;

    // attack: G12
    #[tokio::test(start_paused = true)]
    async fn subjects_of_a_rule_share_its_session_limit() {
        let host = Toolwit::builder().build().await.unwrap();
        let packages = host.registry();
        let rule = Principal::new("rule", host.clone());
        let other_rule = Principal::new("other", host.clone());
        let sessions = LiveSessions::default();
        sessions.counter.set_limits(4, 2);
        let begin = async |principal: &Principal| {
            tokio::time::advance(Duration::from_millis(1)).await;
            sessions.current(principal, &packages).await
        };
        let subject = |number: usize| rule.of_subject(&number.to_string());
        let first = Arc::downgrade(&begin(&subject(1)).await.unwrap());
        let second = Arc::downgrade(&begin(&subject(2)).await.unwrap());
        assert!(begin(&subject(1)).await.unwrap().last_use() > second.upgrade().unwrap().last_use());
        let third = begin(&subject(3)).await.unwrap();
        assert_eq!(
            (Weak::strong_count(&first), Weak::strong_count(&second)),
            (1, 0),
            "the least recently used session has ended"
        );
        // Both sessions of the rule run a call.
        let _busy = (first.upgrade().unwrap(), third);
        let refused = begin(&subject(4)).await.err().unwrap();
        assert_eq!(refused.kind, ErrorKind::Busy);
        assert!(begin(&other_rule).await.is_ok(), "another rule has its own limit");
    }

    #[tokio::test]
    async fn a_session_that_ends_releases_its_permit() {
        let host = Toolwit::builder().build().await.unwrap();
        let sessions = LiveSessions::default();
        sessions.counter.set_limits(1, 1);
        let ann = Principal::new("ann", host.clone());
        for _ in 0..3 {
            // Other packages need another session, which replaces the idle session.
            let packages = Toolwit::builder().build().await.unwrap().registry();
            assert!(sessions.current(&ann, &packages).await.is_ok());
        }
        assert!(sessions.counter.permit("bob").is_none());
        sessions.current.remove(&sessions.current.sessions()[0]);
        assert!(sessions.counter.permit("bob").is_some());
    }
}
