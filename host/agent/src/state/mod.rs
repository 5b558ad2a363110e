//! The state of a conversation, which outlives its runs.

mod call_ids;
mod history;
mod late_results;
mod long_results;
mod resolved_outcome;
mod roles;

use std::collections::HashMap;
use std::sync::Arc;

use crate::event::{EarlierAnswers, Observers, RecordedOutcome, RecordedStart};
use crate::injection::{Injection, StrategyChain};
use crate::journal::{InterruptedRun, Journal};
use crate::limits::LoopLimits;
use crate::model::{ChatModel, ChatOptions};
use crate::process::AgentProcess;
use crate::toolbox::Toolbox;
use toolwit_core::{Approvals, Blackboard, Caller, Error, Tool, ToolContext};

pub(crate) use call_ids::CallIds;
pub(crate) use history::{History, cancelled_call, error_text};
pub(crate) use late_results::{BackgroundCall, LateResults};
pub(crate) use long_results::{LongResults, READ_RESULT, TruncatedResult, read_result_tool};
pub(crate) use resolved_outcome::resolved_outcome;
pub(crate) use roles::Roles;

/// All data of a conversation: its history, its tools and its configuration.
pub(crate) struct ConversationState {
    pub(crate) model: Arc<dyn ChatModel>,
    pub(crate) history: History,
    pub(crate) toolbox: Toolbox,
    /// All strategies of the conversation.
    pub(crate) strategy: StrategyChain,
    pub(crate) context: ToolContext,
    /// The caller for whom the tools of the conversation were made.
    pub(crate) caller: Caller,
    pub(crate) blackboard: Arc<dyn Blackboard>,
    pub(crate) process: Arc<AgentProcess>,
    pub(crate) late_results: LateResults,
    pub(crate) roles: Roles,
    /// Whether the outcome of a run omits the artifacts of agentic tools.
    pub(crate) drops_nested_artifacts: bool,
    pub(crate) options: ChatOptions,
    pub(crate) limits: LoopLimits,
    /// The approvals of this conversation. The approvals of an outer conversation are in the context.
    pub(crate) approvals: Option<Arc<Approvals>>,
    pub(crate) observers: Observers,
    pub(crate) long_results: Arc<LongResults>,
    /// The tool that reads long results. It is added with the first long result.
    pub(crate) read_result_tool: Arc<dyn Tool>,
    /// The number of turns so far.
    pub(crate) turns: u32,
    pub(crate) journal: Option<Arc<Journal>>,
    /// The run that an earlier process did not finish.
    pub(crate) interrupted_run: Option<InterruptedRun>,
    /// The outcomes of the interrupted run's calls that do not run again, by the ids of the calls.
    pub(crate) recovered_outcomes: HashMap<String, RecordedOutcome>,
    /// The errors of the interrupted run's calls that a person denied although their tools are gone, by the ids of the calls.
    pub(crate) denied_calls: HashMap<String, Error>,
    /// The recorded starts of the interrupted run's calls that run again, by the ids of the calls.
    pub(crate) earlier_starts: HashMap<String, RecordedStart>,
    /// The answered questions of the interrupted run's calls that run again, by the ids of the calls.
    pub(crate) earlier_answers: HashMap<String, EarlierAnswers>,
}

impl ConversationState {
    /// Returns an injection that adds the tool that reads long results, or an empty injection if the conversation has the
    /// tool.
    pub(crate) fn read_result_injection(&self) -> Injection {
        match self.toolbox.callable().by_id(&self.read_result_tool.definition().id) {
            Some(_) => Injection::none(),
            None => Injection::add(vec![self.read_result_tool.clone()]),
        }
    }
}
