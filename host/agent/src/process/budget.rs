//! What a process may use.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::model::Cost;

/// The most that a process may use, with everything that its nested agents use. What is not set is not bounded.
///
/// A budget holds for a process's whole life, over all runs; [`LoopLimits`](crate::LoopLimits) hold for one run. It is checked before
/// each inference and before the calls of each response.
///
/// ```
/// use std::time::Duration;
/// use toolwit_agent::Budget;
/// use toolwit_agent::model::Cost;
///
/// let budget = Budget::none().tokens(100_000).cost(Cost::usd(0.5)).calls(50).wall(Duration::from_secs(600));
/// assert_eq!(budget.tokens_max, Some(100_000));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Budget {
    /// Tokens, read and written together.
    pub tokens_max: Option<u64>,
    /// Money. Only models with a [`Price`](crate::model::Price) cost any.
    pub cost_max: Option<Cost>,
    /// Tool calls.
    pub calls_max: Option<u32>,
    /// Time since the process began.
    pub wall_max: Option<Duration>,
}

impl Budget {
    /// Bounds nothing.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Bounds tokens, read and written together.
    #[must_use]
    pub fn tokens(mut self, tokens_max: u64) -> Self {
        self.tokens_max = Some(tokens_max);
        self
    }

    /// Bounds money.
    #[must_use]
    pub fn cost(mut self, cost_max: Cost) -> Self {
        self.cost_max = Some(cost_max);
        self
    }

    /// Bounds tool calls.
    #[must_use]
    pub fn calls(mut self, calls_max: u32) -> Self {
        self.calls_max = Some(calls_max);
        self
    }

    /// Bounds the time since the process began.
    #[must_use]
    pub fn wall(mut self, wall_max: Duration) -> Self {
        self.wall_max = Some(wall_max);
        self
    }
}

/// What is left of a process's budget, the budgets around it included. `None` is without a bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Remaining {
    /// Tokens.
    pub tokens: Option<u64>,
    /// Money, in dollars.
    pub cost_usd: Option<Cost>,
    /// Tool calls.
    pub calls: Option<u32>,
    /// Time, in milliseconds.
    pub wall_ms: Option<u64>,
}

impl Remaining {
    /// Takes the smaller of each.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            tokens: smaller(self.tokens, other.tokens),
            cost_usd: smaller(self.cost_usd, other.cost_usd),
            calls: smaller(self.calls, other.calls),
            wall_ms: smaller(self.wall_ms, other.wall_ms),
        }
    }
}

fn smaller<T: Ord>(a: Option<T>, b: Option<T>) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}
