//! The tool loop: it repeats inference and calls until the run ends.

mod settings;

use tokio::time::Instant;

use super::dispatch::{CallQuota, Dispatch};
use super::ending::{EndRequests, Ending, conclude};
use super::inference::{ModelReply, infer, infer_until_complete};
use super::late_delivery::record_late_results;
use super::pictures::{attach_to_prompt, too_many_pictures};
use super::prepared_call::PreparedCall;
use super::recovery::{
    changed_tools, halt_reason, plan_recovery, prepare_open_calls, recover_tools, unresolved_calls_error,
};
use super::run_state::RunState;
use super::spans;
use super::turn_start::inject_for_turn;
use crate::event::Event;
use crate::journal::InterruptedRun;
use crate::limits::IterationPolicy;
use crate::millis::millis;
use crate::model::ToolChoice;
use crate::outcome::{RunError, RunFailure, RunOutcome, StopReason};
use crate::state::{ConversationState, cancelled_call};
use toolwit_core::{Caller, Error, LOOP_ID, Message, Picture, ToolContext, ToolName};

/// A run of the tool loop. If its future is dropped after its first event, the run ends as cancelled, with a valid history.
pub(crate) struct ToolLoop<'c> {
    run: RunState<'c>,
    started: Instant,
    /// Whether the run waits for the late results of its background calls before it ends.
    awaits_background: bool,
    /// The roles whose tools the turn has, in addition to those of the conversation.
    roles: Vec<String>,
    /// The pictures of the user message.
    pictures: Vec<Picture>,
    /// Whether the run has begun or was resumed, and its end was not emitted. A drop then emits the end as cancelled.
    is_open: bool,
}

impl<'c> ToolLoop<'c> {
    pub(crate) fn new(conversation: &'c mut ConversationState, context: &ToolContext) -> Self {
        Self {
            run: RunState::new(conversation, context),
            started: Instant::now(),
            awaits_background: false,
            roles: Vec::new(),
            pictures: Vec::new(),
            is_open: false,
        }
    }

    /// Answers a user message or, without a message, the late results of background calls.
    ///
    /// A run with a message can be refused before its turn begins: if a limit is reached, the run is cancelled, or the
    /// tools of a role cannot be resolved. The message then does not enter the history, and no event is emitted. The
    /// same applies if the future is dropped before its turn begins; an interrupted run can then still be resumed.
    pub(crate) async fn run(mut self, prompt: Option<&str>) -> Result<RunOutcome, RunError> {
        if self.run.changes_tools(prompt)
            && let Err(failure) = self.prepare().await
        {
            self.run.conversation.process.end_run(failure.stop());
            let outcome = self.take_outcome(Ending::new(None, failure.stop()));
            return Err(RunError::new(failure, outcome));
        }
        let span = spans::invoke_agent_span(self.run.conversation);
        let turn = async move {
            self.begin_turn(prompt).await;
            let ending = self.run_iterations().await;
            self.end_and_commit(ending).await
        };
        spans::run_in_span(span, turn).await
    }

    /// Ends the run, and stores its last events in the journal. If they cannot be stored, the run fails even if it has an answer.
    async fn end_and_commit(mut self, ending: Result<Ending, RunFailure>) -> Result<RunOutcome, RunError> {
        let result = match ending {
            Ok(ending) => Ok(self.end(ending)),
            Err(failure) => {
                // If the response was cut, the error contains the last text of the model.
                let is_cut = matches!(failure, RunFailure::Length);
                let agent = self.run.account.failed_agent(&failure);
                let answer = self.run.tally.last_text.take().filter(|_| is_cut);
                let outcome = self.end(Ending::new(answer, failure.stop()));
                Err(RunError::new(failure, outcome).with_agent(agent))
            }
        };
        let Some(journal) = &self.run.conversation.journal else {
            return result;
        };
        match (journal.commit().await, result) {
            (Err(error), Ok(outcome)) => Err(RunError::new(RunFailure::Tool(Error::from(error)), outcome)),
            (_, result) => result,
        }
    }

