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
    opened_at: Instant,
    /// The clock of the time budget.
    clock: Arc<WallClock>,
    state: Mutex<AccountState>,
}

#[derive(Default)]
struct AccountState {
    budget: Budget,
    usage: AccountUsage,
    /// The call limit of a parent account that has refused calls of this account; `None` if no parent has.
    parent_call_limit: Option<u32>,
    /// The nested agent that failed last in this run.
    failed_agent: Option<FailedAgent>,
}

/// The usage that an account has recorded.
#[derive(Clone, Default)]
pub(crate) struct AccountUsage {
    pub(crate) tokens: TokenUsage,
    pub(crate) cost: Cost,
    pub(crate) calls: u32,
    pub(crate) by_model: BTreeMap<(ModelUsageKind, String), ModelUsage>,
}

/// The number of requested calls that an account and its parents allow.
pub(crate) struct CallAllowance {
    /// The number of requested calls that may run.
    pub(crate) allowed: u32,
    /// The call limit that refused the remaining requested calls; `None` if all may run.
    pub(crate) refusing_limit: Option<u32>,
}

/// A nested agent that failed, and its failure.
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
            opened_at: Instant::now(),
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

    /// Returns the clock of the time budget. It stops while a run of the process waits for an approval.
    pub(crate) fn clock(&self) -> &Arc<WallClock> {
        &self.clock
    }

    /// Returns the time that counts towards the time budget.
    pub(crate) fn counted_time(&self) -> Duration {
        self.clock.elapsed()
    }

    /// Returns the time since the account was opened.
    pub(crate) fn age(&self) -> Duration {
        self.opened_at.elapsed()
    }

    pub(crate) fn usage(&self) -> AccountUsage {
        self.lock().usage.clone()
    }

    /// Records the use of a model, such as an inference.
    pub(crate) fn charge(&self, kind: ModelUsageKind, model: &str, tokens: TokenUsage, cost: Cost) {
        let usage = &mut self.lock().usage;
        usage.tokens += tokens;
        usage.cost = usage.cost.saturating_add(cost);
        let model_usage = usage.by_model.entry((kind, model.to_owned())).or_default();
        model_usage.add(tokens, cost);
        if let Some(parent) = &self.parent {
            parent.charge(kind, model, tokens, cost);
        }
    }

    /// Charges the requested calls, up to the number that this account and its parents have left.
    ///
    /// If a parent refuses calls, [`reached_limit`](Self::reached_limit) of this account returns the call limit of the
    /// parent from then on. So the budget of a process also stops the agents nested in it.
    ///
    /// Accounts are always locked from the innermost to the outermost, which prevents deadlocks.
    pub(crate) fn take_calls(&self, requested: u32) -> CallAllowance {
        let mut state = self.lock();
        let max = state.budget.calls_max;
        let calls_left = max.map_or(u32::MAX, |max| max.saturating_sub(state.usage.calls));
        let allowed_here = requested.min(calls_left);
        let mut allowance = match &self.parent {
            Some(parent) => parent.take_calls(allowed_here),
            None => CallAllowance {
                allowed: allowed_here,
                refusing_limit: None,
            },
        };
        state.usage.calls = state.usage.calls.saturating_add(allowance.allowed);
        state.parent_call_limit = state.parent_call_limit.or(allowance.refusing_limit);
        allowance.refusing_limit = allowance.refusing_limit.or(max.filter(|_| allowed_here < requested));
        allowance
    }

    /// Returns the first reached limit of this account or its parents: a limit of tokens, cost or time, or a call limit.
    ///
    /// A call limit counts as reached when an account has refused calls of an account nested in it. From then on, the
    /// nested account returns this limit, and so do all accounts nested in the nested account. An account does not return
    /// its own call limit here, because [`take_calls`](Self::take_calls) returns it.
    pub(crate) fn reached_limit(&self) -> Option<RunFailure> {
        let limit = self.reached_limit_without_parents();
        limit.or_else(|| self.parent.as_ref().and_then(|parent| parent.reached_limit()))
    }

    /// Returns the first limit that this account has reached, without checking its parents. This can be the call limit of a
    /// parent that has refused calls of this account.
    fn reached_limit_without_parents(&self) -> Option<RunFailure> {
        let state = self.lock();
        let (budget, usage) = (&state.budget, &state.usage);
        let tokens = usage.total_tokens();
        if let Some(max) = budget.tokens_max.filter(|max| tokens >= *max) {
            return Some(RunFailure::TokenLimit { max, used: tokens });
        }
        if let Some(max) = budget.cost_max.filter(|max| usage.cost >= *max) {
            return Some(RunFailure::CostLimit { max, used: usage.cost });
        }
        if let Some(max) = budget.wall_max.filter(|max| self.clock.elapsed() >= *max) {
            return Some(RunFailure::WallClockLimit { max });
        }
        state.parent_call_limit.map(|max| RunFailure::CallLimit { max })
    }

    /// Returns the remaining budget, limited by the budgets of the parents.
    pub(crate) fn remaining(&self) -> RemainingBudget {
        let wall_ms = self.wall_left().map(millis);
        let state = self.lock();
        let (budget, usage) = (&state.budget, &state.usage);
        let remaining = RemainingBudget {
            tokens: budget.tokens_max.map(|max| max.saturating_sub(usage.total_tokens())),
            cost_usd: budget.cost_max.map(|max| max.saturating_sub(usage.cost)),
            calls: budget.calls_max.map(|max| max.saturating_sub(usage.calls)),
            wall_ms,
        };
        drop(state);
        match &self.parent {
            Some(parent) => remaining.min(parent.remaining()),
            None => remaining,
        }
    }

    /// Returns the remaining time budget of this account, regardless of its parents.
    pub(crate) fn wall_left(&self) -> Option<Duration> {
        let wall_max = self.budget().wall_max;
        wall_max.map(|max| max.saturating_sub(self.clock.elapsed()))
    }

    /// Records a nested agent that failed in this run.
    pub(crate) fn record_failed_agent(&self, agent: FailedAgent) {
        self.lock().failed_agent = Some(agent);
    }

    /// Returns the name of the nested agent that caused this failure of the run, or `None` if no agent caused it.
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
