//! A conversation at one moment, as strategies see it.

use std::sync::LazyLock;

use super::calls::CallLog;
use super::entities::Entities;
use super::lineage::Lineage;
use toolwit_core::{Message, ToolContext, ToolSet};

static NO_ENTITIES: LazyLock<Entities> = LazyLock::new(Entities::default);
static NO_LINEAGE: LazyLock<Lineage> = LazyLock::new(Lineage::default);
static NO_CALLS: LazyLock<CallLog> = LazyLock::new(CallLog::default);
static NO_CONTEXT: LazyLock<ToolContext> = LazyLock::new(ToolContext::new);

/// A conversation at one moment: what was said, what was called, which tools there are.
#[derive(Clone, Copy)]
#[non_exhaustive]
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
    /// Describes a conversation in which nothing was called yet.
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

    /// Says which entities were met.
    #[must_use]
    pub fn with_entities(mut self, entities: &'a Entities) -> Self {
        self.entities = entities;
        self
    }

    /// Says which tool brought which.
    #[must_use]
    pub fn with_lineage(mut self, lineage: &'a Lineage) -> Self {
        self.lineage = lineage;
        self
    }

    /// Says what was called before.
    #[must_use]
    pub fn with_calls(mut self, calls: &'a CallLog) -> Self {
        self.calls = calls;
        self
    }

    /// Says what reaches the tools and never the model.
    #[must_use]
    pub fn with_context(mut self, context: &'a ToolContext) -> Self {
        self.context = context;
        self
    }

    /// Says how far the conversation is.
    #[must_use]
    pub fn at(mut self, turn: u32, iteration: u32) -> Self {
        (self.turn, self.iteration) = (turn, iteration);
        self
    }

    /// Returns what was said.
    #[must_use]
    pub fn history(&self) -> &'a [Message] {
        self.history
    }

    /// Returns the tools that are there.
    #[must_use]
    pub fn tools(&self) -> &'a ToolSet {
        self.tools
    }

    /// Returns the entities that the conversation met so far.
    #[must_use]
    pub fn entities(&self) -> &'a Entities {
        self.entities
    }

    /// Returns which tool brought which.
    #[must_use]
    pub fn lineage(&self) -> &'a Lineage {
        self.lineage
    }

    /// Returns the calls that were answered, not counting one that is being looked at.
    #[must_use]
    pub fn calls(&self) -> &'a CallLog {
        self.calls
    }

    /// Returns what reaches the tools and never the model; the blackboard is there too.
    #[must_use]
    pub fn context(&self) -> &'a ToolContext {
        self.context
    }

    /// Returns the number of the user's message, the first one being 1.
    #[must_use]
    pub fn turn(&self) -> u32 {
        self.turn
    }

    /// Returns how many inferences this run has made, the first one being 1.
    #[must_use]
    pub fn iteration(&self) -> u32 {
        self.iteration
    }
}