    /// Continues the run that an earlier process did not finish. If the future is dropped before the run continues, the
    /// run stays interrupted.
    pub(crate) async fn resume(mut self) -> Result<RunOutcome, RunError> {
        let prepared = match self.run.conversation.interrupted_run.clone() {
            Some(interrupted) => self.prepare_resume(interrupted).await,
            // The caller has checked that there is an interrupted run.
            None => Err(RunFailure::Cancelled),
        };
        let interrupted = match prepared {
            Ok(interrupted) => interrupted,
            Err(failure) => {
                let outcome = self.take_outcome(Ending::new(None, failure.stop()));
                return Err(RunError::new(failure, outcome));
            }
        };
        self.run.conversation.interrupted_run = None;
        self.is_open = true;
        let span = spans::invoke_agent_span(self.run.conversation);
        let turn = async move {
            let ending = self.continue_from(interrupted).await;
            self.end_and_commit(ending).await
        };
        spans::run_in_span(span, turn).await
    }

    /// Prepares the run to continue: restores its tools and counters, decides which open calls run again, and emits
    /// [`Event::RunResumed`]. Returns the interrupted run. After an error, the run can be resumed later.
    async fn prepare_resume(&mut self, interrupted: InterruptedRun) -> Result<InterruptedRun, RunFailure> {
        let unresolved = interrupted.unresolved();
        if !unresolved.is_empty() {
            return Err(RunFailure::Tool(unresolved_calls_error(&unresolved)));
        }
        self.prepare().await?;
        let run = &mut self.run;
        run.conversation.denied_calls = recover_tools(run, &interrupted).await?;
        run.context = run.context.clone().with(LOOP_ID, interrupted.loop_id.clone());
        let tools = run.conversation.toolbox.callable();
        let changed = changed_tools(&interrupted.last_starts, tools, &run.context).await;
        run.answer_schema = interrupted.answer_schema.as_deref().cloned();
        run.tally.restore(&interrupted);
        run.conversation.process.begin_run(None);
        run.conversation.toolbox.declare_again(&interrupted.declared_tools);
        let plan = plan_recovery(&interrupted.open_calls, run.conversation.toolbox.callable());
        run.conversation.recovered_outcomes = plan.outcomes;
        run.conversation.earlier_starts = plan.earlier_starts;
        run.conversation.earlier_answers = plan.earlier_answers;
        let declared = run.conversation.toolbox.declared_and_described_names();
        let difference = |names: &[ToolName], excluded: &[ToolName]| -> Vec<ToolName> {
            names.iter().filter(|name| !excluded.contains(name)).cloned().collect()
        };
        run.emit(&Event::RunResumed {
            loop_id: interrupted.loop_id.clone(),
            again: plan.rerun_ids,
            added: difference(&declared, &interrupted.declared_tools),
            removed: difference(&interrupted.declared_tools, &declared),
            changed,
        });
        Ok(interrupted)
    }

    /// Continues after the model's last response: runs its open calls, or ends the run with its text. If the model has
    /// not responded, sends the request again. If the provider paused the response, another inference continues it.
    async fn continue_from(&mut self, interrupted: InterruptedRun) -> Result<Ending, RunFailure> {
        let halt_reason = halt_reason(&interrupted);
        let Some(response) = interrupted.last_response else {
            // Sending the same request again is not a new iteration.
            self.run.tally.iterations = self.run.tally.iterations.saturating_sub(1);
            return self.run_iterations().await;
        };
        self.run.tally.last_text = Some(response.content.clone()).filter(|text| !text.is_empty());
        let mut end_requests = EndRequests::default();
        for outcome in interrupted.answered_outcomes {
            match outcome.into_call_result() {
                Ok(result) => end_requests.add_result(&result),
                Err(error) => end_requests.add_operator_error(Error::from(error)),
            }
        }
        let calls = prepare_open_calls(interrupted.open_calls, &response.finish, halt_reason);
        if response.is_paused() {
            return self.run_iterations().await;
        }
        if !response.has_calls {
            let reply = ModelReply {
                content: response.content,
                finish: response.finish,
                calls,
            };
            return conclude(reply);
        }
        if let Some(ending) = self.run_calls(calls, end_requests).await? {
            return Ok(self.append_tool_answer(ending));
        }
        self.run_iterations().await
    }

