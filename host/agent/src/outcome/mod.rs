//! Outcomes of runs: an answer, or a failure with the progress so far.

mod failure;

use serde::{Deserialize, Serialize};

use crate::model::{Cost, TokenUsage};
use toolwit_core::{Artifact, DeniedAccess, Message, Signal, ToolId, ToolName};

pub use failure::{RunError, RunFailure};

/// The outcome of a run: the answer, the calls, the usage and the history.
///
/// Serializes as `{"answer", "stop_reason", "signal"?, "iterations", "tool_calls", "artifacts"?, "denied"?, "injected",
/// "removed", "usage", "history"}`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RunOutcome {
    /// The final text; `None` if the run ended without one.
    pub answer: Option<String>,
    /// The reason why the run ended.
    #[serde(rename = "stop_reason")]
    pub stop: StopReason,
    /// The signal with which a tool ended the run; `None` if no signal ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<Signal>,
    /// The number of inferences, without those that summarize the history.
    pub iterations: u32,
    /// The calls that ran, in the order of their results in the history.
    pub tool_calls: Vec<CallRecord>,
    /// The artifacts of the tool results, in the order of the results in the history.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<Artifact>,
    /// The accesses that the host denied to plugins. They are diagnostics for the operator.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<DeniedAccess>,
    /// The names of the injected tools, in the order of injection.
    pub injected: Vec<ToolName>,
    /// The names of the removed tools, in the order of removal.
    pub removed: Vec<ToolName>,
    /// The usage of the run, including nested agents.
    pub usage: RunUsage,
    /// All messages of the conversation so far. A new conversation can start with this history.
    pub history: Vec<Message>,
}

impl RunOutcome {
    /// Returns the final text, or an empty string if the run ended without one.
    #[must_use]
    pub fn text(&self) -> &str {
        self.answer.as_deref().unwrap_or_default()
    }

    /// Adds the iterations, calls, artifacts, denied accesses, injected tools, removed tools and usage of an earlier
    /// run. The answer, the stop reason, the signal and the history stay those of this run.
    pub(crate) fn with_earlier_run(mut self, mut earlier: Self) -> Self {
        earlier.tool_calls.append(&mut self.tool_calls);
        earlier.artifacts.append(&mut self.artifacts);
        earlier.denied.append(&mut self.denied);
        earlier.injected.append(&mut self.injected);
        earlier.removed.append(&mut self.removed);
        earlier.usage.tokens += self.usage.tokens;
        Self {
            answer: self.answer,
            stop: self.stop,
            signal: self.signal,
            iterations: earlier.iterations + self.iterations,
            usage: RunUsage {
                cost_usd: earlier.usage.cost_usd.saturating_add(self.usage.cost_usd),
                injected_bytes: earlier.usage.injected_bytes.saturating_add(self.usage.injected_bytes),
                injected_tokens: earlier.usage.injected_tokens.saturating_add(self.usage.injected_tokens),
                ..earlier.usage
            },
            history: self.history,
            ..earlier
        }
    }
}

/// The reason why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StopReason {
    /// The model answered and called no more tools.
    Answered,
    /// The result of a tool is the answer.
    ReturnDirect,
    /// The iteration limit was reached.
    IterationLimit,
    /// The token limit was reached.
    TokenLimit,
    /// The cost limit was reached.
    CostLimit,
    /// The time limit was reached.
    WallClockLimit,
    /// The limit of tool calls was reached.
    CallLimit,
    /// The model repeatedly called tools that do not exist.
    UnknownTools,
    /// The model or the connection to it failed.
    ModelFailed,
    /// A tool, a source of tools or the journal failed, and only the operator can fix the cause. Or an interrupted run
    /// cannot continue, because a person has not decided about one of its calls.
    ToolFailed,
    /// The caller cancelled the run.
    Cancelled,
    /// The provider truncated the answer. The outcome contains the beginning of the answer.
    Length,
    /// The provider withheld the answer.
    Withheld,
    /// A tool requested another plan.
    ReplanRequested,
    /// A tool has a question for the user, which is the answer of the run.
    UserInputRequired,
    /// A tool ended the run.
    Terminated,
}

impl From<&Signal> for StopReason {
    fn from(signal: &Signal) -> Self {
        match signal {
            Signal::Replan { .. } => Self::ReplanRequested,
            Signal::AskUser { .. } => Self::UserInputRequired,
            // `Terminate`, and signals of later versions.
            _ => Self::Terminated,
        }
    }
}

/// A tool call that ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CallRecord {
    /// The id of the call in the history.
    pub id: String,
    /// The name under which the model called the tool.
    pub name: ToolName,
    /// The id of the tool.
    pub tool: ToolId,
    /// Whether the call failed.
    pub is_error: bool,
    /// The duration in milliseconds.
    pub wall_ms: u64,
}

/// The usage of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RunUsage {
    /// The tokens of all inferences, nested agents included.
    #[serde(flatten)]
    pub tokens: TokenUsage,
    /// The cost in dollars, nested agents included. Omitted if it is zero, as for a model without a price.
    #[serde(default, skip_serializing_if = "Cost::is_zero")]
    pub cost_usd: Cost,
    /// The size that the definitions of injected tools added to the prompt, in bytes.
    pub injected_bytes: u64,
    /// The tokens that injected tools added to the requests that first declared them: measured if the provider reports
    /// its usage, otherwise estimated.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub injected_tokens: u64,
}

fn is_zero(tokens: &u64) -> bool {
    *tokens == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_outcome(injected_tokens: u64) -> RunOutcome {
        RunOutcome {
            answer: Some(injected_tokens.to_string()),
            stop: StopReason::Answered,
            signal: None,
            iterations: 1,
            tool_calls: Vec::new(),
            artifacts: Vec::new(),
            denied: Vec::new(),
            injected: Vec::new(),
            removed: Vec::new(),
            usage: RunUsage {
                injected_bytes: 4 * injected_tokens,
                injected_tokens,
                ..RunUsage::default()
            },
            history: Vec::new(),
        }
    }

    #[test]
    fn iterations_and_usage_of_an_earlier_run_are_added() {
        let combined = run_outcome(3).with_earlier_run(run_outcome(20));
        assert_eq!((combined.text(), combined.iterations), ("3", 2));
        assert_eq!(
            (combined.usage.injected_bytes, combined.usage.injected_tokens),
            (92, 23)
        );
    }
}
