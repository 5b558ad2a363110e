//! The ends of runs, and the requests of tools to end a run.

use super::inference::ModelReply;
use crate::model::{FinishReason, ModelError};
use crate::outcome::{RunFailure, StopReason};
use toolwit_core::{Error, Signal, ToolResult};

/// The end of a run: its answer, and the reason why it ended.
pub(super) struct Ending {
    pub(super) answer: Option<String>,
    pub(super) stop: StopReason,
    pub(super) signal: Option<Signal>,
}

impl Ending {
    pub(super) fn new(answer: Option<String>, stop: StopReason) -> Self {
        Self {
            answer,
            stop,
            signal: None,
        }
    }

    /// Creates the ending that a tool requests with a signal. A question or a reason becomes the answer of the run.
    pub(super) fn by_signal(signal: Signal) -> Self {
        let answer = match &signal {
            Signal::AskUser { question: text } | Signal::Terminate { reason: text } => Some(text.clone()),
            _ => None,
        };
        Self {
            answer,
            stop: StopReason::from(&signal),
            signal: Some(signal),
        }
    }

    /// Returns the answer of the tool that ended the run, for the history. An empty text is an answer only if the tool
    /// returned it as the answer of the run.
    pub(super) fn tool_answer(&self) -> Option<&str> {
        let is_direct = self.stop == StopReason::ReturnDirect;
        self.answer.as_deref().filter(|answer| is_direct || !answer.is_empty())
    }
}

/// Returns the ending of a run whose last response has no calls.
///
/// # Errors
/// [`RunFailure`] if the response was truncated, withheld or paused, or if it is empty and the provider stopped it for an
/// unknown reason.
pub(super) fn conclude(reply: ModelReply) -> Result<Ending, RunFailure> {
    match reply.finish {
        FinishReason::Length => Err(RunFailure::Length),
        FinishReason::ContentFilter => Err(RunFailure::Withheld),
        FinishReason::Refusal if reply.content.is_empty() => Err(RunFailure::Withheld),
        FinishReason::Paused => Err(RunFailure::Model(ModelError::Paused)),
        FinishReason::Other(reason) if reply.content.is_empty() => Err(RunFailure::Model(ModelError::Malformed {
            message: format!("it stopped with the reason `{reason}` and has no text"),
        })),
        _ => {
            if reply.content.trim().is_empty() {
                tracing::warn!("the answer of the model is empty");
            }
            Ok(Ending::new(Some(reply.content), StopReason::Answered))
        }
    }
}

/// Requests of tools to end the run after the calls of one response. Only the first request of each kind has an effect.
#[derive(Default)]
pub(super) struct EndRequests {
    operator_error: Option<Error>,
    signal: Option<Signal>,
    direct_answer: Option<String>,
}

impl EndRequests {
    /// Adds the request of a result to end the run, if any.
    pub(super) fn add_result(&mut self, result: &ToolResult) {
        if self.direct_answer.is_none() && result.is_final() {
            self.direct_answer = Some(result.content());
        }
        self.signal = self.signal.take().or_else(|| result.signal.clone());
    }

    /// Adds an error that only the operator can fix.
    pub(super) fn add_operator_error(&mut self, error: Error) {
        self.operator_error.get_or_insert(error);
    }

    /// Returns the end of the run, or `None` if no tool requested one. An operator error takes precedence over a
    /// signal, and a signal over a direct answer.
    ///
    /// # Errors
    /// [`RunFailure::Tool`] with the operator error.
    pub(super) fn ending(self) -> Result<Option<Ending>, RunFailure> {
        if let Some(error) = self.operator_error {
            return Err(RunFailure::Tool(error));
        }
        let by_answer = |answer| Ending::new(Some(answer), StopReason::ReturnDirect);
        Ok(self.signal.map(Ending::by_signal).or(self.direct_answer.map(by_answer)))
    }
}
