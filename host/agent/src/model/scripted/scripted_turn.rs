//! A turn of a script.

use serde_json::Value;

use super::expectation::Expectation;
use super::template;
use crate::model::{FinishReason, ModelError, TokenUsage};

/// The behaviour of a scripted model in one inference: it calls tools, answers, fails or never responds.
///
/// Text, tool names and the strings inside arguments can contain references to values of the request. References let a test
/// prove that data flows from one call to the next.
///
/// | reference | value |
/// |---|---|
/// | `{{prompt}}` | the user's latest message |
/// | `{{result}}` | the latest tool result |
/// | `{{result.customer.id}}` | a value inside the latest tool result |
/// | `{{results.0.id}}` | a value inside the first result since the model's previous response |
/// | `{{search_customer.id}}` | a value inside the latest result of the tool `search_customer` |
/// | `{{result/a.b/0}}` | a value at a JSON pointer, for keys that contain a dot |
///
/// A string in the arguments that consists of one reference becomes the value with its type. `\{{` is a literal `{{`.
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
    pub(super) action: TurnAction,
    pub(super) expectation: Option<Expectation>,
    pub(super) finish: Option<FinishReason>,
    pub(super) usage: Option<TokenUsage>,
}

/// The action of a turn.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum TurnAction {
    /// The model responds with text and calls.
    Respond { text: String, calls: Vec<ScriptedCall> },
    /// The model fails.
    Fail(ModelError),
    /// The model never responds. Only cancellation ends the turn.
    Silence,
}

/// A call of a scripted turn.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ScriptedCall {
    pub(super) tool: String,
    pub(super) arguments: CallArguments,
    pub(super) id: Option<String>,
}

/// The arguments of a call.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum CallArguments {
    /// JSON whose strings can contain references.
    Json(Value),
    /// Text that is sent unchanged, even if it is invalid JSON.
    Verbatim(String),
}

impl ScriptedTurn {
    /// Creates a turn that calls a tool.
    #[must_use]
    pub fn call(tool: impl Into<String>, arguments: Value) -> Self {
        Self::new(TurnAction::Respond {
            text: String::new(),
            calls: vec![ScriptedCall::new(tool, arguments)],
        })
    }

    /// Creates a turn that calls a tool with arguments that are sent unchanged, even if they are invalid JSON.
    #[must_use]
    pub fn call_verbatim(tool: impl Into<String>, arguments: impl Into<String>) -> Self {
        Self::new(TurnAction::Respond {
            text: String::new(),
            calls: vec![ScriptedCall::verbatim(tool, arguments)],
        })
    }

    /// Creates a turn that answers without a call, which ends the run.
    #[must_use]
    pub fn answer(text: impl Into<String>) -> Self {
        Self::new(TurnAction::Respond {
            text: text.into(),
            calls: Vec::new(),
        })
    }

    /// Creates a turn that fails with an error, as a provider would.
    #[must_use]
    pub fn fail(error: ModelError) -> Self {
        Self::new(TurnAction::Fail(error))
    }

    /// Creates a turn that never responds. It ends when the request is cancelled.
    #[must_use]
    pub fn silence() -> Self {
        Self::new(TurnAction::Silence)
    }

    /// Adds a call to the turn. This has no effect on a turn that fails or never responds.
    #[must_use]
    pub fn and_call(self, tool: impl Into<String>, arguments: Value) -> Self {
        self.with_call(ScriptedCall::new(tool, arguments))
    }

    /// Adds a call with arguments that are sent unchanged, even if they are invalid JSON. This has no effect on a turn that
    /// fails or never responds.
    #[must_use]
    pub fn and_call_verbatim(self, tool: impl Into<String>, arguments: impl Into<String>) -> Self {
        self.with_call(ScriptedCall::verbatim(tool, arguments))
    }

    /// Sets the id of the call that was added last. The id may be a duplicate. By default, the calls of a script have the ids
    /// `call_1`, `call_2` and so on.
    #[must_use]
    pub fn with_id(mut self, id: impl Into<String>) -> Self {
        if let TurnAction::Respond { calls, .. } = &mut self.action
            && let Some(call) = calls.last_mut()
        {
            call.id = Some(id.into());
        }
        self
    }

    /// Sets the text of a turn that calls tools or answers.
    #[must_use]
    pub fn with_text(mut self, content: impl Into<String>) -> Self {
        if let TurnAction::Respond { text, .. } = &mut self.action {
            *text = content.into();
        }
        self
    }

    /// Sets the expectation on the request, which is checked before the turn is played.
    #[must_use]
    pub fn with_expectation(mut self, expectation: Expectation) -> Self {
        self.expectation = Some(expectation);
        self
    }

    /// Sets the finish reason. The default is `ToolCalls` for a turn with calls, and `Stop` for a turn without calls.
    #[must_use]
    pub fn with_finish_reason(mut self, reason: FinishReason) -> Self {
        self.finish = Some(reason);
        self
    }

    /// Sets the token usage. By default, [`ScriptedModel`](super::ScriptedModel) estimates it.
    #[must_use]
    pub fn with_usage(mut self, usage: TokenUsage) -> Self {
        self.usage = Some(usage);
        self
    }

    pub(super) fn new(action: TurnAction) -> Self {
        Self {
            action,
            expectation: None,
            finish: None,
            usage: None,
        }
    }

    fn with_call(mut self, call: ScriptedCall) -> Self {
        if let TurnAction::Respond { calls, .. } = &mut self.action {
            calls.push(call);
        }
        self
    }

    /// Returns the reason why a reference of the turn is malformed, or why its expectation can never fail or can never hold.
    /// Returns `None` if the turn is valid.
    pub(super) fn flaw(&self) -> Option<String> {
        let action_flaw = match &self.action {
            TurnAction::Respond { text, calls } => {
                template::text_flaw(text).or_else(|| calls.iter().find_map(ScriptedCall::flaw))
            }
            TurnAction::Fail(_) | TurnAction::Silence => None,
        };
        action_flaw.or_else(|| self.expectation.as_ref().and_then(Expectation::flaw))
    }
}

impl ScriptedCall {
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

    /// Returns the reason why a reference in the call is malformed, or `None` if the call is valid.
    fn flaw(&self) -> Option<String> {
        let arguments_flaw = match &self.arguments {
            CallArguments::Json(value) => template::value_flaw(value),
            CallArguments::Verbatim(_) => None,
        };
        template::text_flaw(&self.tool).or(arguments_flaw)
    }
}
