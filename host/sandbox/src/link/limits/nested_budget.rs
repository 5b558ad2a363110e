//! A budget that a call shares with its nested calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// An amount that a call and its nested calls may use. A nested call also draws on the budget of every surrounding call, so that
/// the smallest limit applies.
#[derive(Debug)]
pub(crate) struct NestedBudget {
    used: AtomicU64,
    max: u64,
    outer: Option<Arc<Self>>,
}

/// A limit that was exceeded, with the amount that would have been used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{used} exceeds the limit of {max}")]
pub(crate) struct BudgetExceeded {
    pub(crate) max: u64,
    /// The amount that would have been used.
    pub(crate) used: u64,
}

impl NestedBudget {
    /// Creates an unused budget, nested in that of the surrounding call if there is one.
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
    /// The exceeded limit, of this call or of a surrounding one. A budget that was exceeded stays exceeded.
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
    fn a_nested_call_uses_the_outer_budget_and_the_smallest_limit_applies() {
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
