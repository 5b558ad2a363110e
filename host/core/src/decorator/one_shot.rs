//! Tools that run once in a loop.

use async_trait::async_trait;

use super::decorator::Decorator;
use super::loop_memory::LoopMemory;
use crate::{Arguments, Tool, ToolContext, ToolError, ToolResult, new_serial_group};

/// A decorator that runs a tool once per loop. Later calls return a reference to the history and some advice.
#[derive(Debug)]
pub struct OneShot {
    advice: String,
    memory: LoopMemory,
    /// The serial group for a tool that has none. The calls then run sequentially, so that the second call sees whether the
    /// first succeeded.
    group: u64,
}

impl OneShot {
    /// Creates the decorator with the advice for later calls.
    #[must_use]
    pub fn new(advice: impl Into<String>) -> Self {
        Self {
            advice: advice.into(),
            memory: LoopMemory::new(),
            group: new_serial_group(),
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
        tool.serial_group().or(Some(self.group))
    }
}
