//! The run that an earlier process did not finish.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::child_calls::{ChildCall, ChildCalls};
use crate::event::{
    EarlierAnswers, Event, RecordedAnswer, RecordedApprovalRequest, RecordedOutcome, RecordedQuestion, RecordedStart,
    Resolution, TraceEntry,
};
use crate::model::FinishReason;
use crate::outcome::CallRecord;
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
    /// The number of calls of the run that have an answer, except the calls that [`Event::OpenCallsAnswered`] answered.
    pub(crate) answered_call_count: u32,
    /// The calls of the run that ran and have an answer.
    pub(crate) answered_calls: Vec<CallRecord>,
    /// The names of the tools that were declared to the model.
    pub(crate) declared_tools: Vec<ToolName>,
    /// The start of the last call of each tool, including calls in earlier runs of the session.
    pub(crate) last_starts: HashMap<ToolName, RecordedStart>,
    /// The last response of the model; `None` if the last request has no response.
    pub(crate) last_response: Option<LastResponse>,
    /// The calls of the last response that have no answer, in order.
    pub(crate) open_calls: Vec<OpenCall>,
    /// The approval requests for open calls. A request that has a decision is not among them.
    pub(crate) questions: Vec<RecordedApprovalRequest>,
    /// The recorded outcomes of the calls of the last response that have an answer.
    pub(crate) answered_outcomes: Vec<RecordedOutcome>,
}

/// The last response of the model.
#[derive(Clone, Debug)]
pub(crate) struct LastResponse {
    pub(crate) content: String,
    pub(crate) finish: FinishReason,
    pub(crate) has_calls: bool,
}

impl LastResponse {
    /// Returns whether the provider paused the response, so that another request must continue it.
    pub(crate) fn is_paused(&self) -> bool {
        self.finish == FinishReason::Paused && !self.has_calls
    }
}

/// A call of the last response without an answer.
#[derive(Clone, Debug)]
pub(crate) struct OpenCall {
    pub(crate) call: ToolCall,
    /// The start of the call; `None` if it did not begin.
    pub(crate) started: Option<StartedCall>,
    /// The outcome of the call, if it ended before its answer was recorded.
    pub(crate) outcome: Option<RecordedOutcome>,
    /// A person's decision about the call, if there is one.
    pub(crate) resolution: Option<Resolution>,
    /// The calls that began inside the call.
    pub(crate) children: Vec<ChildCall>,
    /// The questions of the call without an answer, by their numbers.
    pub(crate) open_questions: HashMap<u32, RecordedQuestion>,
    /// The answered questions of the call.
    pub(crate) answers: EarlierAnswers,
}

/// The start of a call, with its tool.
#[derive(Clone, Debug)]
pub(crate) struct StartedCall {
    pub(crate) name: ToolName,
    pub(crate) tool: ToolId,
    /// The details of the start; `None` if they were not recorded.
    pub(crate) recorded_start: Option<RecordedStart>,
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
    #[serde(rename = "code", default, skip_serializing_if = "Option::is_none")]
    pub code_digest: Option<String>,
    /// The calls that began inside the call, in the order of their starts. Some of them may have ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<ChildCall>,
}

impl InterruptedRun {
    /// Returns the calls about which a person must decide before the run can continue.
    #[must_use]
    pub fn unresolved(&self) -> Vec<UnresolvedCall> {
        let unresolved = self.open_calls.iter().filter(|open_call| open_call.is_unresolved());
        unresolved.filter_map(OpenCall::to_unresolved_call).collect()
    }

    /// Returns the calls that a person decided to run again, and that have not started again since. A program that asks for
    /// approvals can treat the decision as an approval of a call with the same arguments, grant and code.
    #[must_use]
    pub fn calls_to_run_again(&self) -> Vec<UnresolvedCall> {
        let run_again = Some(Resolution::RunAgain);
        let decided = self
            .open_calls
            .iter()
            .filter(|open_call| open_call.resolution == run_again);
        decided.filter_map(OpenCall::to_unresolved_call).collect()
    }

