//! Accounts of tokens, cost and calls.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::budget::{Budget, RemainingBudget};
use super::record::{ModelUsage, ModelUsageKind};
use crate::millis::millis;
use crate::model::{Cost, TokenUsage};
use crate::outcome::RunFailure;

/// The usage of a run or a process, and its budget. Every charge is charged to the parent account too: the account of a run
/// belongs to its process, and the account of a nested process to the run that called it.
pub(crate) struct Account {
    parent: Option<Arc<Account>>,
    budget: Budget,
    opened: Instant,
    used: Mutex<AccountUsage>,
}

/// The usage that an account has recorded.
#[derive(Clone, Default)]
pub(crate) struct AccountUsage {
    pub(crate) tokens: TokenUsage,
    pub(crate) cost: Cost,
    pub(crate) calls: u32,
    pub(crate) models: BTreeMap<(ModelUsageKind, String), ModelUsage>,
}

impl AccountUsage {
    fn total_tokens(&self) -> u64 {
        self.tokens.input_tokens.saturating_add(self.tokens.output_tokens)
    }
}

impl Account {
    pub(crate) fn open(budget: Budget, parent: Option<Arc<Account>>) -> Self {
        Self {
            parent,
            budget,
            opened: Instant::now(),
            used: Mutex::default(),
        }
    }

    pub(crate) fn budget(&self) -> &Budget {
        &self.budget
    }

    pub(crate) fn age(&self) -> Duration {
        self.opened.elapsed()
    }

    pub(crate) fn used(&self) -> AccountUsage {
        self.lock().clone()
    }

    /// Records an inference.
    pub(crate) fn charge(&self, kind: ModelUsageKind, model: &str, tokens: TokenUsage, cost: Cost) {
        let mut used = self.lock();
        used.tokens += tokens;
        used.cost = used.cost.saturating_add(cost);
        used.models
            .entry((kind, model.to_owned()))
            .or_default()
            .add(tokens, cost);
        drop(used);
        if let Some(parent) = &self.parent {
            parent.charge(kind, model, tokens, cost);
        }
    }

    /// Charges the requested calls, up to the number that this account and its parents have left, and returns that number.
    /// Accounts are always locked from the inner to the outer one, which prevents deadlocks.
    pub(crate) fn take_calls(&self, requested: u32) -> u32 {
        let mut used = self.lock();
        let left = self
            .budget
            .calls_max
            .map_or(u32::MAX, |max| max.saturating_sub(used.calls));
        let own = requested.min(left);
        let taken = self.parent.as_ref().map_or(own, |parent| parent.take_calls(own));
        used.calls = used.calls.saturating_add(taken);
        taken
    }

    /// Returns the first limit of this account or its parents that is reached.
    pub(crate) fn exhausted(&self) -> Option<RunFailure> {
        let own = self.own_exhausted();
        own.or_else(|| self.parent.as_ref().and_then(|parent| parent.exhausted()))
    }

    fn own_exhausted(&self) -> Option<RunFailure> {
        let used = self.lock();
        let tokens = used.total_tokens();
        if let Some(max) = self.budget.tokens_max.filter(|max| tokens >= *max) {
            return Some(RunFailure::TokenLimit { max, used: tokens });
        }
        if let Some(max) = self.budget.cost_max.filter(|max| used.cost >= *max) {
            return Some(RunFailure::CostLimit { max, used: used.cost });
        }
        let reached = self.budget.wall_max.filter(|max| self.opened.elapsed() >= *max);
        reached.map(|max| RunFailure::WallClockLimit { max })
    }

    /// Returns the first call limit of this account or its parents that is reached.
    pub(crate) fn calls_exhausted(&self) -> Option<RunFailure> {
        let used = self.lock().calls;
        match self.budget.calls_max.filter(|max| used >= *max) {
            Some(max) => Some(RunFailure::CallLimit { max }),
            None => self.parent.as_ref().and_then(|parent| parent.calls_exhausted()),
        }
    }

    /// Returns the remaining budget, limited by the budgets of the parents.
    pub(crate) fn remaining(&self) -> RemainingBudget {
        let used = self.lock();
        let own = RemainingBudget {
            tokens: self
                .budget
                .tokens_max
                .map(|max| max.saturating_sub(used.total_tokens())),
            cost_usd: self.budget.cost_max.map(|max| max.saturating_sub(used.cost)),
            calls: self.budget.calls_max.map(|max| max.saturating_sub(used.calls)),
            wall_ms: self.wall_left().map(millis),
        };
        drop(used);
        match &self.parent {
            Some(parent) => own.min(parent.remaining()),
            None => own,
        }
    }

    /// Returns the remaining time budget of this account, without its parents.
    pub(crate) fn wall_left(&self) -> Option<Duration> {
        self.budget
            .wall_max
            .map(|max| max.saturating_sub(self.opened.elapsed()))
    }

    fn lock(&self) -> MutexGuard<'_, AccountUsage> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
