//! The interface that decides whether a call may start.

use std::sync::Arc;

use async_trait::async_trait;

use crate::{Arguments, CallAccess, Tool, ToolContext, ToolError};

/// A call that is about to start.
#[non_exhaustive]
pub struct StartingCall<'a> {
    /// An id that is unique in the conversation and its agents. An [`ApprovalGate`](super::ApprovalGate) does not know the id
    /// of its call, and uses `gate`.
    pub id: String,
    /// The tool.
    pub tool: &'a dyn Tool,
    /// The arguments, after [lossless repairs](crate::parse_arguments) of their text.
    pub arguments: Arguments,
    /// The context that the tool will receive. Its [chain](super::CallChain) lists the callers.
    pub context: &'a ToolContext,
}

impl<'a> StartingCall<'a> {
    /// Describes a call that is about to start.
    #[must_use]
    pub fn new(id: impl Into<String>, tool: &'a dyn Tool, arguments: Arguments, context: &'a ToolContext) -> Self {
        Self {
            id: id.into(),
            tool,
            arguments,
            context,
        }
    }
}

/// A call that may start.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PermittedCall {
    /// The arguments with which the call runs.
    pub arguments: Arguments,
    /// The effect class and the grant at the time of the decision.
    pub access: CallAccess,
    /// Whether an approver replaced the arguments.
    pub is_edited: bool,
}

impl PermittedCall {
    pub(super) fn unchanged(arguments: Arguments, access: CallAccess) -> Self {
        Self {
            arguments,
            access,
            is_edited: false,
        }
    }

    pub(super) fn edited(arguments: Arguments, access: CallAccess) -> Self {
        Self {
            arguments,
            access,
            is_edited: true,
        }
    }
}

/// Decides whether a call may start. The guard decides directly before each call of a model, a plugin, an agent or a
/// background task.
///
/// A loop sets the guard in the [context](ToolContext::with_guard) of its calls. Code that starts a call itself, without
/// [`ToolContext::tools`], must call [`ToolContext::permit`] first.
#[async_trait]
pub trait CallGuard: Send + Sync {
    /// Decides whether a call may start, and with which arguments.
    ///
    /// # Errors
    /// [`ErrorKind::Denied`](crate::ErrorKind::Denied) with the reason for the model;
    /// [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled) if the call was cancelled before the decision;
    /// [`ErrorKind::InvalidArguments`](crate::ErrorKind::InvalidArguments) if the call needs an approval, but its arguments
    /// do not match the schema; a [`ToolError::Operator`] if the schema itself is not valid.
    async fn permit(&self, call: StartingCall<'_>) -> Result<PermittedCall, ToolError>;

    /// Returns the access of a call, with the effect class of the operator's policy if the policy sets one. By default,
    /// returns the access that the tool computes.
    async fn access(&self, tool: &dyn Tool, arguments: &Arguments, context: &ToolContext) -> CallAccess {
        tool.access(arguments, context).await
    }
}

impl ToolContext {
    /// Sets the guard that decides about all calls that are made with this context.
    #[must_use]
    pub fn with_guard(self, guard: Arc<dyn CallGuard>) -> Self {
        self.with_extension(guard)
    }

    /// Returns the guard, if calls with this context need its permission.
    #[must_use]
    pub fn guard(&self) -> Option<&Arc<dyn CallGuard>> {
        self.extension::<Arc<dyn CallGuard>>()
    }

    /// Returns the access that a call of a tool would have in this context.
    pub async fn access(&self, tool: &dyn Tool, arguments: &Arguments) -> CallAccess {
        match self.guard() {
            Some(guard) => guard.access(tool, arguments, self).await,
            None => tool.access(arguments, self).await,
        }
    }

    /// Decides whether a call may start. If the context of the call is that of a [new call](Self::for_new_call), the
    /// interceptors of its tool decide first, and may change the arguments. Then the guard of this context decides. Without
    /// interceptors and guard, every call may start.
    ///
    /// # Errors
    /// As [`CallGuard::permit`]. Also the error of an interceptor that does not allow the call.
    pub async fn permit(&self, call: StartingCall<'_>) -> Result<PermittedCall, ToolError> {
        let arguments = call.context.prepare(call.tool, call.arguments).await?;
        let call = StartingCall { arguments, ..call };
        match self.guard() {
            Some(guard) => guard.permit(call).await,
            None => {
                let access = call.tool.access(&call.arguments, call.context).await;
                Ok(PermittedCall::unchanged(call.arguments, access))
            }
        }
    }
}
