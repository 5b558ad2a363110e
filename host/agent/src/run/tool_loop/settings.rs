//! The settings of a run.

use serde_json::Value;

use super::ToolLoop;
use toolwit_core::Picture;

impl ToolLoop<'_> {
    /// Adds the tools of roles for this turn.
    pub(crate) fn with_roles(mut self, roles: Vec<String>) -> Self {
        self.roles = roles;
        self
    }

    /// Sets the JSON Schema of the answer.
    pub(crate) fn with_answer_schema(mut self, schema: Value) -> Self {
        self.run.answer_schema = Some(schema);
        self
    }

    /// Adds pictures to the user message.
    pub(crate) fn with_pictures(mut self, pictures: Vec<Picture>) -> Self {
        self.pictures = pictures;
        self
    }

    /// Makes background calls part of the run: an answer of the model is final only when no background call is open.
    pub(crate) fn awaiting_background(mut self) -> Self {
        self.awaits_background = true;
        self
    }
}
