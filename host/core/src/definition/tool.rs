//! The trait of all tools.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};

use crate::{CallAccess, Decorator, ToolContext, ToolDefinition, ToolError, ToolFacade, ToolResult};

/// The arguments of a call, by parameter name.
pub type Arguments = Map<String, Value>;

/// A callable with a definition: a function of a plugin, a method of an entity, a tool of an MCP server, or Rust code.
///
/// A tool does not belong to a conversation. Everything that belongs to one call is in its [`ToolContext`].
#[async_trait]
pub trait Tool: Send + Sync {
    /// Returns the definition. It is the same for the lifetime of the tool.
    fn definition(&self) -> &ToolDefinition;

    /// Runs the tool.
    ///
    /// The tool validates the arguments against its schema. A tool that ran and failed returns [`ToolResult::error`]. A call
    /// that did not start, or was stopped before its end, returns a [`ToolError`].
    ///
    /// # Errors
    /// [`ToolError::Model`] if other arguments or another tool may help; [`ToolError::Operator`] if only the operator can help.
    async fn call(&self, arguments: Arguments, context: &ToolContext) -> Result<ToolResult, ToolError>;

    /// Returns the access that a call with these arguments would have now: its effect class, and the grant that it would use.
    ///
    /// The host computes the access when a call begins, because a grant can change between two calls. By default, the access
    /// is that of the [inner tool](Self::inner_tool). A tool without an inner tool has the [effect](ToolDefinition::effect) that
    /// its definition declares.
    async fn access(&self, arguments: &Arguments, context: &ToolContext) -> CallAccess {
        match self.inner_tool() {
            Some(tool) => tool.access(arguments, context).await,
            None => CallAccess::declared(self.definition()),
        }
    }

    /// Returns the arguments for an operator or a log, without the secrets that the tool is granted. By default, the
    /// [inner tool](Self::inner_tool) redacts them. A tool without an inner tool returns them unchanged.
    async fn redacted(&self, arguments: Arguments, context: &ToolContext) -> Arguments {
        match self.inner_tool() {
            Some(tool) => tool.redacted(arguments, context).await,
            None => arguments,
        }
    }

    /// Returns the tool that this tool decorates, so that selectors, rules and facades recognise it. Returns `None` if this tool
    /// decorates no other tool, which is the default.
    fn inner_tool(&self) -> Option<&Arc<dyn Tool>> {
        None
    }

    /// Returns the decorator that this tool applies to the [inner tool](Self::inner_tool), if there is one.
    fn decorator(&self) -> Option<&Arc<dyn Decorator>> {
        None
    }

    /// Returns the facade, or `None` if calls reveal no further tools. By default, it is the facade of the inner tool.
    fn facade(&self) -> Option<&dyn ToolFacade> {
        self.inner_tool()?.facade()
    }

    /// Returns whether the tool runs a nested agent. The artifacts of its results are then those of the agent. A call of the
    /// tool needs no approval unless a rule for the tool requires one, because each call of the agent is approved separately.
    fn is_agent(&self) -> bool {
        self.inner_tool().is_some_and(|tool| tool.is_agent())
    }

    /// Returns whether the tool may call other tools of the conversation, through the [context](ToolContext::tools) of its
    /// call.
    fn calls_tools(&self) -> bool {
        self.inner_tool().is_some_and(|tool| tool.calls_tools())
    }

    /// Returns the number of the tool's serial group: the calls of all tools of a group run sequentially, in call order.
    ///
    /// Tools that share a live instance return the same number. A call of a tool without a group may run concurrently with
    /// any other call.
    fn serial_group(&self) -> Option<u64> {
        None
    }

    /// Returns the [serial group](Self::serial_group) of a call with these arguments. By default, this is the group of the
    /// tool. A tool whose arguments select the live instance returns the group of this instance.
    fn serial_group_for(&self, _arguments: &Arguments) -> Option<u64> {
        self.serial_group()
    }
}

#[async_trait]
impl<T: Tool + ?Sized> Tool for Arc<T> {
    fn definition(&self) -> &ToolDefinition {
        (**self).definition()
    }

    async fn call(&self, arguments: Arguments, context: &ToolContext) -> Result<ToolResult, ToolError> {
        (**self).call(arguments, context).await
    }

    async fn access(&self, arguments: &Arguments, context: &ToolContext) -> CallAccess {
        (**self).access(arguments, context).await
    }

    async fn redacted(&self, arguments: Arguments, context: &ToolContext) -> Arguments {
        (**self).redacted(arguments, context).await
    }

    fn calls_tools(&self) -> bool {
        (**self).calls_tools()
    }

    fn inner_tool(&self) -> Option<&Arc<dyn Tool>> {
        (**self).inner_tool()
    }

    fn decorator(&self) -> Option<&Arc<dyn Decorator>> {
        (**self).decorator()
    }

    fn is_agent(&self) -> bool {
        (**self).is_agent()
    }

    fn serial_group(&self) -> Option<u64> {
        (**self).serial_group()
    }

    fn serial_group_for(&self, arguments: &Arguments) -> Option<u64> {
        (**self).serial_group_for(arguments)
    }

    fn facade(&self) -> Option<&dyn ToolFacade> {
        (**self).facade()
    }
}

/// Iterates over a tool and the tools that it decorates, directly or indirectly. The outermost tool is the first.
pub fn decorator_chain(tool: &Arc<dyn Tool>) -> impl Iterator<Item = &Arc<dyn Tool>> {
    std::iter::successors(Some(tool), |tool| tool.inner_tool())
}
