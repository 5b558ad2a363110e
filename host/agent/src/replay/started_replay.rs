//! A replay, before and after its start.

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, PoisonError};

use serde_json::Value;

use super::calls::{CallOrigin, CallReplay, RecordedApprover, ReplayDecorator, ReplayedCall};
use super::comparison::{Difference, differences};
use super::divergence::Divergence;
use super::model::RecordedModel;
use super::recording::Recording;
use super::replay_log::ReplayLog;
use super::resumptions::without_interruptions;
use crate::event::Observer;
use crate::model::ChatModel;
use toolwit_core::{ApprovalMode, ApprovalPolicy, Approvals, Approver, Decorator};

/// The settings of a replay: a traced conversation that runs again.
///
/// The model returns the recorded responses. A call is executed again, with the current grants, if it changes nothing,
/// its tool does not run on a server, and the grants of the tool allow neither HTTP nor other tools nor a key-value store.
/// Every other call is answered from the trace. The calls of the model run sequentially. Freeze the clocks and the
/// randomness of the plugins, such as with `ToolwitBuilder::frozen`, and provide the files of the recorded run.
///
/// Each request to the model and each call must be equal to the recorded one. The first request or call that differs ends
/// the run with a [`Divergence`]: an error with the number of the event and a diff.
///
/// A replay can [fork](Self::with_fork) at an event. From this event on, calls run as in a new conversation.
///
/// ```
/// use toolwit_agent::model::ScriptedModel;
/// use toolwit_agent::{Conversation, Event, Journal, Recording, Replay, Trace};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let trace = std::sync::Arc::new(Trace::new(Vec::new()));
/// let builder = Conversation::builder().model(ScriptedModel::new().answer("Tea is a drink."));
/// let mut conversation = builder.journal(Journal::unstored()).shared_observer(trace.clone()).build()?;
/// conversation.run("What is tea?").await?;
/// drop(conversation);
/// let trace = std::sync::Arc::into_inner(trace).ok_or("the trace is in use")?;
///
/// let replay = Replay::new(Recording::parse(&String::from_utf8(trace.into_inner())?)?).start();
/// let mut conversation = Conversation::builder().replay(&replay).build()?;
/// conversation.run_replay(&replay, Default::default()).await.ok_or("the trace has no turns")??;
/// assert!(replay.differences().is_empty());
/// # Ok(()) }
/// ```
pub struct Replay {
    recording: Recording,
    fork: Option<u64>,
    answer_after_fork: Option<String>,
    model_after_fork: Option<Arc<dyn ChatModel>>,
}

/// A replay that started: its model, its calls so far, and the differences from the trace.
#[derive(Clone)]
pub struct StartedReplay {
    recording: Arc<Recording>,
    model: Arc<RecordedModel>,
    calls: Arc<CallReplay>,
    log: Arc<ReplayLog>,
}

impl fmt::Debug for StartedReplay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StartedReplay").finish_non_exhaustive()
    }
}

impl Replay {
    /// Creates a replay of a recording, without a fork.
    #[must_use]
    pub fn new(recording: Recording) -> Self {
        Self {
            recording,
            fork: None,
            answer_after_fork: None,
            model_after_fork: None,
        }
    }

    /// Sets the number of the event at which the replay forks. From this event on, calls run as in a new conversation.
    /// The model still returns the recorded responses, unless an [answer](Self::with_answer) or another
    /// [model](Self::with_model) is set.
    #[must_use]
    pub fn with_fork(mut self, sequence: u64) -> Self {
        self.fork = Some(sequence);
        self
    }

    /// Sets the text of the model's first response from the fork on.
    #[must_use]
    pub fn with_answer(mut self, answer: impl Into<String>) -> Self {
        self.answer_after_fork = Some(answer.into());
        self
    }

    /// Sets the model that responds from the fork on. If an [answer](Self::with_answer) is set, the model responds after
    /// this answer.
    #[must_use]
    pub fn with_model(mut self, model: Arc<dyn ChatModel>) -> Self {
        self.model_after_fork = Some(model);
        self
    }

