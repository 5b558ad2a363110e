//! The settings of a conversation's context: output, blackboard and the person who answers questions.

use std::sync::Arc;

use super::builder::ConversationBuilder;
use toolwit_core::{Blackboard, OutputSink, Respondent, ToolContext};

impl ConversationBuilder {
    /// Sets the context for tools, such as the tenant, the channel and the token that cancels all turns. The model does not
    /// receive it. The values of a turn take precedence. The context replaces an [`output`](Self::output), a
    /// [`blackboard`](Self::blackboard) and a [`respondent`](Self::respondent) that were set before.
    #[must_use]
    pub fn context(mut self, context: ToolContext) -> Self {
        self.context = context;
        self
    }

    /// Sets the output for messages to the user.
    #[must_use]
    pub fn output(mut self, output: Arc<dyn OutputSink>) -> Self {
        self.context = self.context.with_output(output);
        self
    }

    /// Sets the person or service that answers the questions of plugins. Without one, a question is refused at once.
    #[must_use]
    pub fn respondent(mut self, respondent: Arc<dyn Respondent>) -> Self {
        self.context = self.context.with_respondent(respondent);
        self
    }

    /// Sets the blackboard that the tools share, including plugins. The default is an empty
    /// [`MemoryBlackboard`](toolwit_core::MemoryBlackboard).
    #[must_use]
    pub fn blackboard(mut self, blackboard: Arc<dyn Blackboard>) -> Self {
        self.context = self.context.with_blackboard(blackboard);
        self
    }
}
