//! How a run ended.

use serde::{Deserialize, Serialize};

use crate::model::{Cost, TokenUsage};
use toolwit_core::{Artifact, Message, Signal, ToolId, ToolName};

/// What a run brought: the answer, and everything that led to it.
///
/// Serialises as `{"answer", "stop_reason", "signal"?, "iterations", "tool_calls", "artifacts"?, "injected", "removed", "usage",
/// "history"}`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct RunOutcome {
    /// The final text; `None` when the run ended without one.
    pub answer: Option<String>,
    /// Why the run ended.
    #[serde(rename = "stop_reason")]
    pub stop: StopReason,
    /// What the tool asked for that ended the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<Signal>,
    /// How many inferences it took.
    pub iterations: u32,
    /// The calls that were run, in the order of their answers.
    pub tool_calls: Vec<CallRecord>,
    /// What tools handed over beside their texts, in the order of the answers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<Artifact>,
    /// The tools that came in, in the order in which they came.
    pub injected: Vec<ToolName>,
    /// The tools that went, in the order in which they went.
    pub removed: Vec<ToolName>,
    /// What it cost.
    pub usage: RunUsage,
    /// Everything that was said in the conversation so far; it can be continued as it is.
    pub history: Vec<Message>,
}

impl RunOutcome {
    /// Returns the final text, empty when there is none.
    #[must_use]
    pub fn text(&self) -> &str {
        self.answer.as_deref().unwrap_or_default()
    }
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StopReason {
    /// The model answered without calling a tool.
    Answered,
    /// A tool's result is the answer.
    ReturnDirect,
    /// The iterations were used up.
    IterationLimit,
    /// The tokens were used up.
    TokenLimit,
    /// The money was used up.
    CostLimit,
    /// The time was used up.
    WallClockLimit,
    /// The tool calls were used up.
    CallLimit,
    /// The model kept calling tools that do not exist.
    UnknownTools,
    /// The model, or the way to it, failed.
    ModelFailed,
    /// A tool failed in a way that only the operator can mend.
    ToolFailed,
    /// The caller cancelled.
    Cancelled,
    /// The provider cut the answer; what there is of it is kept.
    Length,
    /// The provider held the answer back.
    Withheld,
    /// A tool found that another plan is needed.
    ReplanRequested,
    /// A tool has a question that only the user can answer; it is the run's answer.
    UserInputRequired,
    /// A tool ended the run.
    Terminated,
}

impl From<&Signal> for StopReason {
    fn from(signal: &Signal) -> Self {
        match signal {
            Signal::Replan { .. } => Self::ReplanRequested,
            Signal::AskUser { .. } => Self::UserInputRequired,
            // `Terminate`, and any signal that a later version adds.
            _ => Self::Terminated,
        }
    }
}

/// A call that was run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CallRecord {
    /// The call's id in the history.
    pub id: String,
    /// The name by which the model called it.
    pub name: ToolName,
    /// The tool.
    pub tool: ToolId,
    /// Whether it failed.
    pub is_error: bool,
    /// How long it took.
    pub wall_ms: u64,
}

/// What a run cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RunUsage {
    /// Tokens of all inferences together, nested agents included.
    #[serde(flatten)]
    pub tokens: TokenUsage,
    /// What they cost, in dollars, nested agents included; left out where it is nothing, as for a model without a price.
    #[serde(default, skip_serializing_if = "Cost::is_zero")]
    pub cost_usd: Cost,
    /// How much longer injected tools made the prompt, in bytes of their definitions.
    pub injected_bytes: u64,
}
