//! What every tool is.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};

use crate::{ToolContext, ToolDefinition, ToolError, ToolFacade, ToolResult};

/// The arguments of a call, by parameter name.
pub type Arguments = Map<String, Value>;

/// Something that a model can call: a function of a plugin, a method of a live entity, or Rust code.
///
/// A tool holds no conversation: all that belongs to a call travels in the [`ToolContext`].
#[async_trait]
pub trait Tool: Send + Sync {
    /// What is told about it. It never changes during the life of the tool.
    fn definition(&self) -> &ToolDefinition;

    /// Runs the tool.
    ///
    /// The tool itself checks the arguments against its schema. A tool that ran and failed answers with
    /// [`ToolResult::error`]; a call that could not be made is an error.
    ///
    /// # Errors
    /// [`ToolError::Model`] when other arguments, or another tool, may help; [`ToolError::Operator`] when they cannot.
    async fn call(&self, arguments: Arguments, context: &ToolContext) -> Result<ToolResult, ToolError>;

    /// The tool that this one decorates, so that strategies recognise what is behind a decorator.
    fn decorated_tool(&self) -> Option<&Arc<dyn Tool>> {
        None
    }

    /// What the tool opens into, if it is one that stands for others. A decorator answers for what it decorates.
    fn facade(&self) -> Option<&dyn ToolFacade> {
        self.decorated_tool()?.facade()
    }

    /// Whether a loop of its own runs behind it, whose artifacts are a nested agent's. A decorator answers for what it decorates.
    fn is_agent(&self) -> bool {
        self.decorated_tool().is_some_and(|tool| tool.is_agent())
    }

    /// Whether it may want to call other tools of the conversation. One that says so finds them in its
    /// [context](ToolContext::tools).
    fn calls_tools(&self) -> bool {
        self.decorated_tool().is_some_and(|tool| tool.calls_tools())
    }

    /// Whether calls of this tool and another of the same group must run one after the other, in call order.
    ///
    /// Tools that share a live instance return the same number; `None` may run beside anything.
    fn serial_group(&self) -> Option<u64> {
        None
    }
}

/// A shared tool is a tool.
#[async_trait]
impl<T: Tool + ?Sized> Tool for Arc<T> {
    fn definition(&self) -> &ToolDefinition {
        (**self).definition()
    }

    async fn call(&self, arguments: Arguments, context: &ToolContext) -> Result<ToolResult, ToolError> {
        (**self).call(arguments, context).await
    }

    fn calls_tools(&self) -> bool {
        (**self).calls_tools()
    }

    fn decorated_tool(&self) -> Option<&Arc<dyn Tool>> {
        (**self).decorated_tool()
    }

    fn is_agent(&self) -> bool {
        (**self).is_agent()
    }

    fn serial_group(&self) -> Option<u64> {
        (**self).serial_group()
    }

    fn facade(&self) -> Option<&dyn ToolFacade> {
        (**self).facade()
    }
}

/// Returns a tool and, one by one, those that it decorates, the outermost first.
pub fn decorator_chain(tool: &Arc<dyn Tool>) -> impl Iterator<Item = &Arc<dyn Tool>> {
    std::iter::successors(Some(tool), |tool| tool.decorated_tool())
}
