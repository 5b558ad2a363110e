//! Calls that a running call makes: their ids, their permission, and the events of their start and their end.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use tokio::time::Instant;

use super::call_start::recorded_start;
use super::refusal::hidden_operator_error;
use super::run_state::RunState;
use crate::event::{Event, NestedCallEnd, NestedCallStart, Observers, RecordedOutcome, RecordedStart};
use crate::journal::{IDEMPOTENCY_KEY, Journal};
use crate::millis::millis;
use crate::process::CallId;
use crate::state::error_text;
use toolwit_core::{
    Arguments, CallChain, CallGuard, ErrorKind, OwnCalls, StartingCall, Tool, ToolContext, ToolError, ToolId,
    ToolResult, WallClock,
};

/// A running call that can make calls, here called its children.
pub(super) struct ParentCall {
    /// The id: for a child, the id of its parent, `/` and its number.
    id: String,
    /// The number of the call among those of its parent; 0 for a call of a model.
    number: u32,
    /// The id of the tool.
    tool: ToolId,
    /// The number of calls that this call has made so far.
    child_count: AtomicU32,
    environment: Arc<CallEnvironment>,
}

/// The data that all calls inside one call of the model share.
struct CallEnvironment {
    observers: Observers,
    /// The journal of the conversation, or of the conversation in which the agent runs.
    journal: Option<Arc<Journal>>,
    /// The guard of the run.
    guard: Option<Arc<dyn CallGuard>>,
    /// The clock of the run.
    clock: Option<Arc<WallClock>>,
}

impl ParentCall {
    /// Describes a call of the model.
    pub(super) fn new(run: &RunState<'_>, id: &str, tool: &ToolId) -> Arc<Self> {
        let environment = CallEnvironment {
            observers: run.conversation.observers.clone(),
            journal: Journal::of(&run.context).cloned(),
            guard: run.context.guard().cloned(),
            clock: WallClock::of(&run.context),
        };
        Arc::new(Self {
            id: id.to_owned(),
            number: 0,
            tool: tool.clone(),
            child_count: AtomicU32::new(0),
            environment: Arc::new(environment),
        })
    }

    /// Returns the context of this call, in which its tool can [call its own tools](OwnCalls).
    pub(super) fn add_to(self: &Arc<Self>, context: ToolContext) -> ToolContext {
        context
            .with_extension(CallId(self.id.clone()))
            .with_own_calls(self.clone())
    }

    /// Returns the next child, a call of this tool.
    pub(super) fn next_child(&self, tool: &ToolId) -> Arc<Self> {
        let number = self.child_count.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        Arc::new(Self {
            id: format!("{}/{number}", self.id),
            number,
            tool: tool.clone(),
            child_count: AtomicU32::new(0),
            environment: self.environment.clone(),
        })
    }

    /// Returns the context of a child. The tool may pass a context that it did not receive from the run. So this function
    /// ensures that the context has the guard, the journal and the clock of the run, and a call chain that ends with the
    /// calling tool.
    pub(super) fn context_for(&self, child: &Arc<Self>, context: &ToolContext) -> ToolContext {
        let environment = &self.environment;
        let mut context = child.add_to(context.clone());
        if let Some(guard) = &environment.guard {
            context = context.with_guard(guard.clone());
        }
        if let Some(journal) = &environment.journal {
            context = journal.with_key(context.with_extension(journal.clone()), &child.id);
        }
        if let (Some(clock), None) = (&environment.clock, WallClock::of(&context)) {
            context = context.with_wall_clock(clock.clone());
        }
        if CallChain::of(&context).last() != Some(&self.tool) {
            context = CallChain::enter(context, &self.tool, self.id.clone());
        }
        context.for_new_call()
    }

    /// Runs a child in its [context](Self::context_for).
    ///
    /// # Errors
    /// The error of a child that is not permitted. It did not begin.
    pub(super) async fn run_child(
        &self,
        child: &Self,
        tool: &dyn Tool,
        arguments: Arguments,
        context: ToolContext,
    ) -> Result<Result<ToolResult, ToolError>, ToolError> {
        let (arguments, start) = child.permit(tool, arguments, &context).await?;
        let context = CallChain::enter(context, &child.tool, child.id.clone());
        let context = match &start {
            Some(start) => context.with(IDEMPOTENCY_KEY, start.key.clone()),
            None => context,
        };
        let class = start.as_ref().map(|start| start.effect.class);
        let events = ChildEvents::begin(self, child, start);
        if let (Some(journal), Some(class)) = (&self.environment.journal, class)
            && let Err(error) = journal.admit_call(class).await
        {
            return Ok(Err(ToolError::Operator(error.into())));
        }
        let returned = tool.call(arguments, &context).await;
        events.end(&returned);
        // The result of a plugin already lists the denied accesses of its nested calls.
        if self.tool.is_native() {
            self.announce_denied(&returned);
        }
        Ok(returned)
    }

