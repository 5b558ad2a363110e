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
use toolwit_core::WallClock;

/// The usage of a run or a process, and its budget. Every charge also counts for the parent account. The parent of a
/// run's account is the account of its process. The parent of a nested process's account is the account of the run that
/// called it.
pub(crate) struct Account {
    parent: Option<Arc<Account>>,
    opened: Instant,
    /// The clock of the time budget.
    clock: Arc<WallClock>,
    state: Mutex<AccountState>,
}

#[derive(Default)]
struct AccountState {
    budget: Budget,
    used: AccountUsage,
    /// The call limit of a parent account, if this limit has refused calls of this account.
    refusing_limit: Option<u32>,
    /// The agent that failed last in this run.
    failed_agent: Option<FailedAgent>,
}

/// The usage that an account has recorded.
#[derive(Clone, Default)]
pub(crate) struct AccountUsage {
    pub(crate) tokens: TokenUsage,
    pub(crate) cost: Cost,
    pub(crate) calls: u32,
    pub(crate) models: BTreeMap<(ModelUsageKind, String), ModelUsage>,
}

/// The calls that an account and its parents allow.
pub(crate) struct CallAllowance {
    /// The number of requested calls that may run.
    pub(crate) allowed: u32,
    /// The call limit that refused the remaining requested calls; `None` if all may run.
    pub(crate) refusing_limit: Option<u32>,
}

/// An agent that failed inside a run.
pub(crate) struct FailedAgent {
    pub(crate) name: String,
    pub(crate) failure: RunFailure,
}

impl AccountUsage {
    fn total_tokens(&self) -> u64 {
        self.tokens.input_tokens.saturating_add(self.tokens.output_tokens)
    }
}

impl Account {
    /// Opens an account without usage, and starts the clock of its time budget.
    pub(crate) fn open(budget: Budget, parent: Option<Arc<Account>>) -> Self {
        let state = AccountState {
            budget,
            ..AccountState::default()
        };
        Self {
            parent,
            opened: Instant::now(),
            clock: WallClock::start([]),
            state: Mutex::new(state),
        }
    }

    pub(crate) fn budget(&self) -> Budget {
        self.lock().budget
    }

    pub(crate) fn set_budget(&self, budget: Budget) {
        self.lock().budget = budget;
    }

    /// Returns the clock of the time budget. The clock is stopped while the clock of a run of the process is stopped.
    pub(crate) fn clock(&self) -> &Arc<WallClock> {
        &self.clock
    }

    /// Returns the time that counts towards the time budget.
    pub(crate) fn counted_time(&self) -> Duration {
        self.clock.elapsed()
    }

    pub(crate) fn age(&self) -> Duration {
        self.opened.elapsed()
    }

    pub(crate) fn usage(&self) -> AccountUsage {
        self.lock().used.clone()
    }

    /// Records the use of a model, such as an inference.
    pub(crate) fn charge(&self, kind: ModelUsageKind, model: &str, tokens: TokenUsage, cost: Cost) {
        let used = &mut self.lock().used;
        used.tokens += tokens;
        used.cost = used.cost.saturating_add(cost);
        let model_usage = used.models.entry((kind, model.to_owned()));
        model_usage.or_default().add(tokens, cost);
        if let Some(parent) = &self.parent {
            parent.charge(kind, model, tokens, cost);
        }
    }

    /// Charges the requested calls, up to the number that this account and its parents have left.
    ///
    /// If a parent refuses calls, this account is exhausted too: the budget of the parent stops every agent inside its
    /// process. Accounts are always locked from the inner to the outer one, which prevents deadlocks.
    pub(crate) fn take_calls(&self, requested: u32) -> CallAllowance {
        let mut state = self.lock();
        let max = state.budget.calls_max;
        let calls_left = max.map_or(u32::MAX, |max| max.saturating_sub(state.used.calls));
        let allowed_here = requested.min(calls_left);
        let mut allowance = match &self.parent {
            Some(parent) => parent.take_calls(allowed_here),
            None => CallAllowance {
                allowed: allowed_here,
                refusing_limit: None,
            },
        };
        state.used.calls = state.used.calls.saturating_add(allowance.allowed);
        state.refusing_limit = state.refusing_limit.or(allowance.refusing_limit);
        allowance.refusing_limit = allowance.refusing_limit.or(max.filter(|_| allowed_here < requested));
        allowance
    }

    /// Returns the first limit of this account or its parents that is reached. A call limit is returned only if it
    /// belongs to a parent and has refused calls of this account. [`take_calls`](Self::take_calls) reports the other
    /// cases.
    pub(crate) fn reached_limit(&self) -> Option<RunFailure> {
        let own_limit = self.own_reached_limit();
        own_limit.or_else(|| self.parent.as_ref().and_then(|parent| parent.reached_limit()))
    }

    /// Returns the first limit that is reached according to the state of this account alone.
    fn own_reached_limit(&self) -> Option<RunFailure> {
        let state = self.lock();
        let (budget, used) = (&state.budget, &state.used);
        let tokens = used.total_tokens();
        if let Some(max) = budget.tokens_max.filter(|max| tokens >= *max) {
            return Some(RunFailure::TokenLimit { max, used: tokens });
        }
        if let Some(max) = budget.cost_max.filter(|max| used.cost >= *max) {
            return Some(RunFailure::CostLimit { max, used: used.cost });
        }
        if let Some(max) = budget.wall_max.filter(|max| self.clock.elapsed() >= *max) {
            return Some(RunFailure::WallClockLimit { max });
        }
        state.refusing_limit.map(|max| RunFailure::CallLimit { max })
    }

    /// Returns the remaining budget, limited by the budgets of the parents.
    pub(crate) fn remaining(&self) -> RemainingBudget {
        let wall_ms = self.wall_left().map(millis);
        let state = self.lock();
        let (budget, used) = (&state.budget, &state.used);
        let own_budget = RemainingBudget {
            tokens: budget.tokens_max.map(|max| max.saturating_sub(used.total_tokens())),
            cost_usd: budget.cost_max.map(|max| max.saturating_sub(used.cost)),
            calls: budget.calls_max.map(|max| max.saturating_sub(used.calls)),
            wall_ms,
        };
        drop(state);
        match &self.parent {
            Some(parent) => own_budget.min(parent.remaining()),
            None => own_budget,
        }
    }

    /// Returns the remaining time budget of this account, regardless of its parents.
    pub(crate) fn wall_left(&self) -> Option<Duration> {
        let wall_max = self.budget().wall_max;
        wall_max.map(|max| max.saturating_sub(self.clock.elapsed()))
    }

    /// Records an agent that failed in this run.
    pub(crate) fn record_failed_agent(&self, agent: FailedAgent) {
        self.lock().failed_agent = Some(agent);
    }

    /// Returns the name of the agent whose failure caused a failure of this run, or `None` if no agent did.
    pub(crate) fn failed_agent(&self, failure: &RunFailure) -> Option<String> {
        let state = self.lock();
        let agent = state.failed_agent.as_ref();
        let agent = agent.filter(|agent| failure.follows_from(&agent.failure));
        agent.map(|agent| agent.name.clone())
    }

    fn lock(&self) -> MutexGuard<'_, AccountState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
