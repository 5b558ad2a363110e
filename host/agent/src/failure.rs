//! A run without a full answer.

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use super::outcome::{RunOutcome, StopReason};
use crate::model::{Cost, ModelError};
use toolwit_core::ToolName;
use toolwit_core::{Error, ErrorKind, ExceededLimit, Phase};

/// A run that ended without the full answer; what it reached is kept.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RunError {
    /// What went wrong.
    pub failure: RunFailure,
    /// What was reached, with a history that is valid to continue.
    pub outcome: Box<RunOutcome>,
}

/// What went wrong in a run.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunFailure {
    /// The iterations were used up.
    #[error("the run met its limit of {max} iterations")]
    IterationLimit {
        /// The limit.
        max: u32,
    },
    /// The tokens were used up.
    #[error("the run met its limit of {max} tokens, having used {used}")]
    TokenLimit {
        /// The limit.
        max: u64,
        /// What was used.
        used: u64,
    },
    /// The money was used up.
    #[error("the run met its limit of {max}, having cost {used}")]
    CostLimit {
        /// The limit.
        max: Cost,
        /// What it cost.
        used: Cost,
    },
    /// The time was used up.
    #[error("the run met its limit of {max:?}")]
    WallClockLimit {
        /// The limit.
        max: Duration,
    },
    /// The tool calls were used up.
    #[error("the run met its limit of {max} tool calls")]
    CallLimit {
        /// The limit.
        max: u32,
    },
    /// The model kept calling tools that do not exist.
    #[error("the model called `{requested}`, which does not exist, {times} times in a row")]
    UnknownTools {
        /// The name that it called last, cut where it is long.
        requested: String,
        /// How many responses in a row held an unknown name.
        times: u32,
        /// What it could have called.
        available: Vec<ToolName>,
    },
    /// The model, or the way to it, failed.
    #[error("the model failed")]
    Model(#[source] ModelError),
    /// A tool failed in a way that only the operator can mend.
    #[error(transparent)]
    Tool(Error),
    /// The caller cancelled.
    #[error("the run was cancelled")]
    Cancelled,
    /// The provider cut the answer.
    #[error("the answer was cut at the model's limit of tokens")]
    Length,
    /// The provider held the answer back.
    #[error("the provider held the answer back")]
    Withheld,
    /// The answer is not of the type that was asked for.
    #[error("the answer is not of the requested type: {message}")]
    AnswerMalformed {
        /// What is wrong with it.
        message: String,
    },
}

impl RunFailure {
    /// Returns why the run ended.
    #[must_use]
    pub fn stop(&self) -> StopReason {
        match self {
            Self::IterationLimit { .. } => StopReason::IterationLimit,
            Self::TokenLimit { .. } => StopReason::TokenLimit,
            Self::CostLimit { .. } => StopReason::CostLimit,
            Self::WallClockLimit { .. } => StopReason::WallClockLimit,
            Self::CallLimit { .. } => StopReason::CallLimit,
            Self::UnknownTools { .. } => StopReason::UnknownTools,
            Self::Model(_) => StopReason::ModelFailed,
            Self::Tool(_) => StopReason::ToolFailed,
            Self::Cancelled => StopReason::Cancelled,
            Self::Length => StopReason::Length,
            Self::Withheld => StopReason::Withheld,
            Self::AnswerMalformed { .. } => StopReason::Answered,
        }
    }

    /// Returns what a person is told, with what can be done.
    #[must_use]
    pub fn report(&self) -> Error {
        let message = self.to_string();
        let limit = |limit| Error::new(ErrorKind::LoopLimit, Phase::Execute, message.clone()).with_limit(limit);
        let model = || Error::new(ErrorKind::Model, Phase::Model, message.clone());
        match self {
            Self::IterationLimit { max } => {
                limit(ExceededLimit::new("iterations_max", u64::from(*max), u64::from(*max))).with_suggestion(
                    "look for a loop in the tool calls, split an overly complex task, or raise `iterations_max`",
                )
            }
            Self::TokenLimit { max, used } => limit(ExceededLimit::new("tokens_max", *max, *used))
                .with_suggestion("ask for less, or raise `tokens_max`"),
            Self::CostLimit { max, used } => {
                limit(ExceededLimit::new("cost_nano_usd_max", max.nano_usd(), used.nano_usd()))
                    .with_suggestion("ask for less, take a cheaper model, or raise the budget")
            }
            Self::WallClockLimit { max } => {
                let max_ms = u64::try_from(max.as_millis()).unwrap_or(u64::MAX);
                limit(ExceededLimit::new("wall_ms_max", max_ms, max_ms))
                    .with_suggestion("look for the slow tool in the trace, or raise `wall_ms_max`")
            }
            Self::CallLimit { max } => limit(ExceededLimit::new("calls_max", u64::from(*max), u64::from(*max)))
                .with_suggestion("look for a loop in the tool calls, or raise `calls_max`"),
            Self::UnknownTools { available, .. } => Error::new(ErrorKind::UnknownTool, Phase::Validate, message)
                .with_suggestion(format!("the tools are {}", list(available))),
            Self::Model(source) => model_report(source),
            Self::Tool(error) => error.clone(),
            Self::Cancelled => Error::new(ErrorKind::Cancelled, Phase::Execute, message),
            Self::Length => model().with_suggestion("raise the model's `max_tokens`"),
            Self::Withheld => model().with_suggestion("ask differently, or look into the provider's content rules"),
            Self::AnswerMalformed { .. } => model().with_suggestion("ask again, or take the text of the outcome"),
        }
    }
}

fn model_report(source: &ModelError) -> Error {
    let kind = match source {
        ModelError::Configuration { .. } => ErrorKind::Configuration,
        ModelError::Cancelled => ErrorKind::Cancelled,
        _ => ErrorKind::Model,
    };
    let report = Error::new(kind, Phase::Model, source.to_string()).with_source(source.clone());
    match source {
        ModelError::Configuration { suggestion, .. } => report.with_suggestion(suggestion.clone()),
        _ => report,
    }
}

fn list(names: &[ToolName]) -> String {
    if names.is_empty() {
        return "none".to_owned();
    }
    let quoted: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}

impl RunError {
    pub(super) fn new(failure: RunFailure, outcome: RunOutcome) -> Self {
        Self {
            failure,
            outcome: Box::new(outcome),
        }
    }

    /// Returns what was reached.
    #[must_use]
    pub fn into_outcome(self) -> RunOutcome {
        *self.outcome
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.failure.fmt(f)
    }
}

impl StdError for RunError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.failure.source()
    }
}

impl From<RunError> for Error {
    fn from(error: RunError) -> Self {
        error.failure.report()
    }
}
