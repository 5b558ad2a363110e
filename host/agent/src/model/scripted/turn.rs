//! One turn of a script.

use serde_json::Value;

use super::expect::Expectation;
use super::template;
use crate::model::{FinishReason, ModelError, TokenUsage};

/// What a scripted model does in one inference: it calls tools, answers, fails or stays silent.
///
/// Text, tools' names and the strings inside arguments may refer to what was shown, so that a run proves that the data
/// really flowed: `{{result}}` is the newest tool result, `{{result.customer.id}}` a value inside it,
/// `{{results.0.id}}` counts the results since the model last spoke, `{{search_customer.id}}` is the newest result of
/// that tool and `{{prompt}}` the user's last words. Where a key holds a dot, a JSON pointer does: `{{result/a.b/0}}`.
/// An argument that is nothing but a reference takes the value with its type. `\{{` stands for the two brackets.
///
/// ```
/// use serde_json::json;
/// use toolwit_agent::model::{Expectation, TextMatch, ScriptedTurn};
///
/// let turn = ScriptedTurn::call("average_spend", json!({ "customer_id": "{{search_customer.id}}" }))
///     .with_text("One moment.")
///     .with_expectation(Expectation::new().last_result(TextMatch::new().json("/id", "c-123")));
/// # let _ = turn;
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ScriptedTurn {
    pub(super) act: Act,
    pub(super) expectation: Option<Expectation>,
    pub(super) finish: Option<FinishReason>,
    pub(super) usage: Option<TokenUsage>,
}

/// What happens in a turn.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Act {
    /// The model speaks and wants tools called.
    Speak { text: String, calls: Vec<Call> },
    /// The model fails.
    Fail(ModelError),
    /// The model never answers: only cancelling ends the turn.
    Silence,
}

/// A call that the script makes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Call {
    pub(super) tool: String,
    pub(super) arguments: CallArguments,
    pub(super) id: Option<String>,
}

/// The arguments of a call.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum CallArguments {
    /// JSON whose strings may refer to results.
    Json(Value),
    /// Text that is sent as it stands, valid or not.
    Verbatim(String),
}

impl ScriptedTurn {
    /// Calls a tool.
    #[must_use]
    pub fn call(tool: impl Into<String>, arguments: Value) -> Self {
        Self::new(Act::Speak {
            text: String::new(),
            calls: vec![Call::new(tool, arguments)],
        })
    }

    /// Calls a tool with arguments that are sent as they stand, valid or not.
    #[must_use]
    pub fn call_verbatim(tool: impl Into<String>, arguments: impl Into<String>) -> Self {
        Self::new(Act::Speak {
            text: String::new(),
            calls: vec![Call::verbatim(tool, arguments)],
        })
    }

    /// Answers without a call, which ends the conversation's turn.
    #[must_use]
    pub fn answer(text: impl Into<String>) -> Self {
        Self::new(Act::Speak {
            text: text.into(),
            calls: Vec::new(),
        })
    }

    /// Fails, as a provider does.
    #[must_use]
    pub fn fail(error: ModelError) -> Self {
        Self::new(Act::Fail(error))
    }

    /// Never answers; the turn ends when the request is cancelled.
    #[must_use]
    pub fn silence() -> Self {
        Self::new(Act::Silence)
    }

    /// Calls another tool in the same turn. Nothing to a turn that fails or is silent.
    #[must_use]
    pub fn and_call(self, tool: impl Into<String>, arguments: Value) -> Self {
        self.with_call(Call::new(tool, arguments))
    }

    /// Calls another tool in the same turn, with arguments that are sent as they stand.
    #[must_use]
    pub fn and_call_verbatim(self, tool: impl Into<String>, arguments: impl Into<String>) -> Self {
        self.with_call(Call::verbatim(tool, arguments))
    }

    /// Gives the newest call this id, perhaps one that is taken; without it the ids are `call_1`, `call_2`, ….
    #[must_use]
    pub fn with_id(mut self, id: impl Into<String>) -> Self {
        if let Act::Speak { calls, .. } = &mut self.act
            && let Some(call) = calls.last_mut()
        {
            call.id = Some(id.into());
        }
        self
    }

    /// Says something beside its calls.
    #[must_use]
    pub fn with_text(mut self, words: impl Into<String>) -> Self {
        if let Act::Speak { text, .. } = &mut self.act {
            *text = words.into();
        }
        self
    }

    /// Checks what the model was shown before it speaks.
    #[must_use]
    pub fn with_expectation(mut self, expectation: Expectation) -> Self {
        self.expectation = Some(expectation);
        self
    }

    /// Stops for this reason, in place of the one that fits.
    #[must_use]
    pub fn with_finish_reason(mut self, reason: FinishReason) -> Self {
        self.finish = Some(reason);
        self
    }

    /// Reports this use of tokens, in place of a count.
    #[must_use]
    pub fn with_usage(mut self, usage: TokenUsage) -> Self {
        self.usage = Some(usage);
        self
    }

    pub(super) fn new(act: Act) -> Self {
        Self {
            act,
            expectation: None,
            finish: None,
            usage: None,
        }
    }

    fn with_call(mut self, call: Call) -> Self {
        if let Act::Speak { calls, .. } = &mut self.act {
            calls.push(call);
        }
        self
    }

    /// Says why this turn could not be played, or could not fail, whatever the model is shown.
    pub(super) fn flaw(&self) -> Option<String> {
        let act = match &self.act {
            Act::Speak { text, calls } => template::text_flaw(text).or_else(|| calls.iter().find_map(Call::flaw)),
            Act::Fail(_) | Act::Silence => None,
        };
        act.or_else(|| self.expectation.as_ref().and_then(Expectation::flaw))
    }
}

impl Call {
    fn new(tool: impl Into<String>, arguments: Value) -> Self {
        Self {
            tool: tool.into(),
            arguments: CallArguments::Json(arguments),
            id: None,
        }
    }

    fn verbatim(tool: impl Into<String>, arguments: impl Into<String>) -> Self {
        Self {
            tool: tool.into(),
            arguments: CallArguments::Verbatim(arguments.into()),
            id: None,
        }
    }

    pub(super) fn flaw(&self) -> Option<String> {
        let arguments = match &self.arguments {
            CallArguments::Json(value) => template::value_flaw(value),
            CallArguments::Verbatim(_) => None,
        };
        template::text_flaw(&self.tool).or(arguments)
    }
}
