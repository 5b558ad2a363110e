//! The settings of an agentic tool's inner loop.

use std::sync::Arc;

use crate::conversation::ConversationBuilder;
use crate::event::Observer;
use crate::injection::{Chaining, Reference, StrategyChain};
use crate::limits::LoopLimits;
use crate::model::{ChatOptions, ModelChoice};
use crate::process::Budget;
use toolwit_core::{Error, Tool, ToolContext};

/// The settings of the inner loop.
#[derive(Clone)]
pub(super) struct InnerLoop {
    pub(super) system: SystemPrompt,
    pub(super) model: Option<ModelChoice>,
    pub(super) options: ChatOptions,
    pub(super) limits: LoopLimits,
    pub(super) budget: Budget,
    pub(super) tools: Vec<Arc<dyn Tool>>,
    pub(super) references: Vec<Reference>,
    pub(super) strategies: StrategyChain,
    /// A playbook or a state machine.
    pub(super) workflow: Option<Arc<AddWorkflow>>,
    pub(super) chaining: Chaining,
    pub(super) observers: Vec<Arc<dyn Observer>>,
    pub(super) captures_nested_artifacts: bool,
    /// The error of an invalid tool object or parameter, which every call returns.
    pub(super) failed: Option<Error>,
}

/// Adds a playbook or a state machine to the inner conversation.
pub(super) type AddWorkflow = dyn Fn(ConversationBuilder) -> ConversationBuilder + Send + Sync;

/// Creates the system prompt from the context and the input of a call.
pub(super) type MakeSystemPrompt = dyn Fn(&ToolContext, &str) -> String + Send + Sync;

/// The system prompt of the inner loop.
#[derive(Clone)]
pub(super) enum SystemPrompt {
    /// Derived from the description of the tool.
    FromDescription,
    Fixed(Arc<str>),
    FromCall(Arc<MakeSystemPrompt>),
}

impl InnerLoop {
    /// Stores an error that every call returns. Later errors are ignored.
    pub(super) fn fail(&mut self, error: Error) {
        self.failed.get_or_insert(error);
    }
}
