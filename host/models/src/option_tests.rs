//! Tests of the request bodies of each API for the options `reasoning_effort` and `answer_schema`.

#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::anthropic::Messages;
use crate::chat::ChatCompletions;
use crate::client::Dialect;
use crate::client::testing::BLOCK_ISSUER;
use crate::gemini::GenerateContent;
use crate::http::ResponseMode;
use crate::responses::Responses;
use toolwit_agent::model::{ChatOptions, ChatRequest, ReasoningEffort};
use toolwit_core::Message;

fn request_body<D: Dialect>(dialect: &D, model: &str, options: &ChatOptions) -> Value {
    let messages = [Message::user("How warm is it?")];
    let cancel = CancellationToken::new();
    let request = ChatRequest::new(&messages, &[], options, &cancel);
    dialect.body(model, request, BLOCK_ISSUER, ResponseMode::Streaming)
}

fn options(effort: ReasoningEffort) -> ChatOptions {
    ChatOptions {
        max_tokens: Some(32_768),
        reasoning_effort: Some(effort),
        answer_schema: Some(json!({
            "type": "object",
            "properties": {"celsius": {"type": "number", "minimum": -100}},
            "required": ["celsius"],
        })),
        ..ChatOptions::default()
    }
}

#[test]
fn effort_is_sent_in_the_form_of_each_model() {
    let high = options(ReasoningEffort::High);
    assert_eq!(
        request_body(&ChatCompletions::default(), "m", &high)["reasoning_effort"],
        "high"
    );
    assert_eq!(
        request_body(&Responses::default(), "gpt-5", &high)["reasoning"]["effort"],
        "high"
    );
    let anthropic = Messages::default();
    assert_eq!(
        request_body(&anthropic, "claude-opus-4-6", &high)["output_config"]["effort"],
        "high"
    );
    let with_budget = request_body(&anthropic, "claude-sonnet-4-5", &high);
    assert_eq!(
        with_budget["thinking"],
        json!({"type": "enabled", "budget_tokens": 16_384})
    );
    let without_thinking = request_body(&anthropic, "claude-sonnet-4-5", &options(ReasoningEffort::None));
    assert_eq!(without_thinking.get("thinking"), None);
    let gemini = GenerateContent::default();
    let thinking = |model: &str| request_body(&gemini, model, &high)["generationConfig"]["thinkingConfig"].clone();
    assert_eq!(thinking("gemini-3-pro"), json!({"thinkingLevel": "high"}));
    assert_eq!(thinking("gemini-2.5-flash"), json!({"thinkingBudget": 24_576}));
    for model in ["m", "gpt-5"] {
        let default_body = request_body(&ChatCompletions::default(), model, &ChatOptions::default());
        assert_eq!(
            (
                default_body.get("reasoning_effort"),
                default_body.get("response_format")
            ),
            (None, None)
        );
    }
}

#[test]
fn the_thinking_budget_leaves_tokens_for_the_answer() {
    let small_limit = ChatOptions {
        max_tokens: Some(4_096),
        ..options(ReasoningEffort::High)
    };
    let sent = request_body(&Messages::default(), "claude-sonnet-4-5", &small_limit);
    assert_eq!(sent["thinking"]["budget_tokens"], 2_048);
    let tiny_limit = ChatOptions {
        max_tokens: Some(1_000),
        ..options(ReasoningEffort::High)
    };
    assert_eq!(
        request_body(&Messages::default(), "claude-sonnet-4-5", &tiny_limit).get("thinking"),
        None
    );
}

// accept: 5
#[test]
fn the_answer_schema_is_sent_only_if_the_api_and_the_model_support_it() {
    let options = options(ReasoningEffort::Low);
    let responses = request_body(&Responses::default(), "gpt-5", &options);
    assert_eq!(responses["text"]["format"]["strict"], true);
    assert_eq!(responses["text"]["format"]["schema"]["required"], json!(["celsius"]));
    let anthropic = request_body(&Messages::default(), "claude-opus-4-6", &options);
    assert_eq!(anthropic["output_config"]["format"]["type"], "json_schema");
    assert_eq!(
        anthropic["output_config"]["format"]["schema"]["additionalProperties"],
        false
    );
    let earlier_model = request_body(&Messages::default(), "claude-3-5-haiku", &options);
    assert_eq!(
        earlier_model["output_config"].get("format"),
        None,
        "this model refuses the field"
    );
    let gemini = request_body(&GenerateContent::default(), "gemini-3-pro", &options);
    assert_eq!(gemini["generationConfig"]["responseMimeType"], "application/json");
    let chat_completions = request_body(&ChatCompletions::default(), "m", &options);
    assert_eq!(
        chat_completions.get("response_format"),
        None,
        "an unknown server may refuse the field"
    );
}
