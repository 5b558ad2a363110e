//! A budget that a call shares with its nested calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The amount that a call and its nested calls may use. A nested call also draws on the budgets of all surrounding calls, so
/// that the smallest remaining budget applies.
#[derive(Debug)]
pub(crate) struct NestedBudget {
    used: AtomicU64,
    max: u64,
    outer: Option<Arc<Self>>,
}

/// The error of an exceeded budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{used} exceeds the limit of {max}")]
pub(crate) struct BudgetExceeded {
    pub(crate) max: u64,
    /// The amount that would have been used.
    pub(crate) used: u64,
}

impl NestedBudget {
    /// Creates an unused budget. `outer` is the budget of the surrounding call, or `None` for an outermost call.
    pub(crate) fn new(max: u64, outer: Option<Arc<Self>>) -> Self {
        Self {
            used: AtomicU64::new(0),
            max,
            outer,
        }
    }

    /// Takes an amount from this budget and from every surrounding budget.
    ///
    /// # Errors
    /// [`BudgetExceeded`] for the budget of this call or of a surrounding call. An exceeded budget stays exceeded, because the
    /// refused amount counts as used.
    pub(crate) fn take(&self, amount: u64) -> Result<(), BudgetExceeded> {
        let before = self.used.fetch_add(amount, Ordering::Relaxed);
        let used = before.saturating_add(amount);
        if used > self.max {
            return Err(BudgetExceeded { max: self.max, used });
        }
        self.outer.as_ref().map_or(Ok(()), |outer| outer.take(amount))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_nested_call_draws_on_the_outer_budget_and_the_smallest_limit_applies() {
        let outer = Arc::new(NestedBudget::new(3, None));
        let lower = NestedBudget::new(1, Some(outer.clone()));
        lower.take(1).unwrap();
        assert_eq!(
            lower.take(1),
            Err(BudgetExceeded { max: 1, used: 2 }),
            "its own limit is lower"
        );
        let higher = NestedBudget::new(10, Some(outer.clone()));
        higher.take(2).unwrap();
        assert_eq!(
            higher.take(1),
            Err(BudgetExceeded { max: 3, used: 4 }),
            "the outer limit is lower than its own"
        );
        assert!(outer.take(1).is_err());
    }
}
