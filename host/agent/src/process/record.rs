//! What a process remembers of what it did.

use serde::{Deserialize, Serialize};

use crate::model::{Cost, TokenUsage};
use toolwit_core::{ToolId, ToolName};

/// One thing that a process did: a tool call that came to its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Action {
    /// The name under which the model called the tool.
    pub name: ToolName,
    /// The tool.
    pub tool: ToolId,
    /// How long it took.
    pub wall_ms: u64,
    /// Whether it failed.
    pub is_error: bool,
}

impl Action {
    /// Describes a call that came to its end.
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

/// How often a tool was called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolUse {
    /// Calls.
    pub calls: u64,
    /// Calls that failed.
    pub errors: u64,
    /// Time of all calls together.
    pub wall_ms: u64,
}

/// What a model is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ModelUseKind {
    /// Answers.
    Chat,
    /// Embeddings.
    Embedding,
}

/// How much a model was used, nested agents included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ModelUse {
    /// Inferences, or texts embedded.
    pub invocations: u64,
    /// Tokens.
    #[serde(flatten)]
    pub tokens: TokenUsage,
    /// What they cost, in dollars; nothing for a model without a price.
    pub cost_usd: Cost,
}

impl ModelUse {
    pub(super) fn add(&mut self, tokens: TokenUsage, cost: Cost) {
        self.invocations += 1;
        self.tokens += tokens;
        self.cost_usd = self.cost_usd.saturating_add(cost);
    }
}
