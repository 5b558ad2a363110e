//! Calls that a tool makes to other tools of the conversation.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use tokio::time::Instant;

use super::run_state::RunState;
use crate::event::{Event, Observers};
use crate::injection::{CallGate, CallLog, ConversationView, InjectionStrategy, Lineage, StrategyChain};
use crate::millis::millis;
use toolwit_core::{
    Arguments, CallChain, CallGuard, Effect, Error, ErrorKind, NamedTool, Phase, StartingCall, Tool, ToolCaller,
    ToolContext, ToolError, ToolId, ToolResult, ToolSet, WallClock,
};

/// Maximum length of an id in an event or an error, in characters. The calling tool can request an id of any length.
const ID_CHARS_MAX: usize = 300;

/// The [`ToolCaller`] that one tool receives, here called the calling tool. It calls the tools that existed when the call
/// of the model began, and the tools that the strategies can restore. So a plugin can call a registry tool that its grant
/// names, even if the model has not found this tool.
pub(super) struct NestedCaller {
    scope: Arc<NestedScope>,
    /// The id of the calling tool.
    caller_id: ToolId,
}

/// The data that all nested calls inside one call of the model share.
struct NestedScope {
    /// The id of the model's call.
    outer_call_id: String,
    /// The tools that existed when the call of the model began.
    tools: Arc<ToolSet>,
    /// The ids of the tools that a strategy gates.
    gated_ids: HashSet<ToolId>,
    /// The calls that had ended when the call of the model began.
    ended_calls: Arc<CallLog>,
    lineage: Arc<Lineage>,
    turn: u32,
    strategy: StrategyChain,
    observers: Observers,
    /// The number of nested calls so far.
    call_count: AtomicU32,
    /// The guard of the run.
    guard: Option<Arc<dyn CallGuard>>,
    /// The clock of the run.
    clock: Option<Arc<WallClock>>,
}

impl NestedCaller {
    /// Creates the caller for a tool. It does not call tools that a strategy gates. Strategies observe only the calls of
    /// the model, so only the model may call gated tools.
    pub(super) fn new(run: &RunState<'_>, outer_call_id: &str, caller_id: &ToolId) -> Self {
        let toolbox = &run.conversation.toolbox;
        let tools = toolbox.callable().clone();
        let gated = tools.iter().filter(|tool| run.gate(tool) != CallGate::Ungated);
        let gated_ids = gated.map(|tool| tool.definition.id.clone()).collect();
        let scope = NestedScope {
            outer_call_id: outer_call_id.to_owned(),
            tools,
            gated_ids,
            ended_calls: toolbox.calls().clone(),
            lineage: toolbox.lineage().clone(),
            turn: run.conversation.turns,
            strategy: run.conversation.strategy.clone(),
            observers: run.conversation.observers.clone(),
            call_count: AtomicU32::new(0),
            guard: run.context.guard().cloned(),
            clock: WallClock::of(&run.context),
        };
        Self {
            scope: Arc::new(scope),
            caller_id: caller_id.clone(),
        }
    }
}

impl NestedScope {
    /// Returns the tool with this id; `None` if it does not exist or a strategy gates it.
    fn find_callable(&self, id: &str, context: &ToolContext) -> Option<Arc<dyn Tool>> {
        let id = ToolId::from_text(id);
        match self.tools.by_id(&id) {
            Some(named) => (!self.gated_ids.contains(&id)).then(|| named.tool.clone()),
            None => self.restore(&id, context),
        }
    }

    /// Creates a tool that was never in the conversation, if a strategy can restore the tool and no strategy gates it. The
    /// tool gets the decorators that it would have in the conversation.
    fn restore(&self, id: &ToolId, context: &ToolContext) -> Option<Arc<dyn Tool>> {
        if self.tools.was_added_or_excluded(id) {
            return None;
        }
        let tool = self.strategy.restore(id).filter(|tool| !self.tools.is_excluded(tool))?;
        let tool = self.tools.decorated(tool);
        let named = NamedTool {
            name: self.tools.names_after_adding(std::slice::from_ref(&tool)).pop()?,
            definition: Arc::new(tool.definition().clone()),
            tool,
        };
        let view = ConversationView::new(&[], &self.tools);
        let view = view.with_calls(&self.ended_calls).with_lineage(&self.lineage);
        // A nested call belongs to no iteration, so the strategies receive the number of the first iteration.
        let view = view.with_context(context).with_position(self.turn, 1);
        let gate = self.strategy.gate(&named, &view);
        (gate == CallGate::Ungated).then_some(named.tool)
    }
}