    /// Returns the approval requests that have no decision, in the order in which they were recorded. Their calls have not
    /// begun. When the run continues, the [approver](toolwit_core::Approver) is asked again. If the call has not changed, the
    /// new request has the same id, arguments and digest.
    #[must_use]
    pub fn pending_approvals(&self) -> &[RecordedApprovalRequest] {
        &self.questions
    }
}

impl OpenCall {
    /// Describes a call that did not begin.
    fn new(call: ToolCall) -> Self {
        Self {
            call,
            started: None,
            outcome: None,
            resolution: None,
            children: Vec::new(),
            open_questions: HashMap::new(),
            answers: EarlierAnswers::new(),
        }
    }

    /// Returns the call with the details of its start, or `None` if the call did not begin.
    fn to_unresolved_call(&self) -> Option<UnresolvedCall> {
        let started = self.started.as_ref()?;
        let (arguments, grant, code_digest) = match started.recorded_start.clone() {
            Some(start) => (start.arguments, start.grant, start.code_digest),
            None => Default::default(),
        };
        Some(UnresolvedCall {
            id: self.call.id.clone(),
            name: started.name.clone(),
            tool: started.tool.clone(),
            arguments,
            grant,
            code_digest,
            children: self.children.clone(),
        })
    }

    /// Returns whether the call began in the earlier process, and has neither an outcome nor a decision against another run.
    pub(crate) fn runs_again(&self) -> bool {
        let may_run = matches!(self.resolution, None | Some(Resolution::RunAgain));
        self.started.is_some() && self.outcome.is_none() && may_run
    }

    /// Records the answer to an open question, or drops the question if it has no answer.
    fn record_answer(&mut self, answered: &RecordedAnswer) {
        let question = self.open_questions.remove(&answered.number);
        if let (Some(question), Some(answer)) = (question, &answered.answer) {
            self.answers.insert(answered.number, (question, answer.clone()));
        }
    }

    /// Returns whether a person must decide about the call: it began, it or a call inside it may have changed something, and it
    /// has neither an outcome nor a decision.
    pub(crate) fn is_unresolved(&self) -> bool {
        let Some(started) = &self.started else { return false };
        // A call without a recorded start can be a write, so it needs a decision. A call that is not a write runs again with the
        // arguments of the history. If its arguments were edited before the earlier start, this can have another effect, so only
        // a call with the effect class `Read` then runs again without a decision.
        let needs_decision = started.recorded_start.as_ref().is_none_or(|start| {
            start.effect.class == EffectClass::Write || (start.is_edited && start.effect.class != EffectClass::Read)
        });
        let has_final_children = self.children.iter().any(|child| !child.may_be_repeated(&self.call.id));
        (needs_decision || has_final_children) && self.outcome.is_none() && self.resolution.is_none()
    }
}

/// Returns the last run of a conversation that began in these entries, which include those of its agents. `events` are the
/// events of the conversation itself. Returns `None` if no run began, or if the last run ended.
pub(crate) fn interrupted_run(entries: &[TraceEntry], events: &[Event]) -> Option<InterruptedRun> {
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
        answered_call_count: 0,
        answered_calls: Vec::new(),
        declared_tools: crate::event::visible_tools(events),
        last_starts: events.iter().filter_map(recorded_start).collect(),
        last_response: None,
        open_calls: Vec::new(),
        questions: Vec::new(),
        answered_outcomes: Vec::new(),
    };
    let mut outcomes = HashMap::new();
    for event in run_events {
        run.apply(event, &mut outcomes);
    }
    let children = ChildCalls::of(entries);
    for open_call in &mut run.open_calls {
        open_call.children = children.descendants(&open_call.call.id);
    }
    Some(run)
}

/// Returns the recorded start of a call and the name of its tool. Returns `None` for an event without a recorded start.
fn recorded_start(event: &Event) -> Option<(ToolName, RecordedStart)> {
    match event {
        Event::ToolStarted { name, start, .. } => Some((name.clone(), start.as_deref()?.clone())),
        _ => None,
    }
}

