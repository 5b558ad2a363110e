//! The process of a conversation. Tools receive it in their context.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;

use super::account::Account;
use super::budget::{Budget, RemainingBudget};
use super::record::{ModelUsage, ModelUsageKind, ProcessAction, ToolUsage};
use super::unique_id::new_unique_id;
use crate::model::{Cost, TokenUsage};
use crate::outcome::StopReason;
use toolwit_core::{Error, ErrorKind, Phase};
use toolwit_core::{Origin, ToolContext, ToolError, ToolName};

/// Maximum number of actions that a process stores. The oldest are dropped first. The usage still counts them.
const ACTIONS_MAX: usize = 1_000;

/// Maximum length of the stored goal, in characters.
const GOAL_CHARS_MAX: usize = 500;

/// All runs of one conversation together: their goal, status, actions and budget. Every tool of the conversation can read them.
/// A process of this kind is not a process of the operating system.
///
/// An agent that a tool runs is a nested process. Its usage is charged to both processes.
///
/// ```
/// use toolwit_agent::AgentProcess;
/// use toolwit_core::{NativeTool, NoArguments, ToolError};
///
/// let description = "Returns the number of tokens left.";
/// let tool = NativeTool::typed("tokens_left", description, |_: NoArguments, context| async move {
///     Ok::<_, ToolError>(AgentProcess::of(&context)?.remaining().tokens)
/// })?;
/// # Ok::<(), toolwit_core::Error>(())
/// ```
pub struct AgentProcess {
    origin: Origin,
    depth: u32,
    account: Arc<Account>,
    state: Mutex<ProcessState>,
}

/// The id of the model's call that a tool executes. It is an extension of the tool's context.
pub(crate) struct CallId(pub(crate) String);

struct ProcessState {
    goal: Option<String>,
    status: ProcessStatus,
    actions: VecDeque<ProcessAction>,
    tool_usage: BTreeMap<ToolName, ToolUsage>,
}

/// The status of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "status", content = "stop_reason", rename_all = "snake_case")]
pub enum ProcessStatus {
    /// No run has begun.
    Ready,
    /// A run is in progress.
    Running,
    /// The last run ended.
    Stopped(StopReason),
}

impl AgentProcess {
    /// Returns the process of the conversation in which a tool is called.
    ///
    /// # Errors
    /// [`ToolError::Model`] outside a conversation.
    pub fn of(context: &ToolContext) -> Result<&Arc<Self>, ToolError> {
        context.extension::<Arc<Self>>().ok_or_else(|| {
            let message = "there is no process: the tool is called outside a conversation";
            ToolError::Model(Error::new(ErrorKind::ToolUnavailable, Phase::Execute, message))
        })
    }

    /// Begins a process, nested in the process of the context if there is one.
    pub(crate) fn begin(goal: Option<String>, budget: Budget, context: &ToolContext) -> Self {
        let parent = context.extension::<Arc<Account>>().cloned();
        let depth = Self::of(context).map_or(0, |process| process.depth.saturating_add(1));
        let outer_call = context.extension::<CallId>().map(|call| call.0.clone());
        Self {
            origin: Origin {
                process: new_unique_id(),
                parent_call: outer_call,
            },
            depth,
            account: Arc::new(Account::open(budget, parent)),
            state: Mutex::new(ProcessState {
                goal: goal.map(|goal| truncate_goal(&goal)),
                status: ProcessStatus::Ready,
                actions: VecDeque::new(),
                tool_usage: BTreeMap::new(),
            }),
        }
    }

    /// Returns the unique id of the process.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.origin.process
    }

    /// Returns the origin that every event of the process carries: the id of the process, and the id of the call in
    /// which the process runs.
    #[must_use]
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Returns the goal of the conversation, by default its first user message; `None` before that. A long goal is
    /// truncated.
    #[must_use]
    pub fn goal(&self) -> Option<String> {
        self.lock().goal.clone()
    }

    /// Returns the status.
    #[must_use]
    pub fn status(&self) -> ProcessStatus {
        self.lock().status
    }

    /// Returns the number of processes in which this process is nested.
    #[must_use]
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// Returns the time since the process began. Unlike the time budget, it includes the time spent waiting for approvals.
    #[must_use]
    pub fn running_time(&self) -> Duration {
        self.account.age()
    }

    /// Returns the time that counts towards the time budget: the running time without the time spent waiting for approvals.
    #[must_use]
    pub fn counted_time(&self) -> Duration {
        self.account.counted_time()
    }

    /// Returns the budget.
    #[must_use]
    pub fn budget(&self) -> Budget {
        self.account.budget()
    }

    /// Returns the remaining budget, limited by the budgets of the processes in which this process is nested.
    #[must_use]
    pub fn remaining(&self) -> RemainingBudget {
        self.account.remaining()
    }

    /// Returns the tokens used, nested agents included.
    #[must_use]
    pub fn tokens(&self) -> TokenUsage {
        self.account.usage().tokens
    }

    /// Returns the cost, nested agents included.
    #[must_use]
    pub fn cost(&self) -> Cost {
        self.account.usage().cost
    }

    /// Returns the number of tool calls that the budgets allowed to run, nested agents included.
    #[must_use]
    pub fn calls(&self) -> u32 {
        self.account.usage().calls
    }

    /// Returns the actions, without those of nested agents, the oldest first: at most the last 1,000.
    #[must_use]
    pub fn actions(&self) -> Vec<ProcessAction> {
        self.lock().actions.iter().cloned().collect()
    }

    /// Returns the usage of each tool, without nested agents.
    #[must_use]
    pub fn tool_usage(&self) -> BTreeMap<ToolName, ToolUsage> {
        self.lock().tool_usage.clone()
    }

    /// Returns the usage of each model, nested agents included.
    #[must_use]
    pub fn model_usage(&self) -> BTreeMap<(ModelUsageKind, String), ModelUsage> {
        self.account.usage().by_model
    }

    /// Records that a tool used a model itself, such as for embeddings. The usage is charged to the budget.
    pub fn record_model_usage(&self, kind: ModelUsageKind, model: &str, tokens: TokenUsage, cost: Cost) {
        self.account.charge(kind, model, tokens, cost);
    }

    pub(crate) fn account(&self) -> &Arc<Account> {
        &self.account
    }

    /// Records the start of a run.
    pub(crate) fn begin_run(&self, prompt: Option<&str>) {
        let mut state = self.lock();
        state.status = ProcessStatus::Running;
        if state.goal.is_none() {
            state.goal = prompt.map(truncate_goal);
        }
    }

    /// Records the end of a run.
    pub(crate) fn end_run(&self, stop: StopReason) {
        self.lock().status = ProcessStatus::Stopped(stop);
    }

    /// Records a call that ended.
    pub(crate) fn record_action(&self, action: ProcessAction) {
        let mut state = self.lock();
        let usage = state.tool_usage.entry(action.name.clone()).or_default();
        usage.calls += 1;
        usage.errors += u64::from(action.is_error);
        usage.wall_ms = usage.wall_ms.saturating_add(action.wall_ms);
        state.actions.push_back(action);
        if state.actions.len() > ACTIONS_MAX {
            state.actions.pop_front();
        }
    }

    fn lock(&self) -> MutexGuard<'_, ProcessState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the first [`GOAL_CHARS_MAX`] characters of a goal.
fn truncate_goal(goal: &str) -> String {
    goal.chars().take(GOAL_CHARS_MAX).collect()
}
