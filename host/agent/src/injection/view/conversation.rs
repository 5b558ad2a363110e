//! The state of a conversation at one moment.

use std::sync::LazyLock;

use super::call_log::CallLog;
use super::lineage::Lineage;
use crate::injection::entity::Entities;
use toolwit_core::{Message, ToolContext, ToolSet};

static NO_ENTITIES: LazyLock<Entities> = LazyLock::new(Entities::default);
static NO_LINEAGE: LazyLock<Lineage> = LazyLock::new(Lineage::default);
static NO_CALLS: LazyLock<CallLog> = LazyLock::new(CallLog::default);
static NO_CONTEXT: LazyLock<ToolContext> = LazyLock::new(ToolContext::new);

/// A read-only view of a conversation at one moment: its history, tools, entities, lineage and completed calls.
#[derive(Clone, Copy)]
pub struct ConversationView<'a> {
    history: &'a [Message],
    tools: &'a ToolSet,
    entities: &'a Entities,
    lineage: &'a Lineage,
    calls: &'a CallLog,
    context: &'a ToolContext,
    turn: u32,
    iteration: u32,
}

impl<'a> ConversationView<'a> {
    /// Creates a view of a conversation without calls, at turn 1 and iteration 1.
    #[must_use]
    pub fn new(history: &'a [Message], tools: &'a ToolSet) -> Self {
        Self {
            history,
            tools,
            entities: &NO_ENTITIES,
            lineage: &NO_LINEAGE,
            calls: &NO_CALLS,
            context: &NO_CONTEXT,
            turn: 1,
            iteration: 1,
        }
    }

    /// Sets the entities.
    #[must_use]
    pub fn with_entities(mut self, entities: &'a Entities) -> Self {
        self.entities = entities;
        self
    }

    /// Sets the lineage of injected tools.
    #[must_use]
    pub fn with_lineage(mut self, lineage: &'a Lineage) -> Self {
        self.lineage = lineage;
        self
    }

    /// Sets the log of completed calls.
    #[must_use]
    pub fn with_calls(mut self, calls: &'a CallLog) -> Self {
        self.calls = calls;
        self
    }

    /// Sets the context that is passed to tools and never sent to the model.
    #[must_use]
    pub fn with_context(mut self, context: &'a ToolContext) -> Self {
        self.context = context;
        self
    }

    /// Sets the turn and the iteration.
    #[must_use]
    pub fn with_position(mut self, turn: u32, iteration: u32) -> Self {
        (self.turn, self.iteration) = (turn, iteration);
        self
    }

    /// Returns the messages so far.
    #[must_use]
    pub fn history(&self) -> &'a [Message] {
        self.history
    }

    /// Returns the tools of the conversation, including those that are locked or not declared now.
    #[must_use]
    pub fn tools(&self) -> &'a ToolSet {
        self.tools
    }

    /// Returns the entities that results have returned so far.
    #[must_use]
    pub fn entities(&self) -> &'a Entities {
        self.entities
    }

    /// Returns the lineage of injected tools.
    #[must_use]
    pub fn lineage(&self) -> &'a Lineage {
        self.lineage
    }

    /// Returns the completed calls, without the one that is being evaluated.
    #[must_use]
    pub fn calls(&self) -> &'a CallLog {
        self.calls
    }

    /// Returns the context that is passed to tools and never sent to the model. In a running conversation, it has the
    /// blackboard.
    #[must_use]
    pub fn context(&self) -> &'a ToolContext {
        self.context
    }

    /// Returns the number of the turn. The first turn is 1.
    #[must_use]
    pub fn turn(&self) -> u32 {
        self.turn
    }

    /// Returns the number of the inference within this run. The first inference is 1.
    #[must_use]
    pub fn iteration(&self) -> u32 {
        self.iteration
    }
}