/// Returns the record of a call that ended. Returns `None` for another event.
fn call_record(event: &Event) -> Option<CallRecord> {
    match event {
        Event::ToolFinished {
            id,
            name,
            tool,
            wall_ms,
            is_error,
            ..
        } => Some(CallRecord {
            id: id.clone(),
            name: name.clone(),
            tool: tool.clone(),
            is_error: *is_error,
            wall_ms: *wall_ms,
        }),
        _ => None,
    }
}

impl InterruptedRun {
    /// Updates the run with its next event. `outcomes` has the recorded outcomes of the calls that have returned and have no
    /// answer yet, by call id.
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
                self.last_response = None;
                self.answered_outcomes.clear();
                self.questions.clear();
            }
            Event::ModelAnswered {
                content,
                finish,
                tool_calls,
                ..
            } => {
                self.last_response = Some(LastResponse {
                    content: content.clone(),
                    finish: finish.clone(),
                    has_calls: !tool_calls.is_empty(),
                });
                self.open_calls = tool_calls.iter().cloned().map(OpenCall::new).collect();
            }
            Event::ApprovalRequested(question) if self.find_open_call(&question.id).is_some() => {
                self.remove_question(&question.id);
                self.questions.push((**question).clone());
            }
            Event::ApprovalDecided(decision) => self.remove_question(&decision.id),
            Event::ToolStarted { id, name, tool, start } => {
                let started = StartedCall {
                    name: name.clone(),
                    tool: tool.clone(),
                    recorded_start: start.as_deref().cloned(),
                };
                self.record_start(id, started);
            }
            Event::ToolReturned { id, outcome } => {
                outcomes.insert(id.clone(), (**outcome).clone());
                if let Some(open_call) = self.find_open_call(id) {
                    open_call.outcome = Some((**outcome).clone());
                }
            }
            Event::QuestionAsked(question) => self.record_question(question),
            Event::QuestionAnswered(answer) => self.record_answer(answer),
            Event::CallResolved { id, resolution } => {
                if let Some(open_call) = self.find_open_call(id) {
                    open_call.resolution = Some(*resolution);
                }
            }
            Event::ToolFinished { id, .. } => {
                self.answered_calls.extend(call_record(event));
                self.answered_outcomes.extend(outcomes.remove(id));
                self.close_call(id);
            }
            Event::CallRefused { id, .. } | Event::CallGuided { id, .. } => self.close_call(id),
            Event::OpenCallsAnswered { .. } => {
                self.open_calls.clear();
                self.questions.clear();
            }
            _ => {}
        }
    }

    fn find_open_call(&mut self, id: &str) -> Option<&mut OpenCall> {
        self.open_calls.iter_mut().find(|open_call| open_call.call.id == id)
    }

    fn record_question(&mut self, question: &RecordedQuestion) {
        if let Some(open_call) = self.find_open_call(&question.id) {
            open_call.open_questions.insert(question.number, question.clone());
        }
    }

    fn record_answer(&mut self, answer: &RecordedAnswer) {
        if let Some(open_call) = self.find_open_call(&answer.id) {
            open_call.record_answer(answer);
        }
    }

    fn record_start(&mut self, id: &str, started: StartedCall) {
        self.remove_question(id);
        if let Some(open_call) = self.find_open_call(id) {
            open_call.started = Some(started);
            // An earlier decision was about an earlier start of the call. It does not apply to this start.
            open_call.resolution = None;
        }
    }

    fn remove_question(&mut self, id: &str) {
        self.questions.retain(|question| question.id != id);
    }

    /// Records that a call was answered.
    fn close_call(&mut self, id: &str) {
        self.remove_question(id);
        self.open_calls.retain(|open_call| open_call.call.id != id);
        self.answered_call_count = self.answered_call_count.saturating_add(1);
    }
}
