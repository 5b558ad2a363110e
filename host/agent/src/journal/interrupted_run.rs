//! The run that an earlier process did not finish.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::event::{Event, RecordedApprovalRequest, RecordedOutcome, RecordedStart, Resolution};
use crate::model::FinishReason;
use toolwit_core::{Arguments, EffectClass, ToolCall, ToolId, ToolName};

/// A run that an earlier process did not finish. [`Conversation::resume_run`](crate::Conversation::resume_run) continues it.
#[derive(Clone, Debug)]
pub struct InterruptedRun {
    /// The id of the run.
    pub(crate) loop_id: String,
    /// The JSON Schema of its answer, if the run has one.
    pub(crate) answer_schema: Option<Box<Value>>,
    /// The number of inferences so far.
    pub(crate) iterations: u32,
    /// The number of calls of the run that have an answer, without those of [`Event::OpenCallsAnswered`].
    pub(crate) answered_calls: u32,
    /// The names of the tools that were declared to the model.
    pub(crate) declared_tools: Vec<ToolName>,
    /// The start of the last call of each tool, also in earlier runs of the session.
    pub(crate) last_starts: HashMap<ToolName, RecordedStart>,
    /// The last response of the model; `None` if the last request has no response.
    pub(crate) last_reply: Option<LastReply>,
    /// The calls of the last response that have no answer, in order.
    pub(crate) open: Vec<OpenCall>,
    /// The questions about open calls that have no decision.
    pub(crate) questions: Vec<RecordedApprovalRequest>,
    /// The recorded outcomes of the calls of the last response that have an answer.
    pub(crate) answered_outcomes: Vec<RecordedOutcome>,
}

/// The last response of the model.
#[derive(Clone, Debug)]
pub(crate) struct LastReply {
    pub(crate) content: String,
    pub(crate) finish: FinishReason,
    pub(crate) has_calls: bool,
}

impl LastReply {
    /// Returns whether the provider paused the response, so that another request continues it.
    pub(crate) fn is_paused(&self) -> bool {
        self.finish == FinishReason::Paused && !self.has_calls
    }
}

/// A call without an answer.
#[derive(Clone, Debug)]
pub(crate) struct OpenCall {
    pub(crate) call: ToolCall,
    /// The start of the call; `None` if it did not begin.
    pub(crate) started: Option<StartedCall>,
    /// The outcome of the call, if it ended before its answer was recorded.
    pub(crate) outcome: Option<RecordedOutcome>,
    /// A person's decision about the call, if there is one.
    pub(crate) resolution: Option<Resolution>,
}

/// The start of a call, with its tool.
#[derive(Clone, Debug)]
pub(crate) struct StartedCall {
    pub(crate) name: ToolName,
    pub(crate) tool: ToolId,
    /// The details of the start; `None` if they were not recorded.
    pub(crate) start: Option<RecordedStart>,
}

/// A call of an interrupted run that may or may not have taken effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct UnresolvedCall {
    /// The id of the call.
    pub id: String,
    /// The name of the tool.
    pub name: ToolName,
    /// The id of the tool.
    pub tool: ToolId,
    /// The arguments, without secrets.
    pub arguments: Arguments,
    /// The rules of the grant that the call could use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grant: Vec<String>,
    /// The digest of the code that ran, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
}

impl InterruptedRun {
    /// Returns the calls about which a person must decide before the run can continue.
    #[must_use]
    pub fn unresolved(&self) -> Vec<UnresolvedCall> {
        let open = self.open.iter().filter(|open| open.is_unresolved());
        open.filter_map(OpenCall::as_unresolved).collect()
    }

    /// Returns the calls that a person decided to run again, and that have not started again since. A program that asks for
    /// approvals can treat the decision as an approval of a call with the same arguments, grant and code.
    #[must_use]
    pub fn calls_to_run_again(&self) -> Vec<UnresolvedCall> {
        let run_again = Some(Resolution::RunAgain);
        let decided = self.open.iter().filter(|open| open.resolution == run_again);
        decided.filter_map(OpenCall::as_unresolved).collect()
    }

    /// Returns the questions about calls that have no decision, in their order. The calls have not begun. The
    /// [approver](toolwit_core::Approver) is asked again when the run continues: for the same call, its request has the same
    /// id, arguments and digest.
    #[must_use]
    pub fn pending_approvals(&self) -> &[RecordedApprovalRequest] {
        &self.questions
    }
}

impl OpenCall {
    /// Returns the call as it began; `None` if it did not begin.
    fn as_unresolved(&self) -> Option<UnresolvedCall> {
        let started = self.started.as_ref()?;
        let (arguments, grant, code) = match started.start.clone() {
            Some(start) => (start.arguments, start.grant, start.code),
            None => Default::default(),
        };
        Some(UnresolvedCall {
            id: self.call.id.clone(),
            name: started.name.clone(),
            tool: started.tool.clone(),
            arguments,
            grant,
            code,
        })
    }

