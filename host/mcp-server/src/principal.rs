//! Who calls.

use std::fmt;
use std::sync::Arc;

use toolwit::{ToolContext, Toolwit};

/// A caller of the server, with the tools that it may use. All requests of the standard input have one principal; over HTTP, each
/// bearer token has one.
#[derive(Clone)]
pub struct Principal {
    name: Arc<str>,
    host: Toolwit,
    context: ToolContext,
    may_use: Arc<dyn Fn(&str) -> bool + Send + Sync>,
}

impl Principal {
    /// Creates a principal that may use all tools of a host.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>, host: Toolwit) -> Self {
        Self {
            name: name.into(),
            host,
            context: ToolContext::new(),
            may_use: Arc::new(|_| true),
        }
    }

    /// Restricts the principal to the tools whose id `may_use` accepts; see
    /// [`Toolwit::conversation_among`](toolwit::Toolwit::conversation_among).
    #[must_use]
    pub fn restricted_to(mut self, may_use: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        self.may_use = Arc::new(may_use);
        self
    }

    /// Sets the context of its calls, such as a tenant. A client cannot change these values.
    #[must_use]
    pub fn with_context(mut self, context: ToolContext) -> Self {
        self.context = context;
        self
    }

    /// Returns its name, which is unique in a server.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the host with its tools.
    #[must_use]
    pub fn host(&self) -> &Toolwit {
        &self.host
    }

    /// Returns whether the principal may use a tool.
    #[must_use]
    pub fn may_use(&self, tool: &str) -> bool {
        (self.may_use)(tool)
    }

    /// Returns the context of its calls.
    #[must_use]
    pub fn context(&self) -> &ToolContext {
        &self.context
    }

    /// Returns the rule that decides which tools it may use.
    pub(crate) fn rule(&self) -> Arc<dyn Fn(&str) -> bool + Send + Sync> {
        self.may_use.clone()
    }
}

impl fmt::Debug for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Principal")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
