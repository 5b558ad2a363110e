//! The callable tools of a conversation, for tools of the host.

use std::sync::Arc;

use toolwit_core::{ToolContext, ToolSet};

/// The callable tools of a conversation at the start of a call. The loop adds them to the context of each call of a host tool,
/// such as `search_tools`.
pub struct CallableTools(Arc<ToolSet>);

impl CallableTools {
    pub(crate) fn new(tools: Arc<ToolSet>) -> Self {
        Self(tools)
    }

    /// Returns the callable tools in the context of a call, or `None` if the called tool is not a host tool.
    #[must_use]
    pub fn of(context: &ToolContext) -> Option<&ToolSet> {
        context.extension::<Self>().map(|tools| &*tools.0)
    }
}