    /// Starts the replay.
    #[must_use]
    pub fn start(self) -> StartedReplay {
        let recording = Arc::new(self.recording);
        let mut model = RecordedModel::new(recording.clone(), self.fork);
        model.answer_after_fork = self.answer_after_fork;
        model.continuation = self.model_after_fork;
        let (has_passed_fork, check) = (model.has_passed_fork.clone(), model.check.clone());
        let calls = CallReplay::new(recording.clone(), self.fork, has_passed_fork, check);
        StartedReplay {
            log: Arc::new(ReplayLog::new(&recording, model.check.clone())),
            calls: Arc::new(calls),
            model: Arc::new(model),
            recording,
        }
    }
}

impl StartedReplay {
    /// Returns the parsed trace that is replayed.
    #[must_use]
    pub fn recording(&self) -> &Recording {
        &self.recording
    }

    /// Returns the model of the replay, which returns the recorded responses.
    #[must_use]
    pub fn model(&self) -> Arc<dyn ChatModel> {
        self.model.clone()
    }

    /// Returns approvals that repeat the recorded decisions.
    #[must_use]
    pub fn approvals(&self) -> Approvals {
        let approver = RecordedApprover {
            calls: self.calls.clone(),
            continuation: None,
        };
        Approvals::new(ApprovalPolicy::of_mode(ApprovalMode::Always)).with_approver(approver)
    }

    /// Returns an approver that repeats the recorded decisions before the fork, and asks `approver` from the fork on.
    #[must_use]
    pub fn approver(&self, approver: Arc<dyn Approver>) -> impl Approver + use<> {
        RecordedApprover {
            calls: self.calls.clone(),
            continuation: Some(approver),
        }
    }

    /// Returns the calls that the model has made before the fork.
    #[must_use]
    pub fn calls(&self) -> Vec<ReplayedCall> {
        let calls = self.calls.replayed_calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.clone()
    }

    /// Returns the first request or call that differs from the trace, with which the replay ends. Returns `None` if no
    /// request or call has differed so far.
    #[must_use]
    pub fn divergence(&self) -> Option<Divergence> {
        self.model.check.divergence()
    }

    /// Compares the events of the replay so far with the trace, and returns the differences. In contrast to a
    /// [divergence](Self::divergence), a difference does not end the replay. If there is a divergence, only the events before it
    /// are compared.
    #[must_use]
    pub fn differences(&self) -> Vec<Difference> {
        let answered_calls = self.calls().into_iter().filter(|call| call.origin == CallOrigin::Trace);
        let answered_ids: HashSet<_> = answered_calls.map(|call| call.id).collect();
        let divergence_sequence = self.divergence().map(|divergence| divergence.sequence);
        let entries = self.recording.entries().iter();
        let compared_entries = entries.filter(|entry| divergence_sequence.is_none_or(|end| entry.sequence <= end));
        let recorded: Vec<_> = without_interruptions(compared_entries)
            .into_iter()
            .filter_map(|entry| serde_json::to_value(entry).ok())
            .collect();
        let mut differences = differences(&recorded, &self.log.entries_before_divergence(), &answered_ids);
        // The event at which the replay diverged is reported as the divergence.
        differences.retain(|difference| divergence_sequence.is_none() || difference.sequence != divergence_sequence);
        differences
    }

    /// Returns the trace of the replay itself, as lines. To make the traces of two replays equal, all events have the time
    /// of the first recorded event, the recorded ids of the process and its runs, and durations of zero.
    #[must_use]
    pub fn trace(&self) -> String {
        self.log
            .entries()
            .iter()
            .map(|entry: &Value| format!("{entry}\n"))
            .collect()
    }

    pub(crate) fn decorator(&self) -> impl Decorator + use<> {
        ReplayDecorator(self.calls.clone())
    }

    pub(crate) fn observer(&self) -> Arc<dyn Observer> {
        self.log.clone()
    }
}
