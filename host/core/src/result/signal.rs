//! What a tool asks of the run that called it.

use serde::{Deserialize, Serialize};

use crate::ToolResult;

/// A tool's wish that the run ends here, for a reason that is no failure.
///
/// A result carries it in [`ToolResult::signal`]; a typed function may also return it as its error. It passes every decorator and
/// every nested loop on its way up. Each run that it passes answers the calls of the response, stops with a
/// stop reason of its own, and leaves a history that can be continued.
///
/// ```
/// use toolwit_core::{NativeTool, NoArguments, Signal};
///
/// let confirm = NativeTool::typed("confirm", "Asks whether to go on.", |_: NoArguments, _context| async move {
///     Err::<String, _>(Signal::ask_user("Shall I place the order?"))
/// })?;
/// # Ok::<(), toolwit_core::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "signal", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Signal {
    /// What is known now calls for another plan; whoever began the run makes it.
    #[error("a new plan is needed: {reason}")]
    Replan {
        /// Why.
        reason: String,
    },
    /// Nothing more can be done before the user has answered.
    #[error("the user must answer first: {question}")]
    AskUser {
        /// What to ask.
        question: String,
    },
    /// There is nothing more to do.
    #[error("the run ends here: {reason}")]
    Terminate {
        /// Why.
        reason: String,
    },
}

impl Signal {
    /// Asks whoever began the run for another plan.
    #[must_use]
    pub fn replan(reason: impl Into<String>) -> Self {
        Self::Replan { reason: reason.into() }
    }

    /// Asks the user something that only the user can answer.
    #[must_use]
    pub fn ask_user(question: impl Into<String>) -> Self {
        Self::AskUser {
            question: question.into(),
        }
    }

    /// Ends the run.
    #[must_use]
    pub fn terminate(reason: impl Into<String>) -> Self {
        Self::Terminate { reason: reason.into() }
    }
}

/// The model reads the signal as the answer to its call. A question or a new plan in place of an answer means that the tool has
/// not done its work: the call does not count as one that succeeded.
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
