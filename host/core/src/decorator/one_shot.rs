//! Tools that run once per loop.

use async_trait::async_trait;

use super::decorator::Decorator;
use super::loop_memory::LoopMemory;
use crate::{Arguments, Tool, ToolContext, ToolError, ToolResult, new_serial_group};

/// A decorator that runs a tool once per loop. A loop is one run of a conversation or an agent. Later calls return a text that
/// refers to the history, followed by advice for the model.
#[derive(Debug)]
pub struct OneShot {
    advice: String,
    memory: LoopMemory,
    /// The serial group of a decorated tool that has no group of its own. The calls of the tool then run sequentially, so that
    /// the decorator knows at the second call whether the first succeeded.
    fallback_group: u64,
}

impl OneShot {
    /// Creates the decorator with the advice for later calls.
    #[must_use]
    pub fn new(advice: impl Into<String>) -> Self {
        Self {
            advice: advice.into(),
            memory: LoopMemory::new(),
            fallback_group: new_serial_group(),
        }
    }
}

#[async_trait]
impl Decorator for OneShot {
    async fn call(
        &self,
        tool: &dyn Tool,
        arguments: Arguments,
        context: &ToolContext,
    ) -> Result<ToolResult, ToolError> {
        let definition = tool.definition();
        let key = definition.id.as_str();
        if self.memory.contains(context, key) {
            return Ok(ToolResult::text(format!(
                "ALREADY LOADED. The body of '{}' was returned earlier in this turn: read it in your conversation history \
                 above. Do not call this tool again.\n{}",
                definition.name(),
                self.advice
            )));
        }
        let result = tool.call(arguments, context).await?;
        if !result.is_error() {
            self.memory.insert(context, key);
        }
        Ok(result)
    }

    fn serial_group(&self, tool: &dyn Tool) -> Option<u64> {
        tool.serial_group().or(Some(self.fallback_group))
    }
}