    /// Returns whether a person must decide about the call: it began, may have changed something, and has neither an outcome
    /// nor a decision.
    pub(crate) fn is_unresolved(&self) -> bool {
        let Some(started) = &self.started else { return false };
        // A call that is not a write runs again without a decision, with the arguments of the history. If the arguments were
        // edited, the new run may have another effect. Only a call with effect class `Read` may then run again.
        let needs_decision = started.start.as_ref().is_none_or(|start| {
            start.effect.class == EffectClass::Write || (start.is_edited && start.effect.class != EffectClass::Read)
        });
        needs_decision && self.outcome.is_none() && self.resolution.is_none()
    }
}

/// Returns the last run that the events begin, if it did not end. Returns `None` if no run began or the last one ended.
pub(crate) fn interrupted_run(events: &[Event]) -> Option<InterruptedRun> {
    let begins_run = |event: &Event| matches!(event, Event::TurnStarted { .. });
    let start = events.iter().rposition(begins_run)?;
    let run_events = &events[start..];
    if run_events.iter().any(|event| matches!(event, Event::Finished { .. })) {
        return None;
    }
    let mut run = InterruptedRun {
        loop_id: String::new(),
        answer_schema: None,
        iterations: 0,
        answered_calls: 0,
        declared_tools: crate::event::visible_tools(events),
        last_starts: events.iter().filter_map(recorded_start).collect(),
        last_reply: None,
        open: Vec::new(),
        questions: Vec::new(),
        answered_outcomes: Vec::new(),
    };
    let mut outcomes = HashMap::new();
    for event in run_events {
        run.apply(event, &mut outcomes);
    }
    Some(run)
}

/// Returns the start of a call, with the name of its tool. Returns `None` for an event without a recorded start.
fn recorded_start(event: &Event) -> Option<(ToolName, RecordedStart)> {
    match event {
        Event::ToolStarted { name, start, .. } => Some((name.clone(), start.as_deref()?.clone())),
        _ => None,
    }
}

impl InterruptedRun {
    /// Applies an event of the run. `outcomes` has the recorded outcomes of the calls that returned so far, by call id.
    fn apply(&mut self, event: &Event, outcomes: &mut HashMap<String, RecordedOutcome>) {
        match event {
            Event::TurnStarted {
                loop_id, answer_schema, ..
            } => {
                loop_id.clone_into(&mut self.loop_id);
                self.answer_schema.clone_from(answer_schema);
            }
            Event::IterationStarted { iteration, .. } => {
                self.iterations = *iteration;
                self.last_reply = None;
                self.answered_outcomes.clear();
                self.questions.clear();
            }
            Event::ModelAnswered {
                content,
                finish,
                tool_calls,
                ..
            } => {
                self.last_reply = Some(LastReply {
                    content: content.clone(),
                    finish: finish.clone(),
                    has_calls: !tool_calls.is_empty(),
                });
                let open = tool_calls.iter().cloned().map(|call| OpenCall {
                    call,
                    started: None,
                    outcome: None,
                    resolution: None,
                });
                self.open = open.collect();
            }
            Event::ApprovalRequested(question) if self.find_open(&question.id).is_some() => {
                self.remove_question(&question.id);
                self.questions.push((**question).clone());
            }
            Event::ApprovalDecided(decision) => self.remove_question(&decision.id),
            Event::ToolStarted { id, name, tool, start } => {
                let start = start.as_deref().cloned();
                let (name, tool) = (name.clone(), tool.clone());
                self.record_start(id, StartedCall { name, tool, start });
            }
            Event::ToolReturned { id, outcome } => {
                outcomes.insert(id.clone(), (**outcome).clone());
                if let Some(open) = self.find_open(id) {
                    open.outcome = Some((**outcome).clone());
                }
            }
            Event::CallResolved { id, resolution } => {
                if let Some(open) = self.find_open(id) {
                    open.resolution = Some(*resolution);
                }
            }
            Event::ToolFinished { id, .. } => {
                self.answered_outcomes.extend(outcomes.remove(id));
                self.close_call(id);
            }
            Event::CallRefused { id, .. } | Event::CallGuided { id, .. } => self.close_call(id),
            Event::OpenCallsAnswered { .. } => {
                self.open.clear();
                self.questions.clear();
            }
            _ => {}
        }
    }

    fn find_open(&mut self, id: &str) -> Option<&mut OpenCall> {
        self.open.iter_mut().find(|open| open.call.id == id)
    }

    fn record_start(&mut self, id: &str, started: StartedCall) {
        self.remove_question(id);
        if let Some(open) = self.find_open(id) {
            open.started = Some(started);
            // The call ran again after a person's decision, which does not apply to this new start.
            open.resolution = None;
        }
    }

    fn remove_question(&mut self, id: &str) {
        self.questions.retain(|question| question.id != id);
    }

    /// Records that a call was answered.
    fn close_call(&mut self, id: &str) {
        self.remove_question(id);
        self.open.retain(|open| open.call.id != id);
        self.answered_calls = self.answered_calls.saturating_add(1);
    }
}
