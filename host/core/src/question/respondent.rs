//! The interface to the people and services that answer the questions of tools.

use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::form::Form;
use crate::{Arguments, ToolContext};

/// A question of a plugin or another tool, with the form that the person fills in.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Question {
    /// The name of the plugin that asks. A display of the question must show it.
    pub plugin: String,
    /// The key of the question, unique in the call: ASCII letters, digits, `-` and `_`. A call that runs again asks its questions
    /// under the same keys.
    pub key: String,
    /// The form.
    pub form: Form,
}

impl Question {
    /// Creates a question.
    #[must_use]
    pub fn new(plugin: impl Into<String>, key: impl Into<String>, form: Form) -> Self {
        Self {
            plugin: plugin.into(),
            key: key.into(),
            form,
        }
    }
}

/// The answer of a person to a [`Question`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "action", content = "content", rename_all = "kebab-case")]
pub enum Answer {
    /// The person filled in the form. The values match it.
    Accepted(Arguments),
    /// The person refused to answer.
    Declined,
    /// The person closed the form without a decision.
    Cancelled,
}

/// The reason why a [`Question`] has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unanswered {
    /// No person can be asked, or no valid answer arrived. The text is for the author of the tool and for the model.
    Unavailable(String),
    /// The person is asked after the end of the call. The caller then repeats the call with the answer. The call must end at
    /// once, without any further effect.
    CallRepeats,
}

/// A person at a terminal, the user of an MCP client or a service that answers the questions of tools.
///
/// The context of a call has the respondent, if there is one: see [`ToolContext::with_respondent`]. Without a respondent, the
/// host refuses the questions of plugins at once.
#[async_trait]
pub trait Respondent: Send + Sync {
    /// Shows a form to the person, and waits for the answer. Dropping the future withdraws the question.
    ///
    /// # Errors
    /// The reason why the question has no answer.
    async fn answer(&self, question: &Question, context: &ToolContext) -> Result<Answer, Unanswered>;

    /// Returns whether a question in this call may end the call, so that it runs again from its start with the answer. By
    /// default, no question does.
    fn repeats_calls(&self, _context: &ToolContext) -> bool {
        false
    }
}

impl ToolContext {
    /// Sets the person or service that answers the questions of tools.
    #[must_use]
    pub fn with_respondent(self, respondent: Arc<dyn Respondent>) -> Self {
        self.with_extension(respondent)
    }

    /// Removes the respondent, so that tools cannot ask.
    #[must_use]
    pub fn without_respondent(self) -> Self {
        self.without_extension::<Arc<dyn Respondent>>()
    }

    /// Returns the respondent, if there is one.
    #[must_use]
    pub fn respondent(&self) -> Option<&Arc<dyn Respondent>> {
        self.extension::<Arc<dyn Respondent>>()
    }
}
