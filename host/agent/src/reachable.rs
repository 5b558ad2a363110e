//! The tools of a conversation, for a tool that calls others.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use tokio::time::Instant;

use super::event::Event;
use super::observer::Observers;
use super::tool_loop::millis;
use crate::injection::{InjectionStrategy, StrategyChain};
use toolwit_core::ErrorKind;
use toolwit_core::{Arguments, ToolCaller, ToolContext, ToolError, ToolId, ToolResult, ToolSet};

/// The longest id that an event tells, in characters: who calls may ask for anything.
const ID_CHARS_MAX: usize = 300;

/// What could be called at the moment when a call began, and what the strategies can bring: the tools of a registry that the
/// model has not found yet are there for a plugin to which they were granted.
pub(super) struct Reachable {
    within: Arc<Within>,
    /// The tool that calls.
    caller: ToolId,
}

/// What all calls inside one call of the model share.
struct Within {
    /// The model's call.
    call: String,
    tools: ToolSet,
    strategy: StrategyChain,
    observers: Observers,
    /// How many there were.
    calls: AtomicU32,
}

impl Reachable {
    /// For a call of the model, whose tool may call these.
    pub(super) fn new(
        call: &str,
        caller: ToolId,
        tools: ToolSet,
        strategy: StrategyChain,
        observers: Observers,
    ) -> Self {
        let within = Within {
            call: call.to_owned(),
            tools,
            strategy,
            observers,
            calls: AtomicU32::new(0),
        };
        Self {
            within: Arc::new(within),
            caller,
        }
    }
}

#[async_trait]
impl ToolCaller for Reachable {
    async fn call_tool(&self, id: &str, arguments: Arguments, context: &ToolContext) -> Result<ToolResult, ToolError> {
        let wanted = ToolId::from_text(id);
        let told = Told::begin(self, id);
        let deeper = || Self {
            within: self.within.clone(),
            caller: told.tool.clone(),
        };
        let context = match context.tools() {
            Some(_) => context.clone().with_tools(Arc::new(deeper())),
            None => context.clone(),
        };
        let tools = &self.within.tools;
        let restored = match tools.was_ever(&wanted) {
            true => None,
            false => self.within.strategy.restore(&wanted),
        };
        let answered = match restored {
            Some(tool) => tool.call(arguments, &context).await,
            None => tools.call_tool(id, arguments, &context).await,
        };
        told.end(&answered);
        answered
    }
}

/// A call inside another, which is told to have ended however it ends.
struct Told {
    within: Arc<Within>,
    number: u32,
    tool: ToolId,
    started: Instant,
    is_told: bool,
}

impl Told {
    fn begin(reachable: &Reachable, id: &str) -> Self {
        let within = reachable.within.clone();
        let number = within.calls.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        let shown: String = id.chars().take(ID_CHARS_MAX).collect();
        let tool = ToolId::from_text(&shown);
        within.observers.emit(&Event::NestedCallStarted {
            id: within.call.clone(),
            number,
            caller: reachable.caller.clone(),
            tool: tool.clone(),
        });
        Self {
            within,
            number,
            tool,
            started: Instant::now(),
            is_told: false,
        }
    }

    fn end(mut self, answered: &Result<ToolResult, ToolError>) {
        let kind = match answered {
            Ok(result) => result.is_error().then_some(ErrorKind::Tool),
            Err(error) => Some(error.report().kind),
        };
        self.tell(kind);
    }

    fn tell(&mut self, kind: Option<ErrorKind>) {
        self.is_told = true;
        self.within.observers.emit(&Event::NestedCallFinished {
            id: self.within.call.clone(),
            number: self.number,
            tool: self.tool.clone(),
            wall_ms: millis(self.started.elapsed()),
            is_error: kind.is_some(),
            kind,
        });
    }
}

/// The call around it was stopped.
impl Drop for Told {
    fn drop(&mut self) {
        if !self.is_told {
            self.tell(Some(ErrorKind::Cancelled));
        }
    }
}
