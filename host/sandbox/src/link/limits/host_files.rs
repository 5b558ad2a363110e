//! The limit on the open files and connections of the instances of all calls.

use std::sync::Arc;

use super::shared_budget::{BudgetShare, SharedBudget};
use toolwit_core::PrincipalName;

/// The number of files that each instance may have open outside of the budget. Most instances open no more, and need not be counted
/// after each call into the host.
const UNCOUNTED_FILES: u64 = 4;

/// The files and connections that an instance has open, and its share of the budget for all instances.
///
/// Each of them needs a descriptor of the process. After a call into the host, they are counted, unless the calls since the last
/// count cannot have opened more than the instance may have open.
#[derive(Debug, Default)]
pub(crate) struct HostFiles {
    /// `None` for an instance that no call has used.
    share: Option<BudgetShare>,
    /// An upper bound of the number of open files: the last count plus those that later calls may have opened.
    count_at_most: u64,
}

/// The error of an exceeded limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the guest has {count} files and connections open")]
pub(crate) struct HostFilesExceeded {
    /// The number of files and connections that the guest has open.
    pub(crate) count: u64,
    /// The limit for all instances.
    pub(crate) max: u64,
}

impl HostFiles {
    /// Begins a call. The files count for the caller of the first call of the instance.
    pub(crate) fn start_call(&mut self, budget: &Arc<SharedBudget>, caller: Option<PrincipalName>) {
        self.share.get_or_insert_with(|| budget.share_of(caller, 0));
    }

    /// Returns whether the next [`check`](Self::check) with this number counts the files.
    pub(crate) fn is_count_due(&self, opened_max: u64) -> bool {
        let share = self.share.as_ref();
        share.is_some_and(|share| self.count_at_most.saturating_add(opened_max) > share.amount() + UNCOUNTED_FILES)
    }

    /// Checks the limit after a call into the host that opened at most `opened_max` files. `count` counts the open files.
    ///
    /// # Errors
    /// [`HostFilesExceeded`].
    pub(crate) fn check(&mut self, opened_max: u64, count: impl FnOnce() -> u64) -> Result<(), HostFilesExceeded> {
        let is_count_due = self.is_count_due(opened_max);
        self.count_at_most = self.count_at_most.saturating_add(opened_max);
        let Some(share) = self.share.as_mut().filter(|_| is_count_due) else {
            return Ok(());
        };
        let count = count();
        self.count_at_most = count;
        let (needed, amount) = (count.saturating_sub(UNCOUNTED_FILES), share.amount());
        if needed < amount {
            share.shrink(amount - needed);
        } else if !share.grow(needed - amount) {
            return Err(HostFilesExceeded {
                count,
                max: share.max(),
            });
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn files_are_counted_before_the_limit_can_be_exceeded() {
        let budget = SharedBudget::new(40);
        let mut files = HostFiles::default();
        files.start_call(&budget, Some(PrincipalName::new("ann")));
        let not_counted = || -> u64 { unreachable!("each instance may have some files") };
        files.check(UNCOUNTED_FILES, not_counted).unwrap();
        files.check(1, || 5).unwrap();
        files.check(30, || 24).unwrap();
        let error = files.check(1, || 25).unwrap_err();
        assert_eq!(error, HostFilesExceeded { count: 25, max: 40 });
        let mut other = HostFiles::default();
        other.start_call(&budget, Some(PrincipalName::new("bob")));
        other.check(10, || 10).unwrap();
        files.check(1, || 0).unwrap();
        other.check(10, || 20).unwrap();
    }
}
