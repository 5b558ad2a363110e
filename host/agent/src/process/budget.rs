//! Budgets of processes: limits of all runs of a conversation together.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::model::Cost;

/// The limits of the total usage of an [`AgentProcess`](crate::AgentProcess): of all runs of one conversation together, including nested
/// agents. A field that is `None` is unlimited.
///
/// In contrast, [`LoopLimits`](crate::LoopLimits) apply to each run. The budget is checked before each inference and before
/// the calls of each response, so the last inference can exceed it.
///
/// ```
/// use std::time::Duration;
/// use toolwit_agent::Budget;
/// use toolwit_agent::model::Cost;
///
/// let budget = Budget {
///     tokens_max: Some(100_000),
///     cost_max: Some(Cost::usd(0.5)),
///     calls_max: Some(50),
///     wall_max: Some(Duration::from_secs(600)),
/// };
/// assert_ne!(budget, Budget::default());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    /// Maximum sum of input and output tokens.
    pub tokens_max: Option<u64>,
    /// Maximum cost. Only models with a [`Price`](crate::model::Price) have a cost.
    pub cost_max: Option<Cost>,
    /// Maximum number of tool calls.
    pub calls_max: Option<u32>,
    /// Maximum time since the process began, without the time spent waiting for approvals of calls.
    pub wall_max: Option<Duration>,
}

/// The remaining budget of a process, limited by the budgets of the processes in which it is nested. A field that is
/// `None` is unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RemainingBudget {
    /// Tokens.
    pub tokens: Option<u64>,
    /// Cost in dollars.
    pub cost_usd: Option<Cost>,
    /// Tool calls.
    pub calls: Option<u32>,
    /// Time in milliseconds.
    pub wall_ms: Option<u64>,
}

impl RemainingBudget {
    /// Returns the smaller value of each field.
    pub(super) fn min(self, other: Self) -> Self {
        Self {
            tokens: min_limit(self.tokens, other.tokens),
            cost_usd: min_limit(self.cost_usd, other.cost_usd),
            calls: min_limit(self.calls, other.calls),
            wall_ms: min_limit(self.wall_ms, other.wall_ms),
        }
    }
}

/// Returns the smaller of two limits, where `None` is unlimited.
fn min_limit<T: Ord>(a: Option<T>, b: Option<T>) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}
