//! Where tools come from.

use std::sync::Arc;

use async_trait::async_trait;

use toolwit_core::Error;
use toolwit_core::{Tool, ToolContext};

/// A place that offers tools: plugins, Rust code, a server that must be connected to first.
///
/// A source is asked when its tools are first needed, with the context of whoever needs them: a server that wants the caller's
/// token finds it there. It keeps what it may keep from one question to the next.
#[async_trait]
pub trait ToolSource: Send + Sync {
    /// Its name, by which a group's `provider` means it.
    fn name(&self) -> &str;

    /// Returns what it offers.
    ///
    /// # Errors
    /// Why it cannot be reached.
    async fn tools(&self, context: &ToolContext) -> Result<Vec<Arc<dyn Tool>>, Error>;
}

/// Tools that are there.
pub struct FixedTools {
    name: String,
    tools: Vec<Arc<dyn Tool>>,
}

impl FixedTools {
    /// Offers these tools under a name.
    #[must_use]
    pub fn new(name: impl Into<String>, tools: Vec<Arc<dyn Tool>>) -> Self {
        Self {
            name: name.into(),
            tools,
        }
    }
}

#[async_trait]
impl ToolSource for FixedTools {
    fn name(&self) -> &str {
        &self.name
    }

    async fn tools(&self, _context: &ToolContext) -> Result<Vec<Arc<dyn Tool>>, Error> {
        Ok(self.tools.clone())
    }
}
