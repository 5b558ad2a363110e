//! Failures of runs.

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use super::{RunOutcome, StopReason};
use crate::model::{Cost, ModelError};
use toolwit_core::ToolName;
use toolwit_core::{Error, ErrorKind, ExceededLimit, Phase};

/// The error of a run that ended without a complete answer, with the outcome so far.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RunError {
    /// The failure.
    pub failure: RunFailure,
    /// The name of the innermost nested agent that failed; `None` if no nested agent caused the failure.
    pub agent: Option<String>,
    /// The outcome so far. Its history can be continued.
    pub outcome: Box<RunOutcome>,
}

/// The reason why a run has no complete answer.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunFailure {
    /// The iteration limit was reached.
    #[error("the run reached its limit of {max} iterations")]
    IterationLimit {
        /// The limit.
        max: u32,
    },
    /// The token limit was reached.
    #[error("the run reached its limit of {max} tokens and used {used}")]
    TokenLimit {
        /// The limit.
        max: u64,
        /// The tokens that were used.
        used: u64,
    },
    /// The cost limit was reached.
    #[error("the run reached its cost limit of {max} and cost {used}")]
    CostLimit {
        /// The limit.
        max: Cost,
        /// The cost of the run.
        used: Cost,
    },
    /// The time limit was reached.
    #[error("the run reached its time limit of {max:?}")]
    WallClockLimit {
        /// The limit.
        max: Duration,
    },
    /// The limit of tool calls was reached.
    #[error("the run reached its limit of {max} tool calls")]
    CallLimit {
        /// The limit.
        max: u32,
    },
    /// The model repeatedly called tools that do not exist.
    #[error("the model called tools that do not exist in {times} responses in a row, the last one `{requested}`")]
    UnknownTools {
        /// The name that the model called last, truncated if it is long.
        requested: String,
        /// The number of consecutive responses with an unknown name.
        times: u32,
        /// The declared tools.
        available: Vec<ToolName>,
    },
    /// The model or the connection to it failed.
    #[error("the model failed")]
    Model(#[source] ModelError),
    /// A tool, a source of tools or the journal failed, and only the operator can fix the cause. Or an interrupted run
    /// cannot continue, because a person has not decided about one of its calls.
    #[error(transparent)]
    Tool(Error),
    /// The caller cancelled the run.
    #[error("the run was cancelled")]
    Cancelled,
    /// The provider truncated the answer.
    #[error("the answer was truncated at the token limit of the model")]
    Length,
    /// The provider withheld the answer.
    #[error("the provider withheld the answer")]
    Withheld,
    /// The answer does not have the requested type.
    #[error("the answer does not have the requested type: {message}")]
    AnswerMalformed {
        /// The error of the parser.
        message: String,
    },
}

impl RunFailure {
    /// Returns the stop reason of the run.
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

    /// Returns the failure as an error, with a suggestion if there is one.
    #[must_use]
    pub fn report(&self) -> Error {
        let message = self.to_string();
        let limit_error = |limit| Error::new(ErrorKind::LoopLimit, Phase::Execute, message.clone()).with_limit(limit);
        let model_error = || Error::new(ErrorKind::Model, Phase::Model, message.clone());
        match self {
            Self::IterationLimit { max } => {
                limit_error(ExceededLimit::new("iterations_max", u64::from(*max), u64::from(*max))).with_suggestion(
                    "look for a loop in the tool calls, split an overly complex task, or raise `iterations_max`",
                )
            }
            Self::TokenLimit { max, used } => limit_error(ExceededLimit::new("tokens_max", *max, *used))
                .with_suggestion("reduce the task, or raise `tokens_max`"),
            Self::CostLimit { max, used } => {
                limit_error(ExceededLimit::new("cost_nano_usd_max", max.nano_usd(), used.nano_usd()))
                    .with_suggestion("reduce the task, use a cheaper model, or raise the budget")
            }
            Self::WallClockLimit { max } => {
                let max_ms = u64::try_from(max.as_millis()).unwrap_or(u64::MAX);
                limit_error(ExceededLimit::new("wall_ms_max", max_ms, max_ms))
                    .with_suggestion("look for the slow tool in the trace, or raise `wall_ms_max`")
            }
            Self::CallLimit { max } => limit_error(ExceededLimit::new("calls_max", u64::from(*max), u64::from(*max)))
                .with_suggestion("look for a loop in the tool calls, or raise `calls_max`"),
            Self::UnknownTools { available, .. } => {
                let suggestion = if available.is_empty() {
                    "the conversation has no tools".to_owned()
                } else {
                    format!("the tools are {}", quoted_list(available))
                };
                Error::new(ErrorKind::UnknownTool, Phase::Validate, message).with_suggestion(suggestion)
            }
            Self::Model(source) => source.clone().into(),
            Self::Tool(error) => error.clone(),
            Self::Cancelled => Error::new(ErrorKind::Cancelled, Phase::Execute, message),
            Self::Length => model_error()
                .with_suggestion("raise the model's `max_tokens`, or start a new conversation if its context is full"),
            Self::Withheld => {
                model_error().with_suggestion("rephrase the prompt, or check the content rules of the provider")
            }
            Self::AnswerMalformed { .. } => model_error().with_suggestion("run again, or use the text of the outcome"),
        }
    }
}

