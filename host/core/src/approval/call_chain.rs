//! The chain of callers of a call: the tools whose running calls make it.

use crate::{ToolContext, ToolId};

/// The tools inside which a call is made, the outermost first.
///
/// The agent loop adds each tool that it calls to the chain in the context of the call. The nested calls of an agent or a
/// plugin inherit this context, so their chains contain all their callers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallChain {
    tools: Vec<ToolId>,
    /// The id of the innermost call.
    call_id: String,
}

impl CallChain {
    /// Returns the chain of a context. The chain is empty for a call of the conversation's own model.
    #[must_use]
    pub fn of(context: &ToolContext) -> &[ToolId] {
        context.extension::<Self>().map_or(&[], |chain| &chain.tools)
    }

    /// Returns the id of the call that runs in a context; empty outside a call.
    #[must_use]
    pub fn call_id_of(context: &ToolContext) -> &str {
        context.extension::<Self>().map_or("", |chain| &chain.call_id)
    }

    /// Returns the context for a call of a tool, and for all calls that are made in it.
    #[must_use]
    pub fn enter(context: ToolContext, tool: &ToolId, call_id: impl Into<String>) -> ToolContext {
        let tools = Self::of(&context).iter().chain([tool]).cloned().collect();
        let call_id = call_id.into();
        context.with_extension(Self { tools, call_id })
    }
}
