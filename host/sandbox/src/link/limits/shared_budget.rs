//! A budget that all calls of a process share, such as the memory of their instances or the files that they have open.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use toolwit_core::PrincipalName;

/// The amount of a resource that all calls of a process use together, and its limit. A caller may use at most as much as it leaves
/// free for others, which is half of the budget.
#[derive(Debug)]
pub(crate) struct SharedBudget {
    max: u64,
    used: Mutex<UsedAmount>,
}

#[derive(Debug, Default)]
struct UsedAmount {
    amount: u64,
    of_callers: HashMap<Option<PrincipalName>, u64>,
}

/// The amount that one instance uses. Dropping the value frees it.
#[derive(Debug)]
pub(crate) struct BudgetShare {
    budget: Arc<SharedBudget>,
    caller: Option<PrincipalName>,
    amount: u64,
}

impl SharedBudget {
    pub(crate) fn new(max: u64) -> Arc<Self> {
        Arc::new(Self {
            max,
            used: Mutex::default(),
        })
    }

    /// Begins to count the amount of an instance for a caller. `amount` is what the instance has already.
    pub(crate) fn share_of(self: &Arc<Self>, caller: Option<PrincipalName>, amount: u64) -> BudgetShare {
        let share = BudgetShare {
            budget: self.clone(),
            caller,
            amount,
        };
        self.lock().add(&share.caller, amount);
        share
    }

    fn lock(&self) -> MutexGuard<'_, UsedAmount> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl UsedAmount {
    fn add(&mut self, caller: &Option<PrincipalName>, amount: u64) {
        self.amount = self.amount.saturating_add(amount);
        let of_caller = self.of_callers.entry(caller.clone()).or_default();
        *of_caller = of_caller.saturating_add(amount);
    }

    fn subtract(&mut self, caller: &Option<PrincipalName>, amount: u64) {
        self.amount = self.amount.saturating_sub(amount);
        if let Some(of_caller) = self.of_callers.get_mut(caller) {
            *of_caller = of_caller.saturating_sub(amount);
            if *of_caller == 0 {
                self.of_callers.remove(caller);
            }
        }
    }
}

impl BudgetShare {
    /// Returns the limit of the budget.
    pub(crate) fn max(&self) -> u64 {
        self.budget.max
    }

    /// Returns the amount that the instance uses.
    pub(crate) fn amount(&self) -> u64 {
        self.amount
    }

    /// Counts the growth of the instance. Returns `false` if the growth is refused.
    pub(crate) fn grow(&mut self, amount: u64) -> bool {
        // What a caller has already is not refused when others use the rest.
        if amount == 0 {
            return true;
        }
        let mut used = self.budget.lock();
        let total = used.amount.saturating_add(amount);
        let of_caller = used.of_callers.get(&self.caller).copied().unwrap_or(0);
        if of_caller.saturating_add(amount) > self.budget.max.saturating_sub(total) {
            return false;
        }
        used.add(&self.caller, amount);
        self.amount = self.amount.saturating_add(amount);
        true
    }

    /// Counts what the instance has already, even beyond the limit.
    pub(crate) fn add(&mut self, amount: u64) {
        self.budget.lock().add(&self.caller, amount);
        self.amount = self.amount.saturating_add(amount);
    }

    /// Undoes a growth that was counted and then failed.
    pub(crate) fn shrink(&mut self, amount: u64) {
        self.budget.lock().subtract(&self.caller, amount);
        self.amount = self.amount.saturating_sub(amount);
    }
}

impl Drop for BudgetShare {
    fn drop(&mut self) {
        self.budget.lock().subtract(&self.caller, self.amount);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_leaves_as_much_as_it_uses() {
        let budget = SharedBudget::new(100);
        let caller = |name: &str| Some(PrincipalName::new(name));
        let mut first = budget.share_of(caller("ann"), 0);
        assert!(first.grow(30));
        let mut second = budget.share_of(caller("ann"), 0);
        assert!(second.grow(20));
        assert!(!second.grow(1), "ann uses half of the budget");
        let mut other = budget.share_of(caller("bob"), 0);
        assert!(other.grow(25), "bob leaves as much as he uses");
        assert!(!other.grow(1));
        other.shrink(10);
        drop(first);
        assert!(second.grow(5));
        drop((second, other));
        assert_eq!(budget.lock().amount, 0);
        assert!(budget.lock().of_callers.is_empty());
    }

    #[test]
    fn what_a_reused_instance_has_counts_even_beyond_the_limit() {
        let budget = SharedBudget::new(100);
        let reused = budget.share_of(None, 150);
        let mut other = budget.share_of(Some(PrincipalName::new("bob")), 0);
        assert!(!other.grow(1));
        drop(reused);
        assert!(other.grow(1));
    }
}
