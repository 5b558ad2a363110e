//! Decisions about a call that are made before its approval.

use std::sync::{Arc, Mutex, PoisonError};

use crate::{Arguments, Tool, ToolContext, ToolError, ToolId};

/// The decisions of decorators about a call, made before its approval. A person therefore approves the arguments with which
/// the call runs.
///
/// Each decision is used once, when the call runs, and only for the same tool and arguments.
/// [`ToolContext::for_new_call`] adds an empty `PriorDecisions` to the context of a call. In a context without
/// `PriorDecisions`, the decorators decide while the call runs.
#[derive(Clone, Default)]
pub(crate) struct PriorDecisions(Arc<Mutex<Option<AllowedCall>>>);

/// A call that decorators have allowed.
struct AllowedCall {
    tool_id: ToolId,
    /// The arguments that the last decorator returned.
    arguments: Arguments,
    /// The addresses of the decorators whose decisions are not used yet.
    decorator_addresses: Vec<usize>,
}

impl PriorDecisions {
    /// Records that the decorator with this address has allowed a call with these arguments. Does nothing if the context has
    /// no `PriorDecisions`.
    pub(crate) fn record(context: &ToolContext, tool_id: &ToolId, arguments: &Arguments, decorator_address: usize) {
        let Some(decisions) = context.extension::<Self>() else {
            return;
        };
        let mut decisions = decisions.0.lock().unwrap_or_else(PoisonError::into_inner);
        let allowed_call = decisions.get_or_insert_with(|| AllowedCall {
            tool_id: tool_id.clone(),
            arguments: Arguments::new(),
            decorator_addresses: Vec::new(),
        });
        allowed_call.arguments.clone_from(arguments);
        allowed_call.decorator_addresses.push(decorator_address);
    }

    /// Removes the decision of the decorator with this address. Returns whether the decision allowed a call of this tool with
    /// exactly these arguments.
    pub(crate) fn take(
        context: &ToolContext,
        tool_id: &ToolId,
        arguments: &Arguments,
        decorator_address: usize,
    ) -> bool {
        let Some(decisions) = context.extension::<Self>() else {
            return false;
        };
        let mut decisions = decisions.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(allowed_call) = decisions.as_mut() else {
            return false;
        };
        let mut addresses = allowed_call.decorator_addresses.iter();
        let Some(position) = addresses.position(|address| *address == decorator_address) else {
            return false;
        };
        allowed_call.decorator_addresses.swap_remove(position);
        allowed_call.tool_id == *tool_id && allowed_call.arguments == *arguments
    }
}

impl ToolContext {
    /// Returns a copy for one new call. With this copy, the decorators of the tool decide before the
    /// [approval](Self::permit) of the call, not while the call runs.
    #[must_use]
    pub fn for_new_call(self) -> Self {
        self.with_extension(PriorDecisions::default())
    }

    /// Lets the decorators of a tool decide about a [new call](Self::for_new_call), the outermost first. Returns the
    /// arguments with which the call would run. If the context is not for a new call, returns the arguments unchanged.
    pub(crate) async fn prepare(&self, tool: &dyn Tool, mut arguments: Arguments) -> Result<Arguments, ToolError> {
        if self.extension::<PriorDecisions>().is_none() {
            return Ok(arguments);
        }
        let mut layer = tool;
        loop {
            let Some(inner) = layer.inner_tool() else {
                return Ok(arguments);
            };
            if let Some(decorator) = layer.decorator() {
                arguments = decorator.prepare(&**inner, arguments, self).await?;
            }
            layer = &**inner;
        }
    }
}
