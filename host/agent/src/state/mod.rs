//! The state of a conversation, which outlives its runs.

mod call_ids;
mod history;
mod late_results;
mod long_results;
mod roles;

use std::collections::HashMap;
use std::sync::Arc;

use crate::event::{Observers, RecordedOutcome, RecordedStart};
use crate::injection::{Injection, StrategyChain};
use crate::journal::{InterruptedRun, Journal};
use crate::limits::LoopLimits;
use crate::model::{ChatModel, ChatOptions};
use crate::process::Process;
use crate::toolbox::Toolbox;
use toolwit_core::{Approvals, Blackboard, Tool, ToolContext};

pub(crate) use call_ids::CallIds;
pub(crate) use history::{History, error_text, interrupted_call};
pub(crate) use late_results::{BackgroundCall, LateResults};
pub(crate) use long_results::{LongResults, READ_RESULT, TruncatedResult, read_result_tool};
pub(crate) use roles::Roles;

/// All data of a conversation: its history, its tools and its configuration.
pub(crate) struct ConversationState {
    pub(crate) model: Arc<dyn ChatModel>,
    pub(crate) history: History,
    pub(crate) toolbox: Toolbox,
    pub(crate) strategy: StrategyChain,
    pub(crate) context: ToolContext,
    pub(crate) blackboard: Arc<dyn Blackboard>,
    pub(crate) process: Arc<Process>,
    pub(crate) late_results: LateResults,
    pub(crate) roles: Roles,
    /// Whether the outcome of a run omits the artifacts of agentic tools.
    pub(crate) drops_nested_artifacts: bool,
    pub(crate) options: ChatOptions,
    pub(crate) limits: LoopLimits,
    /// The conversation's own approvals; those of an outer conversation are in the context.
    pub(crate) approvals: Option<Arc<Approvals>>,
    pub(crate) observers: Observers,
    pub(crate) long_results: Arc<LongResults>,
    /// The tool that reads long results, which is added with the first long result.
    pub(crate) read_result: Arc<dyn Tool>,
    /// The number of turns so far.
    pub(crate) turns: u32,
    pub(crate) journal: Option<Arc<Journal>>,
    /// The run that an earlier process did not finish.
    pub(crate) interrupted: Option<InterruptedRun>,
    /// The outcomes of calls of an earlier process that do not run again, by the ids of the calls.
    pub(crate) recovered_outcomes: HashMap<String, RecordedOutcome>,
    /// The starts of calls that run again after an earlier process began them, by the ids of the calls.
    pub(crate) earlier_starts: HashMap<String, RecordedStart>,
}

impl ConversationState {
    /// Returns the injection that adds the tool for long results, unless it is present.
    pub(crate) fn read_result_if_missing(&self) -> Injection {
        match self.toolbox.callable().by_id(&self.read_result.definition().id) {
            Some(_) => Injection::none(),
            None => Injection::add(vec![self.read_result.clone()]),
        }
    }
}
