//! The waits of calls for a session. A wait that could never end is refused.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use toolwit_core::{Error, ErrorKind, Phase};

/// The waits of all calls for sessions. [`SessionWaits::begin`] refuses a wait that could never end. An example is two sessions
/// whose calls would wait for each other.
#[derive(Debug, Default)]
pub(crate) struct SessionWaits {
    waits: Mutex<Vec<SessionWait>>,
}

/// The wait of a call for a session.
#[derive(Debug)]
struct SessionWait {
    /// The numbers of the sessions that the surrounding calls hold until the waiting call ends. Empty for an outermost call.
    held_sessions: Arc<[u64]>,
    /// The number of the session for which the call waits.
    wanted_session: u64,
}

/// A registered wait, which ends when the guard is dropped.
#[derive(Debug)]
pub(crate) struct WaitGuard<'a> {
    waits: &'a SessionWaits,
    held_sessions: Arc<[u64]>,
    wanted_session: u64,
}

impl SessionWaits {
    /// Registers that a call waits for `wanted_session` while the surrounding calls hold `held_sessions`.
    ///
    /// # Errors
    /// [`ErrorKind::Reentrant`] if `wanted_session` is one of the held sessions, or waits for one of them, directly or through
    /// other sessions.
    pub(crate) fn begin(&self, held_sessions: Arc<[u64]>, wanted_session: u64) -> Result<WaitGuard<'_>, Error> {
        let mut waits = self.lock();
        if waits_for_held(&waits, wanted_session, &held_sessions) {
            return Err(Error::new(
                ErrorKind::Reentrant,
                Phase::Execute,
                "the call would wait for an instance that waits for this call to end",
            )
            .with_suggestion("call it again when the other call has ended"));
        }
        waits.push(SessionWait {
            held_sessions: held_sessions.clone(),
            wanted_session,
        });
        Ok(WaitGuard {
            waits: self,
            held_sessions,
            wanted_session,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Vec<SessionWait>> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether `session` is one of the held sessions, or waits for one of them, directly or through other sessions.
///
/// A session waits for another one if a call inside its current call waits for the other one, because the session becomes free
/// only when all calls inside its current call have ended.
fn waits_for_held(waits: &[SessionWait], session: u64, held_sessions: &[u64]) -> bool {
    let (mut pending, mut visited) = (vec![session], HashSet::new());
    while let Some(session) = pending.pop() {
        if held_sessions.contains(&session) {
            return true;
        }
        if visited.insert(session) {
            let inner_waits = waits.iter().filter(|wait| wait.held_sessions.contains(&session));
            pending.extend(inner_waits.map(|wait| wait.wanted_session));
        }
    }
    false
}

impl Drop for WaitGuard<'_> {
    fn drop(&mut self) {
        let mut waits = self.waits.lock();
        let is_this_wait = |wait: &SessionWait| {
            wait.wanted_session == self.wanted_session && Arc::ptr_eq(&wait.held_sessions, &self.held_sessions)
        };
        if let Some(index) = waits.iter().position(is_this_wait) {
            waits.swap_remove(index);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    // attack: K9
    #[test]
    fn a_wait_that_closes_a_cycle_is_refused() {
        let waits = SessionWaits::default();
        let begin = |held_sessions: &[u64], wanted_session: u64| waits.begin(held_sessions.into(), wanted_session);
        let first = begin(&[1], 2).unwrap();
        assert_eq!(begin(&[2], 1).unwrap_err().kind, ErrorKind::Reentrant);
        let second = begin(&[2], 3).unwrap();
        let message = begin(&[7, 3], 1).unwrap_err().message.clone();
        assert!(message.contains("waits for this call"), "{message}");
        // An outermost call holds no session, and a chain of waits is not a cycle.
        let third = begin(&[], 1).unwrap();
        let fourth = begin(&[4], 1).unwrap();
        drop((second, third, fourth));
        assert!(begin(&[3], 1).is_ok(), "session 2 no longer waits for session 3");
        drop(first);
        assert!(begin(&[2], 1).is_ok());
        assert!(waits.lock().is_empty());
    }
}
