//! The limits of a run, and the policies for a run that reaches them.

use serde::{Deserialize, Serialize};

use crate::millis::millis;
use crate::model::ChatModel;
use toolwit_core::limits::{
    CALLS_MAX, CALLS_PER_RESPONSE_MAX, DECLARED_TOOLS_MAX, ITERATIONS_MAX, RUN_WALL_MAX, SHOWN_RESULT_BYTES_MAX,
};
use toolwit_core::{Error, ErrorKind, Phase};

/// The limits of one run, from a user message to its answer.
///
/// ```
/// use toolwit_agent::{IterationPolicy, LoopLimits};
///
/// let limits = LoopLimits {
///     iterations_max: 5,
///     on_iterations_max: IterationPolicy::FinalAnswer,
///     ..LoopLimits::default()
/// };
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LoopLimits {
    /// Maximum number of inferences. The default of 20 suffices for real tasks and ends a loop before it becomes expensive.
    pub iterations_max: u32,
    /// The policy for reaching `iterations_max`.
    pub on_iterations_max: IterationPolicy,
    /// Maximum number of tool calls of the run.
    pub calls_max: u32,
    /// Maximum number of calls of one response that run. The other calls are answered with an error.
    pub calls_per_response_max: u32,
    /// Maximum duration of the run, in milliseconds, without the time in which a person is asked about a call. The default of
    /// ten minutes allows for slow tools.
    pub wall_ms_max: u64,
    /// Maximum sum of input and output tokens; unlimited by default.
    pub tokens_max: Option<u64>,
    /// Maximum estimated size of a request, in tokens. Above it, a summary by the model replaces the older messages. The
    /// system message, the first and the current user message, pinned messages and the newest messages stay. The default
    /// is three quarters of the model's context, or unlimited if
    /// [`ChatModel::context_tokens`](crate::model::ChatModel::context_tokens) returns `None`.
    pub context_tokens_max: Option<u64>,
    /// The policy for calls of tools that do not exist.
    pub unknown_tools: UnknownToolPolicy,
    /// Maximum size of a result in one message, in bytes. A longer result is truncated, and the model can read the full
    /// result with the tool `read_result`.
    pub result_bytes_max: usize,
    /// Maximum number of declared tools, because providers reject requests with more. Above it, the least recently used
    /// tools are no longer declared.
    pub tools_max: usize,
    /// Number of declared tools at which [`Event::ManyToolsDeclared`](crate::Event::ManyToolsDeclared) is emitted, because models choose
    /// poorly among many tools.
    pub tools_warn: usize,
}

impl Default for LoopLimits {
    fn default() -> Self {
        Self {
            iterations_max: ITERATIONS_MAX,
            on_iterations_max: IterationPolicy::Error,
            calls_max: CALLS_MAX,
            calls_per_response_max: CALLS_PER_RESPONSE_MAX,
            wall_ms_max: millis(RUN_WALL_MAX),
            tokens_max: None,
            context_tokens_max: None,
            unknown_tools: UnknownToolPolicy::StopAfter(3),
            result_bytes_max: SHOWN_RESULT_BYTES_MAX,
            tools_max: DECLARED_TOOLS_MAX,
            tools_warn: 30,
        }
    }
}

/// The minimum of `result_bytes_max`. It leaves space for text before the marker at the end of a truncated result.
const RESULT_BYTES_MIN: usize = 256;

/// The minimum of `context_tokens_max`. It leaves space for a summary and the newest messages.
const CONTEXT_TOKENS_MIN: u64 = 1000;

impl LoopLimits {
    /// Sets `context_tokens_max`, if it is not set, to three quarters of the model's context. The remaining quarter is for the
    /// response, and for the error of the estimated sizes.
    #[must_use]
    pub fn for_model(mut self, model: &dyn ChatModel) -> Self {
        let default = || model.context_tokens().map(|tokens| tokens / 4 * 3);
        self.context_tokens_max = self.context_tokens_max.or_else(default);
        self
    }

    /// Checks that no limit is below its minimum.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] with the name of the first invalid limit.
    pub fn check(&self) -> Result<(), Error> {
        let counts = [
            ("iterations_max", u64::from(self.iterations_max)),
            ("calls_max", u64::from(self.calls_max)),
            ("calls_per_response_max", u64::from(self.calls_per_response_max)),
            ("wall_ms_max", self.wall_ms_max),
            ("tokens_max", self.tokens_max.unwrap_or(1)),
            ("tools_max", self.tools_max as u64),
        ];
        let invalid = |message: String| Err(Error::new(ErrorKind::Configuration, Phase::Registry, message));
        if let Some((name, _)) = counts.iter().find(|(_, value)| *value == 0) {
            return invalid(format!("`{name}` must be at least 1"));
        }
        if self.unknown_tools == UnknownToolPolicy::StopAfter(0) {
            return invalid("`unknown_tools` must allow at least 1 response".to_owned());
        }
        if self.result_bytes_max < RESULT_BYTES_MIN {
            return invalid(format!("`result_bytes_max` must be at least {RESULT_BYTES_MIN}"));
        }
        if self.context_tokens_max.is_some_and(|max| max < CONTEXT_TOKENS_MIN) {
            return invalid(format!("`context_tokens_max` must be at least {CONTEXT_TOKENS_MIN}"));
        }
        Ok(())
    }
}

/// The policy for a run that reaches its iteration limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IterationPolicy {
    /// The run fails. The error contains the history.
    #[default]
    Error,
    /// The model answers in one more inference without tools.
    FinalAnswer,
    /// The last text of the model is the answer.
    Partial,
}

/// The policy for calls of tools that do not exist. Each such call is answered with the most similar names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnknownToolPolicy {
    /// The run stops after this many consecutive responses with an unknown name. 1 stops it at the first such response.
    StopAfter(u32),
    /// The run continues until it reaches another limit.
    Never,
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    // attack: B16
    #[test]
    fn limits_below_their_minimum_are_refused() {
        assert!(LoopLimits::default().check().is_ok());
        let invalid_limits = [
            LoopLimits {
                iterations_max: 0,
                ..LoopLimits::default()
            },
            LoopLimits {
                wall_ms_max: 0,
                ..LoopLimits::default()
            },
            LoopLimits {
                tokens_max: Some(0),
                ..LoopLimits::default()
            },
            LoopLimits {
                unknown_tools: UnknownToolPolicy::StopAfter(0),
                ..LoopLimits::default()
            },
            LoopLimits {
                context_tokens_max: Some(999),
                ..LoopLimits::default()
            },
            LoopLimits {
                result_bytes_max: 10,
                ..LoopLimits::default()
            },
        ];
        for limits in invalid_limits {
            let message = limits.check().unwrap_err().to_string();
            assert!(message.contains("must"), "{message}");
        }
    }
}
