//! The name of the principal on whose behalf a call runs.

use std::sync::Arc;

use super::ToolContext;

/// The name of the caller on whose behalf calls run, such as a principal of a server. The context of a call has it as an
/// extension. Hosts divide processors, places for calls and memory fairly among principals. Calls without it have one share together.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PrincipalName(Arc<str>);

impl PrincipalName {
    /// Creates a name, which must be unique in the host.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }

    /// Returns the name in the context of a call, or `None` if the host does not distinguish principals.
    #[must_use]
    pub fn of(context: &ToolContext) -> Option<Self> {
        context.extension::<Self>().cloned()
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0
    }
}