    /// Checks that the run can begin, and replaces the tools of the previous turn's roles by those of this turn's roles.
    async fn prepare(&mut self) -> Result<(), RunFailure> {
        if let Some(failure) = self.refusal() {
            return Err(failure);
        }
        let run = &mut self.run;
        let roles = &mut run.conversation.roles;
        let resolved = tokio::select! {
            biased;
            failure = run.stop.wait() => return Err(failure),
            resolved = roles.resolve(&self.roles, &run.context) => resolved.map_err(RunFailure::Tool)?,
        };
        roles.apply(resolved, &Caller::of(&run.context), &mut run.conversation.toolbox);
        Ok(())
    }

    /// Returns the reason why the run cannot begin, or `None` if it can.
    fn refusal(&self) -> Option<RunFailure> {
        let run = &self.run;
        run.stop
            .is_cancelled()
            .then_some(RunFailure::Cancelled)
            .or_else(|| run.account.reached_limit())
            .or_else(|| too_many_pictures(&self.pictures))
    }

    /// Begins a turn. If there is a user message, appends it to the history, and applies the changes that the strategies request.
    async fn begin_turn(&mut self, prompt: Option<&str>) {
        self.is_open = true;
        let conversation = &mut *self.run.conversation;
        // A new turn ends the run that an earlier process did not finish. Its open calls are answered as cancelled.
        conversation.interrupted_run = None;
        if let Some(prompt) = prompt {
            conversation.history.append(Message::user(prompt));
        }
        conversation.process.begin_run(prompt);
        conversation.turns += 1;
        let event = Event::TurnStarted {
            loop_id: self.run.context.text(LOOP_ID).unwrap_or_default().to_owned(),
            turn: conversation.turns,
            tools: conversation.toolbox.start_turn(),
            prompt: prompt.map(str::to_owned),
            answer_schema: self.run.answer_schema.clone().map(Box::new),
        };
        self.run.emit(&event);
        attach_to_prompt(&mut self.run, std::mem::take(&mut self.pictures));
        if self.run.changes_tools(prompt) {
            inject_for_turn(&mut self.run).await;
        }
        let limit_events = self.run.conversation.toolbox.limit_declared();
        self.run.emit_and_record(&limit_events);
    }

    /// Repeats inference and calls until the run ends.
    async fn run_iterations(&mut self) -> Result<Ending, RunFailure> {
        while self.run.tally.iterations < self.run.conversation.limits.iterations_max {
            if let Some(signal) = record_late_results(&mut self.run) {
                return Ok(self.append_tool_answer(Ending::by_signal(signal)));
            }
            let reply = infer_until_complete(&mut self.run).await?;
            if reply.calls.is_empty() {
                let ending = conclude(reply)?;
                if self.awaits_background && self.wait_for_late_result().await? {
                    continue;
                }
                return Ok(ending);
            }
            if let Some(ending) = self.run_calls(reply.calls, EndRequests::default()).await? {
                return Ok(self.append_tool_answer(ending));
            }
        }
        self.end_at_iteration_limit().await
    }

    /// Waits for a late result, or until the run must stop. Returns `false` if no background call is open.
    async fn wait_for_late_result(&mut self) -> Result<bool, RunFailure> {
        let RunState { conversation, stop, .. } = &mut self.run;
        tokio::select! {
            biased;
            failure = stop.wait() => Err(failure),
            has_arrived = conversation.late_results.wait() => Ok(has_arrived),
        }
    }

    /// Appends the answer of a tool that ended the run to the history, if the ending has one. Returns the ending.
    fn append_tool_answer(&mut self, ending: Ending) -> Ending {
        if let Some(answer) = ending.tool_answer() {
            let message = Message::assistant(answer, Vec::new());
            self.run.conversation.history.append(message);
            self.run.emit(&Event::AnsweredByTool {
                content: answer.to_owned(),
            });
        }
        ending
    }

