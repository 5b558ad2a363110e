//! Records of the actions and the usage of a process.

use serde::{Deserialize, Serialize};

use crate::model::{Cost, TokenUsage};
use toolwit_core::{ToolId, ToolName};

/// An action of a process: a tool call that ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ProcessAction {
    /// The name under which the model called the tool.
    pub name: ToolName,
    /// The id of the tool.
    pub tool: ToolId,
    /// The duration in milliseconds.
    pub wall_ms: u64,
    /// Whether the call failed.
    pub is_error: bool,
}

impl ProcessAction {
    /// Creates the record of a call that ended.
    #[must_use]
    pub fn new(name: ToolName, tool: ToolId, wall_ms: u64, is_error: bool) -> Self {
        Self {
            name,
            tool,
            wall_ms,
            is_error,
        }
    }
}

/// The usage of a tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolUsage {
    /// The number of calls.
    pub calls: u64,
    /// The number of calls that failed.
    pub errors: u64,
    /// The duration of all calls together, in milliseconds.
    pub wall_ms: u64,
}

/// The purpose for which a model is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ModelUsageKind {
    /// Inferences.
    Chat,
    /// Embeddings.
    Embedding,
}

/// The usage of a model, nested agents included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ModelUsage {
    /// The number of inferences, or of requests for embeddings.
    pub invocations: u64,
    /// The tokens.
    #[serde(flatten)]
    pub tokens: TokenUsage,
    /// The cost in dollars; zero for a model without a price.
    pub cost_usd: Cost,
}

impl ModelUsage {
    pub(super) fn add(&mut self, tokens: TokenUsage, cost: Cost) {
        self.invocations += 1;
        self.tokens += tokens;
        self.cost_usd = self.cost_usd.saturating_add(cost);
    }
}
