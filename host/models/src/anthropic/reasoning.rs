//! The request fields for thinking and effort, which differ between generations of models.

use serde_json::{Value, json};

use toolwit_agent::model::{ChatOptions, ReasoningEffort, ToolChoice};

/// Substrings of the names of models that think within a budget of tokens. Later models receive an effort and choose the
/// amount of thinking themselves. `opus-4-2` and `sonnet-4-2` match names with a date, such as
/// `claude-opus-4-20250514`.
const BUDGET_MODELS: [&str; 9] = [
    "claude-3",
    "haiku-4-5",
    "opus-4-0",
    "opus-4-1",
    "opus-4-2",
    "opus-4-5",
    "sonnet-4-0",
    "sonnet-4-2",
    "sonnet-4-5",
];

/// Substrings of the names of models that refuse a schema for the answer.
const MODELS_WITHOUT_SCHEMA: [&str; 6] = [
    "claude-3",
    "claude-2",
    "opus-4-0",
    "opus-4-2",
    "sonnet-4-0",
    "sonnet-4-2",
];

/// The smallest budget for thinking that the API accepts, in tokens.
const BUDGET_MIN: u32 = 1_024;

/// The values of the fields of a request that control reasoning; `None` for a field that is not sent.
#[derive(Debug, Default)]
pub(super) struct ReasoningFields {
    pub(super) thinking: Option<Value>,
    pub(super) effort: Option<&'static str>,
}

impl ReasoningFields {
    /// Returns the fields for a model. No field is sent if the options have no reasoning effort.
    pub(super) fn new(model: &str, options: &ChatOptions, max_tokens: u32) -> Self {
        let Some(effort) = options.reasoning_effort else {
            return Self::default();
        };
        // The API refuses thinking together with a required call.
        let is_thinking = effort != ReasoningEffort::None && options.tool_choice != ToolChoice::Required;
        let has_budget = BUDGET_MODELS.iter().any(|name| model.contains(name));
        if has_budget {
            let thinking = thinking_budget(effort, max_tokens).filter(|_| is_thinking);
            let thinking = thinking.map(|tokens| json!({"type": "enabled", "budget_tokens": tokens}));
            return Self { thinking, effort: None };
        }
        Self {
            thinking: is_thinking.then(|| json!({"type": "adaptive"})),
            effort: Some(match effort {
                ReasoningEffort::None | ReasoningEffort::Minimal | ReasoningEffort::Low => "low",
                ReasoningEffort::Medium => "medium",
                ReasoningEffort::High => "high",
            }),
        }
    }

    pub(super) fn has_thinking(&self) -> bool {
        self.thinking.is_some()
    }
}

/// Returns the number of tokens for thinking: at most half of the tokens of the response. Returns `None` if this half
/// is below the smallest budget, or for [`ReasoningEffort::None`].
fn thinking_budget(effort: ReasoningEffort, max_tokens: u32) -> Option<u32> {
    let budget = match effort {
        ReasoningEffort::None => return None,
        ReasoningEffort::Minimal => BUDGET_MIN,
        ReasoningEffort::Low => 2_048,
        ReasoningEffort::Medium => 8_192,
        ReasoningEffort::High => 16_384,
    };
    let budget = budget.min(max_tokens / 2);
    (budget >= BUDGET_MIN).then_some(budget)
}

/// Returns whether the model accepts a schema for the answer.
pub(super) fn accepts_answer_schema(model: &str) -> bool {
    !MODELS_WITHOUT_SCHEMA.iter().any(|name| model.contains(name))
}
