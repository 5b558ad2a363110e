//! The tools in which a call is made.

use crate::{ToolContext, ToolId};

/// The tools in which a call is made, the outermost first. The loop adds each tool whose call begins to the context of that call, so
/// that calls of agents and of plugins know all their callers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallChain {
    tools: Vec<ToolId>,
    /// The id of the innermost call.
    call: String,
}

impl CallChain {
    /// Returns the chain of a context. It is empty for a call of the outermost model.
    #[must_use]
    pub fn of(context: &ToolContext) -> &[ToolId] {
        context.extension::<Self>().map_or(&[], |chain| &chain.tools)
    }

    /// Returns the id of the call that runs in a context; empty outside a call.
    #[must_use]
    pub fn id_of(context: &ToolContext) -> &str {
        context.extension::<Self>().map_or("", |chain| &chain.call)
    }

    /// Returns the context for a call of a tool, and for all calls that are made in it.
    #[must_use]
    pub fn enter(context: ToolContext, tool: &ToolId, call: impl Into<String>) -> ToolContext {
        let tools = Self::of(&context).iter().chain([tool]).cloned().collect();
        let call = call.into();
        context.with_extension(Self { tools, call })
    }
}
