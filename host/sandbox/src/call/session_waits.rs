//! The calls that wait for a session, so that a wait that could never end is refused.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use toolwit_core::{Error, ErrorKind, Phase};

/// The waiting calls of a process. Two sessions whose calls wait for each other would both wait until their deadlines.
#[derive(Debug, Default)]
pub(crate) struct SessionWaits {
    waits: Mutex<Vec<SessionWait>>,
}

/// A nested call that waits for a session.
#[derive(Debug)]
struct SessionWait {
    /// The sessions that the calls around it hold until it ends.
    held: Arc<[u64]>,
    wanted: u64,
}

/// A registered wait, which ends when it is dropped.
#[derive(Debug)]
pub(crate) struct WaitGuard<'a> {
    waits: &'a SessionWaits,
    held: Arc<[u64]>,
    wanted: u64,
}

impl SessionWaits {
    /// Registers that a call waits for a session while the calls around it hold others.
    ///
    /// # Errors
    /// [`ErrorKind::Reentrant`] if the wanted session waits, directly or through others, for one of the held sessions.
    pub(crate) fn begin(&self, held: Arc<[u64]>, wanted: u64) -> Result<WaitGuard<'_>, Error> {
        let mut waits = self.lock();
        if leads_to(&waits, wanted, &held) {
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

/// Returns whether the call in a session waits for one of the held sessions. A session is free only when all calls
/// inside its call have ended, so it waits for every session for which one of these calls waits.
fn leads_to(waits: &[SessionWait], from: u64, held: &[u64]) -> bool {
    let (mut pending, mut visited) = (vec![from], HashSet::new());
    while let Some(session) = pending.pop() {
        if held.contains(&session) {
            return true;
        }
        if visited.insert(session) {
            let inside = waits.iter().filter(|wait| wait.held.contains(&session));
            pending.extend(inside.map(|wait| wait.wanted));
        }
    }
    false
}

impl Drop for WaitGuard<'_> {
    fn drop(&mut self) {
        let mut waits = self.waits.lock();
        let own = |wait: &SessionWait| wait.wanted == self.wanted && Arc::ptr_eq(&wait.held, &self.held);
        if let Some(at) = waits.iter().position(own) {
            waits.swap_remove(at);
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
