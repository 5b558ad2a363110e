//! The calls that wait for a session. A wait that could never end is refused.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use toolwit_core::{Error, ErrorKind, Phase};

/// The waiting calls of a process. [`SessionWaits::begin`] refuses a wait that could never end, such as that of two sessions
/// whose calls wait for each other.
#[derive(Debug, Default)]
pub(crate) struct SessionWaits {
    waits: Mutex<Vec<SessionWait>>,
}

/// A call that waits for a session.
#[derive(Debug)]
struct SessionWait {
    /// The numbers of the sessions that the surrounding calls hold until the waiting call ends. Empty for an outermost call.
    held: Arc<[u64]>,
    /// The number of the session for which the call waits.
    wanted: u64,
}

/// A registered wait, which ends when the guard is dropped.
#[derive(Debug)]
pub(crate) struct WaitGuard<'a> {
    waits: &'a SessionWaits,
    held: Arc<[u64]>,
    wanted: u64,
}

impl SessionWaits {
    /// Registers that a call waits for the session `wanted` while the surrounding calls hold other sessions.
    ///
    /// # Errors
    /// [`ErrorKind::Reentrant`] if `wanted` is held itself, or if it waits for one of the held sessions, directly or through
    /// others.
    pub(crate) fn begin(&self, held: Arc<[u64]>, wanted: u64) -> Result<WaitGuard<'_>, Error> {
        let mut waits = self.lock();
        if waits_for_held(&waits, wanted, &held) {
            return Err(Error::new(
                ErrorKind::Reentrant,
                Phase::Execute,
                "the call would wait for an instance that waits for this call to end",
            )
            .with_suggestion("call it again when the other call has ended"));
        }
        waits.push(SessionWait {
            held: held.clone(),
            wanted,
        });
        Ok(WaitGuard {
            waits: self,
            held,
            wanted,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Vec<SessionWait>> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether the session `from` is held, or waits for one of the held sessions, directly or through others. A session
/// becomes free only when all calls inside its call have ended. So it waits for every session for which one of these calls
/// waits.
fn waits_for_held(waits: &[SessionWait], from: u64, held: &[u64]) -> bool {
    let (mut pending, mut visited) = (vec![from], HashSet::new());
    while let Some(session) = pending.pop() {
        if held.contains(&session) {
            return true;
        }
        if visited.insert(session) {
            let inner_waits = waits.iter().filter(|wait| wait.held.contains(&session));
            pending.extend(inner_waits.map(|wait| wait.wanted));
        }
    }
    false
}

impl Drop for WaitGuard<'_> {
    fn drop(&mut self) {
        let mut waits = self.waits.lock();
        let own = |wait: &SessionWait| wait.wanted == self.wanted && Arc::ptr_eq(&wait.held, &self.held);
        if let Some(index) = waits.iter().position(own) {
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
    fn a_wait_that_closes_a_circle_is_refused() {
        let waits = SessionWaits::default();
        let begin = |held: &[u64], wanted: u64| waits.begin(held.into(), wanted);
        let first = begin(&[1], 2).unwrap();
        assert_eq!(begin(&[2], 1).unwrap_err().kind, ErrorKind::Reentrant);
        let second = begin(&[2], 3).unwrap();
        let message = begin(&[7, 3], 1).unwrap_err().message.clone();
        assert!(message.contains("waits for this call"), "{message}");
        // Outermost calls hold no session, and others can wait in a line.
        let third = begin(&[], 1).unwrap();
        let fourth = begin(&[4], 1).unwrap();
        drop((second, third, fourth));
        assert!(begin(&[3], 1).is_ok(), "2 does not wait for 3 any more");
        drop(first);
        assert!(begin(&[2], 1).is_ok());
        assert!(waits.lock().is_empty());
    }
}
