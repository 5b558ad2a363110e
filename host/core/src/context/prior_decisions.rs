//! Decisions about a call that are made before its approval.

use std::sync::{Arc, Mutex, PoisonError};

use crate::{Arguments, Tool, ToolContext, ToolError, ToolId};

/// The decisions of decorators about a call, made before its approval. A person therefore approves the arguments with which
/// the call runs.
///
/// Each decision is used once, when the call runs, and only for the same tool and arguments. The code that starts a call
/// adds an empty `PriorDecisions` to the context of the call; without one, the decorators decide while the call runs.
#[derive(Clone, Default)]
pub(crate) struct PriorDecisions(Arc<Mutex<Option<AllowedCall>>>);

/// A call that decorators have allowed.
struct AllowedCall {
    tool: ToolId,
    /// The arguments that the last of the decorators returned.
    arguments: Arguments,
    /// The addresses of the decorators.
    decorators: Vec<usize>,
}

impl PriorDecisions {
    /// Records that a decorator has allowed a call with these arguments, if the context has a `PriorDecisions`. `decorator` is
    /// the address of the decorator.
    pub(crate) fn record(context: &ToolContext, tool: &ToolId, arguments: &Arguments, decorator: usize) {
        let Some(decisions) = context.extension::<Self>() else {
            return;
        };
        let mut decisions = decisions.0.lock().unwrap_or_else(PoisonError::into_inner);
        let allowed_call = decisions.get_or_insert_with(|| AllowedCall {
            tool: tool.clone(),
            arguments: Arguments::new(),
            decorators: Vec::new(),
        });
        allowed_call.arguments.clone_from(arguments);
        allowed_call.decorators.push(decorator);
    }

    /// Returns whether a decorator has allowed a call of this tool with exactly these arguments. Removes the decision of the
    /// decorator, also if it was about other arguments.
    pub(crate) fn take(context: &ToolContext, tool: &ToolId, arguments: &Arguments, decorator: usize) -> bool {
        let Some(decisions) = context.extension::<Self>() else {
            return false;
        };
        let mut decisions = decisions.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(allowed_call) = decisions.as_mut() else {
            return false;
        };
        let Some(position) = allowed_call.decorators.iter().position(|address| *address == decorator) else {
            return false;
        };
        allowed_call.decorators.swap_remove(position);
        allowed_call.tool == *tool && allowed_call.arguments == *arguments
    }
}

impl ToolContext {
    /// Returns a copy for one new call. The decorators of the tool then decide before the [approval](Self::permit) of the call,
    /// not while it runs.
    #[must_use]
    pub fn for_new_call(self) -> Self {
        self.with_extension(PriorDecisions::default())
    }

    /// Lets the decorators of a tool decide about a [new call](Self::for_new_call), the outermost first. Returns the
    /// arguments with which the call would run. In another context, returns the arguments unchanged.
    pub(crate) async fn prepare(&self, tool: &dyn Tool, mut arguments: Arguments) -> Result<Arguments, ToolError> {
        if self.extension::<PriorDecisions>().is_none() {
            return Ok(arguments);
        }
        let mut layer = tool;
        loop {
            let Some(inner) = layer.decorated_tool() else {
                return Ok(arguments);
            };
            if let Some(decorator) = layer.decorator() {
                arguments = decorator.prepare(&**inner, arguments, self).await?;
            }
            layer = &**inner;
        }
    }
}
