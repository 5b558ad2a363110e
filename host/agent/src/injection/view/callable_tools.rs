//! The tools of a conversation, for tools of the host.

use std::sync::Arc;

use toolwit_core::{ToolContext, ToolSet};

/// The tools that could be called when a call began. The context of host tools, such as `search_tools`, has them.
pub struct CallableTools(Arc<ToolSet>);

impl CallableTools {
    pub(crate) fn new(tools: Arc<ToolSet>) -> Self {
        Self(tools)
    }

    /// Returns the tools that the context of a call has.
    #[must_use]
    pub fn of(context: &ToolContext) -> Option<&ToolSet> {
        context.extension::<Self>().map(|tools| &*tools.0)
    }
}
