//! The sources of values and logins, and the policy for requests of servers, that the host sets for a client.

use std::fmt;
use std::sync::Arc;

use crate::login::{LoginStore, NoLogins};
use crate::requests::{RefuseRequests, ServerRequests};
use crate::value::{NoValues, ValueSource};

/// The options that the host sets for all servers of a client: the source of secrets and environment variables, the store
/// of the user's logins, and the policy for requests of servers. By default, there are no values and no logins, and all
/// requests are refused.
#[derive(Clone)]
pub struct ClientOptions {
    pub(crate) values: Arc<dyn ValueSource>,
    pub(crate) logins: Arc<dyn LoginStore>,
    /// The policy for requests of servers.
    pub(super) requests: Arc<dyn ServerRequests>,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            values: Arc::new(NoValues),
            logins: Arc::new(NoLogins),
            requests: Arc::new(RefuseRequests),
        }
    }
}

impl ClientOptions {
    /// Sets the source of the secrets and environment variables that configurations name.
    #[must_use]
    pub fn with_values(mut self, values: impl ValueSource + 'static) -> Self {
        self.values = Arc::new(values);
        self
    }

    /// Sets the store of the logins of the user; see [`LoginRequest`](crate::LoginRequest).
    #[must_use]
    pub fn with_logins(mut self, logins: impl LoginStore + 'static) -> Self {
        self.logins = Arc::new(logins);
        self
    }

    /// Sets the policy for requests of servers.
    #[must_use]
    pub fn with_requests(mut self, requests: impl ServerRequests + 'static) -> Self {
        self.requests = Arc::new(requests);
        self
    }
}

impl fmt::Debug for ClientOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientOptions").finish_non_exhaustive()
    }
}