    /// Runs the calls of a response that the limits allow. Returns `None` if the run continues. `end_requests` contains
    /// the requests to end the run from calls of the same response that returned in an earlier process.
    async fn run_calls(
        &mut self,
        calls: Vec<PreparedCall>,
        end_requests: EndRequests,
    ) -> Result<Option<Ending>, RunFailure> {
        let run = &mut self.run;
        if let Some(exhausted) = run.account.reached_limit() {
            self.run.refuse_open_calls("the budget of the run is exhausted");
            return Err(exhausted);
        }
        let limits = &run.conversation.limits;
        let calls_max = limits.calls_max;
        let call_count = u32::try_from(calls.len()).unwrap_or(u32::MAX);
        let calls_left = calls_max.saturating_sub(run.tally.calls_requested);
        let allowance = run.account.take_calls(call_count.min(calls_left));
        let quota = CallQuota {
            per_response: limits.calls_per_response_max as usize,
            calls_left: allowance.allowed as usize,
        };
        run.tally.calls_requested = run.tally.calls_requested.saturating_add(call_count);
        let dispatch = Dispatch::new(run, calls, &quota).with_end_requests(end_requests);
        let ending = dispatch.run().await?;
        if ending.is_some() || call_count <= allowance.allowed {
            return Ok(ending);
        }
        Err(RunFailure::CallLimit {
            max: allowance.refusing_limit.unwrap_or(calls_max),
        })
    }

    /// Ends a run that reached its iteration limit, according to the [`IterationPolicy`] of the conversation.
    async fn end_at_iteration_limit(&mut self) -> Result<Ending, RunFailure> {
        let max = self.run.conversation.limits.iterations_max;
        let ending = |answer| Ending::new(answer, StopReason::IterationLimit);
        match self.run.conversation.limits.on_iterations_max {
            IterationPolicy::Error => Err(RunFailure::IterationLimit { max }),
            IterationPolicy::Partial => Ok(ending(self.run.tally.last_text.take())),
            IterationPolicy::FinalAnswer => {
                let reply = infer(&mut self.run, Some(ToolChoice::None)).await?;
                self.run
                    .refuse_open_calls("this was the last response, which must not call tools");
                match conclude(reply)?.answer.filter(|answer| !answer.is_empty()) {
                    Some(answer) => Ok(ending(Some(answer))),
                    None => Err(RunFailure::IterationLimit { max }),
                }
            }
        }
    }

    /// Ends the run and returns its outcome.
    fn end(&mut self, ending: Ending) -> RunOutcome {
        self.close(ending.stop);
        self.take_outcome(ending)
    }

    /// Returns the outcome of the run, and empties its tally.
    fn take_outcome(&mut self, ending: Ending) -> RunOutcome {
        let usage = self.run.usage();
        let tally = std::mem::take(&mut self.run.tally);
        RunOutcome {
            answer: ending.answer,
            stop: ending.stop,
            signal: ending.signal,
            iterations: tally.iterations,
            tool_calls: tally.calls,
            artifacts: tally.artifacts,
            denied: tally.denied,
            injected: tally.injected,
            removed: tally.removed,
            usage,
            history: self.run.conversation.history.messages().to_vec(),
        }
    }

    /// Answers the open calls as cancelled, appends the text of an incomplete response, and emits the end of the run.
    fn close(&mut self, stop: StopReason) {
        self.is_open = false;
        let run = &mut self.run;
        run.conversation.history.answer_open_calls(&cancelled_call());
        run.append_interrupted_answer();
        run.conversation.process.end_run(stop);
        run.emit(&Event::Finished {
            stop,
            iterations: run.tally.iterations,
            tool_calls: run.tally.calls.len(),
            usage: run.usage(),
            wall_ms: millis(self.started.elapsed()),
        });
    }
}

/// A run whose future is dropped before its end ends as cancelled.
impl Drop for ToolLoop<'_> {
    fn drop(&mut self) {
        if self.is_open {
            self.close(StopReason::Cancelled);
        }
    }
}