/// Returns the id that a tool requested, truncated to [`ID_CHARS_MAX`] characters.
fn shortened_id(id: &str) -> ToolId {
    let shortened: String = id.chars().take(ID_CHARS_MAX).collect();
    ToolId::from_text(&shortened)
}

fn unknown_tool_error(id: &str) -> ToolError {
    let message = format!("there is no tool `{}`", shortened_id(id));
    ToolError::Model(Error::new(ErrorKind::UnknownTool, Phase::Validate, message))
}

#[async_trait]
impl ToolCaller for NestedCaller {
    async fn call_tool(&self, id: &str, arguments: Arguments, context: &ToolContext) -> Result<ToolResult, ToolError> {
        let number = self.scope.call_count.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        let call_id = format!("{}/{number}", self.scope.outer_call_id);
        let requested_id = shortened_id(id);
        let nested_caller = || Self {
            scope: self.scope.clone(),
            caller_id: requested_id.clone(),
        };
        // The calling tool may pass a context that it did not receive from the run. The following lines ensure that the
        // context has the guard of the run, a clock, and a call chain that ends with the calling tool.
        let context = match &self.scope.guard {
            Some(guard) => context.clone().with_guard(guard.clone()),
            None => context.clone(),
        };
        let context = match &self.scope.clock {
            Some(clock) if WallClock::of(&context).is_none() => context.with_wall_clock(clock.clone()),
            _ => context,
        };
        let context = match context.tools() {
            Some(_) => context.with_tools(Arc::new(nested_caller())),
            None => context,
        };
        let context = if CallChain::of(&context).last() == Some(&self.caller_id) {
            context
        } else {
            CallChain::enter(context, &self.caller_id, &*self.scope.outer_call_id)
        };
        let context = context.for_new_call();
        let tool = self.scope.find_callable(id, &context);
        let arguments = match &tool {
            Some(tool) if self.scope.guard.is_some() => {
                let call = StartingCall::new(&*call_id, &**tool, arguments, &context);
                context.permit(call).await?.arguments
            }
            _ => arguments,
        };
        let mut events = NestedCallEvents::begin(self, number, requested_id.clone());
        let context = CallChain::enter(context, &requested_id, call_id);
        let returned = match tool {
            Some(tool) => tool.call(arguments, &context).await,
            None => Err(unknown_tool_error(id)),
        };
        events.error = match &returned {
            Ok(result) => result.is_error().then_some(ErrorKind::Tool),
            Err(error) => Some(error.report().kind),
        };
        // The result of a plugin already lists the denied accesses of its nested calls.
        if self.caller_id.is_native() {
            self.announce_denied(&returned);
        }
        returned
    }

    async fn effect_of(&self, id: &str, context: &ToolContext) -> Option<Effect> {
        let tool = self.scope.find_callable(id, context)?;
        Some(context.access(&*tool, &Arguments::new()).await.effect)
    }
}

impl NestedCaller {
    /// Emits the accesses that the host denied to a nested call.
    fn announce_denied(&self, returned: &Result<ToolResult, ToolError>) {
        let denied = match returned {
            Ok(result) => &result.denied,
            Err(error) => &error.report().denied,
        };
        if !denied.is_empty() {
            self.scope.observers.emit(&Event::AccessDenied {
                id: self.scope.outer_call_id.clone(),
                denied: denied.clone(),
            });
        }
    }
}

/// A guard that emits the start of a nested call, and emits its end when the guard is dropped.
struct NestedCallEvents {
    scope: Arc<NestedScope>,
    number: u32,
    tool: ToolId,
    started: Instant,
    /// The error to report; `None` if the call succeeded. It is [`ErrorKind::Cancelled`] until the call returns, because a
    /// call that is dropped before it returns was cancelled.
    error: Option<ErrorKind>,
}

impl NestedCallEvents {
    fn begin(caller: &NestedCaller, number: u32, tool: ToolId) -> Self {
        let scope = caller.scope.clone();
        scope.observers.emit(&Event::NestedCallStarted {
            id: scope.outer_call_id.clone(),
            number,
            caller: caller.caller_id.clone(),
            tool: tool.clone(),
        });
        Self {
            scope,
            number,
            tool,
            started: Instant::now(),
            error: Some(ErrorKind::Cancelled),
        }
    }
}

impl Drop for NestedCallEvents {
    fn drop(&mut self) {
        self.scope.observers.emit(&Event::NestedCallFinished {
            id: self.scope.outer_call_id.clone(),
            number: self.number,
            tool: self.tool.clone(),
            wall_ms: millis(self.started.elapsed()),
            is_error: self.error.is_some(),
            kind: self.error,
        });
    }
}
