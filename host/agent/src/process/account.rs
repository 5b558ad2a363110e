//! Who pays for what.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::budget::{Budget, Remaining};
use super::record::{ModelUse, ModelUseKind};
use crate::failure::RunFailure;
use crate::model::{Cost, TokenUsage};

/// What was used, and how much of it may be. What is charged here is charged to the account around it too: that of a run to its
/// process's, that of a nested process to the run that called it.
pub(crate) struct Account {
    around: Option<Arc<Account>>,
    budget: Budget,
    opened: Instant,
    used: Mutex<Used>,
}

#[derive(Clone, Default)]
pub(crate) struct Used {
    pub(crate) tokens: TokenUsage,
    pub(crate) cost: Cost,
    pub(crate) calls: u32,
    pub(crate) models: BTreeMap<(ModelUseKind, String), ModelUse>,
}

impl Used {
    fn tokens(&self) -> u64 {
        self.tokens.input_tokens.saturating_add(self.tokens.output_tokens)
    }
}

impl Account {
    pub(crate) fn open(budget: Budget, around: Option<Arc<Account>>) -> Self {
        Self {
            around,
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

    pub(crate) fn used(&self) -> Used {
        self.lock().clone()
    }

    /// Notes an inference.
    pub(crate) fn charge(&self, kind: ModelUseKind, model: &str, tokens: TokenUsage, cost: Cost) {
        let mut used = self.lock();
        used.tokens += tokens;
        used.cost = used.cost.saturating_add(cost);
        used.models
            .entry((kind, model.to_owned()))
            .or_default()
            .add(tokens, cost);
        drop(used);
        if let Some(around) = &self.around {
            around.charge(kind, model, tokens, cost);
        }
    }

    /// Takes as many of the wanted calls as every account up the chain has left. Locks go upwards only.
    pub(crate) fn take_calls(&self, wanted: u32) -> u32 {
        let mut used = self.lock();
        let left = self
            .budget
            .calls_max
            .map_or(u32::MAX, |max| max.saturating_sub(used.calls));
        let own = wanted.min(left);
        let taken = self.around.as_ref().map_or(own, |around| around.take_calls(own));
        used.calls = used.calls.saturating_add(taken);
        taken
    }

    /// Returns the first bound that is met, the own one before those around it.
    pub(crate) fn exhausted(&self) -> Option<RunFailure> {
        let own = self.own_exhausted();
        own.or_else(|| self.around.as_ref().and_then(|around| around.exhausted()))
    }

    fn own_exhausted(&self) -> Option<RunFailure> {
        let used = self.lock();
        let tokens = used.tokens();
        if let Some(max) = self.budget.tokens_max.filter(|max| tokens >= *max) {
            return Some(RunFailure::TokenLimit { max, used: tokens });
        }
        if let Some(max) = self.budget.cost_max.filter(|max| used.cost >= *max) {
            return Some(RunFailure::CostLimit { max, used: used.cost });
        }
        let spent = self.budget.wall_max.filter(|max| self.opened.elapsed() >= *max);
        spent.map(|max| RunFailure::WallClockLimit { max })
    }

    /// Returns the bound of calls that leaves none, the own one before those around it.
    pub(crate) fn calls_exhausted(&self) -> Option<RunFailure> {
        let used = self.lock().calls;
        match self.budget.calls_max.filter(|max| used >= *max) {
            Some(max) => Some(RunFailure::CallLimit { max }),
            None => self.around.as_ref().and_then(|around| around.calls_exhausted()),
        }
    }

    /// Returns what is left here and in every account around.
    pub(crate) fn remaining(&self) -> Remaining {
        let used = self.lock();
        let own = Remaining {
            tokens: self.budget.tokens_max.map(|max| max.saturating_sub(used.tokens())),
            cost_usd: self.budget.cost_max.map(|max| max.saturating_sub(used.cost)),
            calls: self.budget.calls_max.map(|max| max.saturating_sub(used.calls)),
            wall_ms: self
                .wall_left()
                .map(|left| u64::try_from(left.as_millis()).unwrap_or(u64::MAX)),
        };
        drop(used);
        match &self.around {
            Some(around) => own.and(around.remaining()),
            None => own,
        }
    }

    /// Returns how long the process may still take, by its own budget.
    pub(crate) fn wall_left(&self) -> Option<Duration> {
        self.budget
            .wall_max
            .map(|max| max.saturating_sub(self.opened.elapsed()))
    }

    fn lock(&self) -> MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