impl RunFailure {
    /// Returns whether this failure of a run follows from `inner`, the failure of a nested agent: both reached the same
    /// limit, or the agent was cancelled because the run reached its time limit.
    pub(crate) fn follows_from(&self, inner: &Self) -> bool {
        match (self, inner) {
            (Self::TokenLimit { max, .. }, Self::TokenLimit { max: inner_max, .. }) => max == inner_max,
            (Self::CostLimit { max, .. }, Self::CostLimit { max: inner_max, .. }) => max == inner_max,
            (Self::CallLimit { max }, Self::CallLimit { max: inner_max }) => max == inner_max,
            (Self::WallClockLimit { max }, Self::WallClockLimit { max: inner_max }) => max == inner_max,
            (Self::WallClockLimit { .. }, Self::Cancelled) => true,
            _ => false,
        }
    }
}

fn quoted_list(names: &[ToolName]) -> String {
    let quoted: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}

impl RunError {
    pub(crate) fn new(failure: RunFailure, outcome: RunOutcome) -> Self {
        let agent = match &failure {
            RunFailure::Tool(error) => error.agent.clone(),
            _ => None,
        };
        Self {
            failure,
            agent,
            outcome: Box::new(outcome),
        }
    }

    /// Sets the name of the nested agent that failed, unless it is already set.
    pub(crate) fn with_agent(mut self, agent: Option<String>) -> Self {
        self.agent = self.agent.or(agent);
        self
    }

    /// Returns the failure as an error, with a suggestion and the name of the nested agent that failed, if there are any.
    #[must_use]
    pub fn report(&self) -> Error {
        let report = self.failure.report();
        match &self.agent {
            Some(agent) => report.with_agent(agent),
            None => report,
        }
    }

    /// Returns the outcome so far.
    #[must_use]
    pub fn into_outcome(self) -> RunOutcome {
        *self.outcome
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.agent {
            // The message of `RunFailure::Tool` already names the agent.
            Some(agent) if !matches!(self.failure, RunFailure::Tool(_)) => {
                write!(f, "agent `{agent}`: {}", self.failure)
            }
            _ => self.failure.fmt(f),
        }
    }
}

impl StdError for RunError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.failure.source()
    }
}

impl From<RunError> for Error {
    fn from(error: RunError) -> Self {
        error.report()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_suggestion_for_unknown_tools_lists_the_tools_or_states_that_there_are_none() {
        let suggestion = |available: &[&str]| {
            let failure = RunFailure::UnknownTools {
                requested: "nowhere".to_owned(),
                times: 3,
                available: available.iter().map(|name| ToolName::parse(name).unwrap()).collect(),
            };
            failure.report().suggestion.clone().unwrap()
        };
        assert_eq!(suggestion(&["look", "take"]), "the tools are `look`, `take`");
        assert_eq!(suggestion(&[]), "the conversation has no tools");
    }

    #[test]
    fn the_report_of_a_model_failure_has_the_kind_and_the_suggestion_of_the_model_error() {
        let refused = |status| ModelError::Refused {
            status,
            message: "no".to_owned(),
        };
        let errors = [
            refused(401),
            refused(404),
            refused(413),
            refused(429),
            refused(400),
            ModelError::ContextExceeded {
                status: 400,
                message: "too long".to_owned(),
            },
            ModelError::Diverged {
                message: "it differs".to_owned(),
            },
            ModelError::Configuration {
                message: "no key".to_owned(),
                suggestion: "set one".to_owned(),
            },
            ModelError::Cancelled,
        ];
        for error in errors {
            let report = RunFailure::Model(error.clone()).report();
            assert_eq!(report.suggestion, error.suggestion(), "{error:?}");
            assert_eq!(report.kind, Error::from(error.clone()).kind);
            let source = StdError::source(&report).and_then(|source| source.downcast_ref());
            assert_eq!(source, Some(&error), "the source of the report");
        }
    }
}
