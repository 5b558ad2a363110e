//! The caller on whose behalf a call runs.

use std::sync::Arc;

use super::ToolContext;

/// The name of the caller on whose behalf calls run, such as a principal of a server. The context of a call has it as an
/// extension. Hosts divide processors, places for calls and memory fairly among callers. Calls without it have one caller together.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Caller(Arc<str>);

impl Caller {
    /// Creates a caller from its name, which must be unique in the host.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }

    /// Returns the caller of a call with this context, or `None` if the host does not distinguish callers.
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
