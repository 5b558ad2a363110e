//! A process as tools see it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;

use super::account::Account;
use super::budget::{Budget, Remaining};
use super::record::{Action, ModelUse, ModelUseKind, ToolUse};
use crate::loop_id;
use crate::model::{Cost, TokenUsage};
use crate::outcome::StopReason;
use toolwit_core::{Error, ErrorKind, Phase};
use toolwit_core::{ToolContext, ToolError, ToolName};

/// How deep agents may call agents. Each level multiplies what a run may cost.
pub const AGENT_DEPTH_MAX: u32 = 4;

/// How many actions a process remembers; the oldest go first. The statistics count them all.
const ACTIONS_MAX: usize = 1_000;

/// The most of a goal that is kept, in characters.
const GOAL_CHARS_MAX: usize = 500;

/// What a conversation is about, what it has done and what it may still use. Every tool of it can ask.
///
/// An agent that a tool runs is a process of its own, inside the one that called it: what it uses is charged to both.
///
/// ```
/// use toolwit_agent::Process;
/// use toolwit_core::{NativeTool, NoArguments, ToolError};
///
/// let left = NativeTool::typed("left", "Tells how many tokens are left.", |_: NoArguments, context| async move {
///     Ok::<_, ToolError>(Process::of(&context)?.remaining().tokens)
/// })?;
/// # Ok::<(), toolwit_core::Error>(())
/// ```
pub struct Process {
    id: String,
    depth: u32,
    account: Arc<Account>,
    state: Mutex<State>,
}

struct State {
    goal: Option<String>,
    status: ProcessStatus,
    actions: VecDeque<Action>,
    tools: BTreeMap<ToolName, ToolUse>,
}

/// How far a process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "status", content = "stop_reason", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ProcessStatus {
    /// Nothing was asked of it yet.
    Ready,
    /// A run is in progress.
    Running,
    /// The last run ended.
    Stopped(StopReason),
}

impl Process {
    /// Returns the process in which a tool is called.
    ///
    /// # Errors
    /// [`ToolError::Model`] outside a conversation.
    pub fn of(context: &ToolContext) -> Result<&Arc<Self>, ToolError> {
        context.extension::<Arc<Self>>().ok_or_else(|| {
            let message = "there is no process: the tool is called outside a conversation";
            ToolError::Model(Error::new(ErrorKind::ToolUnavailable, Phase::Execute, message))
        })
    }

    /// Begins a process, inside the one of the context if there is one.
    pub(crate) fn begin(goal: Option<String>, budget: Budget, context: &ToolContext) -> Self {
        let around = context.extension::<Arc<Account>>().cloned();
        let depth = Self::of(context).map_or(0, |process| process.depth.saturating_add(1));
        Self {
            id: loop_id::fresh(),
            depth,
            account: Arc::new(Account::open(budget, around)),
            state: Mutex::new(State {
                goal: goal.map(|goal| shortened(&goal)),
                status: ProcessStatus::Ready,
                actions: VecDeque::new(),
                tools: BTreeMap::new(),
            }),
        }
    }

    /// Returns what tells this process from every other.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns what it is to reach: the goal that it was given, else the user's first message.
    #[must_use]
    pub fn goal(&self) -> Option<String> {
        self.lock().goal.clone()
    }

    /// Returns how far it is.
    #[must_use]
    pub fn status(&self) -> ProcessStatus {
        self.lock().status
    }

    /// Returns how many agents lie between it and the outermost process.
    #[must_use]
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// Returns how long ago it began.
    #[must_use]
    pub fn running_time(&self) -> Duration {
        self.account.age()
    }

    /// Returns what it may use.
    #[must_use]
    pub fn budget(&self) -> &Budget {
        self.account.budget()
    }

    /// Returns what it may still use, by its own budget and by those around it.
    #[must_use]
    pub fn remaining(&self) -> Remaining {
        self.account.remaining()
    }

    /// Returns the tokens that it used, nested agents included.
    #[must_use]
    pub fn tokens(&self) -> TokenUsage {
        self.account.used().tokens
    }

    /// Returns what it cost, nested agents included.
    #[must_use]
    pub fn cost(&self) -> Cost {
        self.account.used().cost
    }

    /// Returns how many tool calls it was allowed, nested agents included.
    #[must_use]
    pub fn calls(&self) -> u32 {
        self.account.used().calls
    }

    /// Returns what it did, the oldest first, as far as it is remembered.
    #[must_use]
    pub fn actions(&self) -> Vec<Action> {
        self.lock().actions.iter().cloned().collect()
    }

    /// Returns how often each tool was called.
    #[must_use]
    pub fn tool_use(&self) -> BTreeMap<ToolName, ToolUse> {
        self.lock().tools.clone()
    }

    /// Returns how much each model was used, nested agents included.
    #[must_use]
    pub fn model_use(&self) -> BTreeMap<(ModelUseKind, String), ModelUse> {
        self.account.used().models
    }

    /// Notes that a tool asked a model by itself, such as for embeddings, so that budgets and statistics know.
    pub fn note_model_use(&self, kind: ModelUseKind, model: &str, tokens: TokenUsage, cost: Cost) {
        self.account.charge(kind, model, tokens, cost);
    }

    pub(crate) fn account(&self) -> &Arc<Account> {
        &self.account
    }

    /// Notes that a run begins.
    pub(crate) fn run_begins(&self, prompt: Option<&str>) {
        let mut state = self.lock();
        state.status = ProcessStatus::Running;
        if state.goal.is_none() {
            state.goal = prompt.map(shortened);
        }
    }

    /// Notes that a run ended.
    pub(crate) fn run_ended(&self, stop: StopReason) {
        self.lock().status = ProcessStatus::Stopped(stop);
    }

    /// Notes a call that came to its end.
    pub(crate) fn note(&self, action: Action) {
        let mut state = self.lock();
        let tool = state.tools.entry(action.name.clone()).or_default();
        tool.calls += 1;
        tool.errors += u64::from(action.is_error);
        tool.wall_ms = tool.wall_ms.saturating_add(action.wall_ms);
        state.actions.push_back(action);
        if state.actions.len() > ACTIONS_MAX {
            state.actions.pop_front();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn shortened(goal: &str) -> String {
    goal.chars().take(GOAL_CHARS_MAX).collect()
}
