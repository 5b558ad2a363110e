//! The chain of callers of a call: the tools inside which it is made.

use crate::{ToolContext, ToolId};

/// The tools inside which a call is made, the outermost first. When the call of a tool begins, the loop adds the tool
/// to the context of the call, so that calls that an agent or a plugin makes have all their callers in it.
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
