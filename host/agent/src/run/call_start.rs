//! The start of a call: permission, then the event of the start, then the run of the tool.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use tracing::Instrument;

use super::call_queue::{CallOutcome, FinishedCall, run_tool};
use super::recovery::check_same_arguments;
use super::refusal::{not_run, with_expected_parameters};
use super::spans;
use crate::event::{Event, Observers, RecordedStart};
use crate::journal::{IDEMPOTENCY_KEY, Journal, JournalError};
use toolwit_core::{
    Arguments, CallChain, EffectClass, Error, ErrorKind, NamedTool, PermittedCall, StartingCall, Tool, ToolContext,
    ToolError,
};

/// Returns the record of the start of a permitted call, with an idempotency key of its own. `context` is the context of the call.
pub(super) async fn recorded_start(
    journal: &Journal,
    id: &str,
    tool: &dyn Tool,
    permitted: PermittedCall,
    context: &ToolContext,
) -> RecordedStart {
    let PermittedCall {
        arguments,
        access,
        is_edited,
        ..
    } = permitted;
    let redacted = tool.redacted(arguments.clone(), context).await;
    let definition = tool.definition();
    let key = journal.idempotency_key(id, &definition.id, &redacted);
    RecordedStart {
        is_edited,
        is_redacted: redacted != arguments,
        grant: access.grant,
        code_digest: access.code_digest,
        ..RecordedStart::new(definition.digest(), redacted, access.effect, key)
    }
}

/// A call that is about to start.
pub(super) struct CallStart {
    /// The id of the model's call.
    pub(super) id: String,
    pub(super) tool: NamedTool,
    pub(super) arguments: Arguments,
    pub(super) context: ToolContext,
    pub(super) observers: Observers,
    pub(super) journal: Option<Arc<Journal>>,
    /// The recorded start, if the call began in an earlier process and runs again.
    pub(super) earlier_start: Option<RecordedStart>,
}

impl CallStart {
    /// Returns the future that runs the call. The future borrows nothing. If the call has neither a guard nor a journal,
    /// this function emits the start of the call. Otherwise, the future emits it after the call is permitted.
    pub(super) fn start(self) -> impl Future<Output = FinishedCall> + Send + use<> {
        let is_immediate = self.context.guard().is_none() && self.journal.is_none();
        if is_immediate {
            self.announce(None);
        }
        async move {
            if is_immediate {
                self.run().await
            } else {
                self.run_if_permitted().await
            }
        }
    }

    /// Emits the start of the call.
    fn announce(&self, start: Option<RecordedStart>) {
        self.observers.emit(&Event::ToolStarted {
            id: self.id.clone(),
            name: self.tool.name.clone(),
            tool: self.tool.definition.id.clone(),
            start: start.map(Box::new),
        });
    }

    /// Runs the call if it is permitted, with the permitted arguments.
    async fn run_if_permitted(mut self) -> FinishedCall {
        self.context = self.context.for_new_call();
        if let Some(journal) = &self.journal {
            self.context = journal.with_key(self.context, &self.id);
        }
        let permitted = match self.permit().await {
            Ok(permitted) => permitted,
            Err(error) => return FinishedCall::not_permitted(error),
        };
        let edited_arguments = permitted.is_edited.then(|| permitted.arguments.clone());
        self.arguments = permitted.arguments.clone();
        let finished = match self.journal.clone() {
            Some(journal) => self.run_recorded(&journal, permitted).await,
            None => {
                self.announce(None);
                self.run().await
            }
        };
        FinishedCall {
            edited_arguments,
            ..finished
        }
    }

    /// Runs the call, and records two events in the journal: the start, before the call can have an effect, and the
    /// outcome.
    async fn run_recorded(mut self, journal: &Journal, permitted: PermittedCall) -> FinishedCall {
        let is_edited = permitted.is_edited;
        let start = recorded_start(journal, &self.id, &*self.tool.tool, permitted, &self.context).await;
        let earlier_start = self.earlier_start.take().filter(|_| !is_edited);
        let checked = earlier_start.map(|earlier| check_same_arguments(&self.id, &earlier, &start.arguments));
        if let Some(Err(error)) = checked {
            return self.journal_failure(error);
        }
        let class = start.effect.class;
        self.context = self.context.with(IDEMPOTENCY_KEY, start.key.clone());
        self.announce(Some(start));
        if let Err(error) = journal.admit_call(class).await {
            return self.journal_failure(error);
        }
        let (id, tool, observers) = (self.id.clone(), self.tool.clone(), self.observers.clone());
        let finished = self.run().await;
        let mut outcome = Box::new(finished.outcome.to_recorded(&tool));
        journal.limit_artifacts(&mut outcome);
        observers.emit(&Event::ToolReturned { id, outcome });
        // If this commit fails, the commit before the next call fails too. So no further call begins. Without the outcome of a
        // call that changes nothing, a run that is resumed makes the call again.
        if class != EffectClass::Read
            && let Err(error) = journal.commit().await
        {
            tracing::error!(%error, "the outcome of a call is not stored");
        }
        finished
    }

    /// Returns the end of a call that did not run because of an error of the journal. The error also ends the run.
    fn journal_failure(&self, error: JournalError) -> FinishedCall {
        let error = Error::from(error).with_tool(self.tool.name.as_str());
        let returned = Box::new(Err(ToolError::Operator(error)));
        FinishedCall::new(CallOutcome::Returned(returned), Duration::ZERO)
    }

    /// Decides whether the call may start. A panic during the decision, such as in an approver, refuses the call.
    async fn permit(&self) -> Result<PermittedCall, Error> {
        let NamedTool { name, definition, tool } = &self.tool;
        let call = StartingCall::new(self.id.clone(), &**tool, self.arguments.clone(), &self.context);
        match AssertUnwindSafe(self.context.permit(call)).catch_unwind().await {
            Ok(permitted) => permitted.map_err(|error| with_expected_parameters(error, definition, name).into()),
            Err(_) => {
                tracing::error!(tool = %name, "the decision on a call panicked; the call does not run");
                Err(not_run(ErrorKind::Internal, "the decision whether it may run failed"))
            }
        }
    }

    /// Runs the tool in its tracing span.
    async fn run(self) -> FinishedCall {
        let context = CallChain::enter(self.context, &self.tool.definition.id, self.id);
        let span = spans::execute_tool_span(&self.tool, CallChain::call_id_of(&context), &self.arguments);
        let finished = run_tool(self.tool, self.arguments, context)
            .instrument(span.clone())
            .await;
        spans::record_call_outcome(&span, &finished);
        finished
    }
}
