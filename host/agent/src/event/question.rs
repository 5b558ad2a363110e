//! Questions of tools to a person, in events.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use toolwit_core::{Answer, Question, Unanswered};

/// A question of a plugin to the person who uses the host, in the form that traces and journals record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RecordedQuestion {
    /// The id of the model's call in which the question is asked.
    pub id: String,
    /// The number of the question in the model's call, from 1.
    pub number: u32,
    /// The name of the plugin that asks.
    pub plugin: String,
    /// The key with which the plugin identifies the question.
    pub key: String,
    /// The text of the question.
    pub message: String,
    /// The JSON Schema of the answer.
    pub schema: Value,
}

impl RecordedQuestion {
    /// Records a question.
    pub(crate) fn new(id: &str, number: u32, question: &Question) -> Self {
        Self {
            id: id.to_owned(),
            number,
            plugin: question.plugin.clone(),
            key: question.key.clone(),
            message: question.form.message().to_owned(),
            schema: question.form.schema(),
        }
    }
}

/// The answered questions of a call that an earlier process began, by the numbers of the questions.
pub(crate) type EarlierAnswers = HashMap<u32, (RecordedQuestion, Answer)>;

/// The answer to a question, in the form that traces and journals record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RecordedAnswer {
    /// The id of the model's call in which the question was asked.
    pub id: String,
    /// The number of the question in the model's call.
    pub number: u32,
    /// The answer; `None` if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
    /// The reason why there is no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl RecordedAnswer {
    /// Records the answer to a question.
    pub(crate) fn new(id: &str, number: u32, answered: &Result<Answer, Unanswered>) -> Self {
        Self {
            id: id.to_owned(),
            number,
            answer: answered.as_ref().ok().cloned(),
            reason: match answered {
                Err(Unanswered::Unavailable(reason)) => Some(reason.clone()),
                _ => None,
            },
        }
    }
}
