//! Requests of a tool to the run that called it.

use serde::{Deserialize, Serialize};

use crate::ToolResult;

/// A request to end the run for a reason other than a failure.
///
/// A result carries the signal in [`ToolResult::signal`]; a typed function can also return a signal as its error. The
/// signal passes through decorators and nested runs. Each run that receives the signal completes the calls of the current
/// model response, ends with the stop reason of the signal, and leaves a history that can be continued.
///
/// ```
/// use toolwit_core::{NativeTool, NoArguments, Signal};
///
/// let confirm = NativeTool::typed("confirm", "Asks whether to continue.", |_: NoArguments, _context| async move {
///     Err::<String, _>(Signal::ask_user("Shall I place the order?"))
/// })?;
/// # Ok::<(), toolwit_core::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "signal", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Signal {
    /// The plan must change. The caller of the run creates a new plan.
    #[error("a new plan is needed: {reason}")]
    Replan {
        /// The reason.
        reason: String,
    },
    /// The user must answer before the run can continue.
    #[error("the user must answer first: {question}")]
    AskUser {
        /// The question.
        question: String,
    },
    /// The work is done.
    #[error("the run ends here: {reason}")]
    Terminate {
        /// The reason.
        reason: String,
    },
}

impl Signal {
    /// Requests a new plan from the caller of the run.
    #[must_use]
    pub fn replan(reason: impl Into<String>) -> Self {
        Self::Replan { reason: reason.into() }
    }

    /// Requests an answer from the user.
    #[must_use]
    pub fn ask_user(question: impl Into<String>) -> Self {
        Self::AskUser {
            question: question.into(),
        }
    }

    /// Requests the end of the run.
    #[must_use]
    pub fn terminate(reason: impl Into<String>) -> Self {
        Self::Terminate { reason: reason.into() }
    }
}

/// The model reads the signal as the result of its call. A replan or a question means that the tool has not done its work,
/// so the result is an error.
impl From<Signal> for ToolResult {
    fn from(signal: Signal) -> Self {
        let text = signal.to_string();
        let result = match signal {
            Signal::Terminate { .. } => Self::text(text),
            Signal::Replan { .. } | Signal::AskUser { .. } => Self::error(text),
        };
        result.with_signal(signal)
    }
}