    /// Returns the arguments with which this call may run and, with a journal, the record of its start.
    async fn permit(
        &self,
        tool: &dyn Tool,
        arguments: Arguments,
        context: &ToolContext,
    ) -> Result<(Arguments, Option<RecordedStart>), ToolError> {
        if self.environment.guard.is_none() && self.environment.journal.is_none() {
            return Ok((arguments, None));
        }
        let permitted = context
            .permit(StartingCall::new(&*self.id, tool, arguments, context))
            .await?;
        let arguments = permitted.arguments.clone();
        let start = match &self.environment.journal {
            Some(journal) => Some(recorded_start(journal, &self.id, tool, permitted, context).await),
            None => None,
        };
        Ok((arguments, start))
    }

    /// Emits the start and the end of a child whose tool does not exist.
    pub(super) fn announce_unknown(&self, child: &Self) {
        ChildEvents::begin(self, child, None).end.kind = Some(ErrorKind::UnknownTool);
    }

    /// Emits the accesses that the host denied to a child.
    fn announce_denied(&self, returned: &Result<ToolResult, ToolError>) {
        let denied = match returned {
            Ok(result) => &result.denied,
            Err(error) => &error.report().denied,
        };
        if !denied.is_empty() {
            self.environment.observers.emit(&Event::AccessDenied {
                id: self.id.clone(),
                denied: denied.clone(),
            });
        }
    }
}

#[async_trait]
impl OwnCalls for ParentCall {
    async fn run(
        &self,
        tool: &dyn Tool,
        arguments: Arguments,
        context: &ToolContext,
    ) -> Result<Result<ToolResult, ToolError>, ToolError> {
        let child = self.next_child(&tool.definition().id);
        let context = self.context_for(&child, context);
        self.run_child(&child, tool, arguments, context).await
    }
}

/// A guard that emits the start of a child, and emits its end when the guard is dropped.
struct ChildEvents {
    environment: Arc<CallEnvironment>,
    started: Instant,
    /// The end. Its error is [`ErrorKind::Cancelled`] until the call returns, because a call that is dropped before it returns
    /// was cancelled.
    end: NestedCallEnd,
}

impl ChildEvents {
    fn begin(parent: &ParentCall, child: &ParentCall, start: Option<RecordedStart>) -> Self {
        let environment = parent.environment.clone();
        let end = NestedCallEnd {
            id: child.id.clone(),
            parent: parent.id.clone(),
            number: child.number,
            tool: child.tool.clone(),
            wall_ms: 0,
            is_error: true,
            kind: Some(ErrorKind::Cancelled),
            outcome: None,
        };
        environment
            .observers
            .emit(&Event::NestedCallStarted(Box::new(NestedCallStart {
                id: end.id.clone(),
                parent: end.parent.clone(),
                number: end.number,
                caller: parent.tool.clone(),
                tool: end.tool.clone(),
                start,
            })));
        Self {
            environment,
            started: Instant::now(),
            end,
        }
    }

    /// Emits the end of a call that returned.
    fn end(mut self, returned: &Result<ToolResult, ToolError>) {
        self.end.kind = match returned {
            Ok(result) => result.is_error().then_some(ErrorKind::Tool),
            Err(error) => Some(error.report().kind),
        };
        self.end.is_error = self.end.kind.is_some();
        self.end.outcome = self.environment.journal.as_ref().map(|_| {
            let mut outcome = recorded_outcome(returned);
            // The outcome of the call around it has the values that matter.
            outcome.omit_artifacts_beyond(&mut 0);
            outcome
        });
    }
}

impl Drop for ChildEvents {
    fn drop(&mut self) {
        self.end.wall_ms = millis(self.started.elapsed());
        let event = Event::NestedCallFinished(Box::new(self.end.clone()));
        self.environment.observers.emit(&event);
    }
}

/// Returns the outcome of a nested call in the form that a journal stores. If only the operator can fix an error, the text for
/// the caller omits its details.
fn recorded_outcome(returned: &Result<ToolResult, ToolError>) -> RecordedOutcome {
    match returned {
        Ok(result) => RecordedOutcome::of(result),
        Err(ToolError::Operator(error)) => {
            RecordedOutcome::failed_for_operator(error, error_text(&hidden_operator_error(error.kind)))
        }
        Err(error) => {
            let error = error.report();
            let mut outcome = RecordedOutcome::failed(error.kind, error_text(error));
            outcome.denied = error.denied.clone();
            outcome
        }
    }
}
