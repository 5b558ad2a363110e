//! The sessions in which calls without a handle run.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::live_session::LiveSession;
use crate::principal::Principal;
use toolwit::Error;
use toolwit::registry::Registry;

/// How long calls without a handle share a session. Objects of one session can be used together; a shorter time limits what a
/// trap of a guest takes with it.
const AGE_MAX: Duration = Duration::from_secs(10 * 60);

/// Maximum number of calls without a handle in one session.
const CALLS_MAX: u32 = 500;

/// The current session of each principal. Objects of earlier sessions live on in them until their handles expire.
#[derive(Default)]
pub(super) struct CurrentSessions {
    sessions: Mutex<HashMap<String, Current>>,
}

struct Current {
    session: Arc<LiveSession>,
    packages: Registry,
    begun: Instant,
    calls: u32,
}

impl CurrentSessions {
    /// Returns the session for a call of a principal.
    ///
    /// # Errors
    /// If a new session cannot be built.
    pub(super) async fn of(&self, principal: &Principal, packages: &Registry) -> Result<Arc<LiveSession>, Error> {
        if let Some(current) = self.lock().get_mut(principal.name())
            && current.is_usable(packages)
        {
            current.calls += 1;
            return Ok(current.session.clone());
        }
        let session = Arc::new(LiveSession::begin(principal).await?);
        let current = Current {
            session: session.clone(),
            packages: packages.clone(),
            begun: Instant::now(),
            calls: 1,
        };
        self.lock().insert(principal.name().to_owned(), current);
        Ok(session)
    }

    /// Ends sessions that no further call begins in.
    pub(super) fn expire(&self) {
        self.lock().retain(|_, current| current.begun.elapsed() < AGE_MAX);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Current>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Current {
    fn is_usable(&self, packages: &Registry) -> bool {
        self.begun.elapsed() < AGE_MAX && self.calls < CALLS_MAX && self.packages.is_same(packages)
    }
}
