#![allow(clippy::unwrap_used, clippy::panic)]

use std::sync::Arc;

use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::model::{
    ChatModel, ChatOptions, ChatRequest, ChatResponse, DeclaredTool, FinishReason, ModelError, TokenUsage,
};
use toolwit_core::{Message, ToolDefinition, ToolId, ToolName};

fn declared_tool(name: &str) -> DeclaredTool {
    DeclaredTool {
        name: ToolName::parse(name).unwrap(),
        definition: Arc::new(ToolDefinition::new(ToolId::native(name), name, "", json!({}))),
    }
}

async fn infer(
    model: &ScriptedModel,
    messages: &[Message],
    tools: &[DeclaredTool],
) -> Result<ChatResponse, ModelError> {
    let (options, cancel) = (ChatOptions::default(), CancellationToken::new());
    model.chat(ChatRequest::new(messages, tools, &options, &cancel)).await
}

fn script_error(result: Result<ChatResponse, ModelError>) -> String {
    match result {
        Err(ModelError::Script { message }) => message,
        other => panic!("{other:?}"),
    }
}

// accept: 10, accept: 126
#[tokio::test]
async fn values_flow_from_results_into_calls_and_answers() {
    let model = ScriptedModel::new()
        .turn(ScriptedTurn::call("search", json!({"name": "{{prompt}}"})).with_text("One moment."))
        .call(
            "{{result.available_tools.0}}",
            json!({"id": "{{search.id}}", "n": "{{search.n}}"}),
        )
        .answer("{{search.id}} spends {{result.amount}}");
    let mut history = vec![Message::user("John")];
    for result in [
        r#"{"id": "c-9", "n": 7, "available_tools": ["c_9_spend"]}"#,
        r#"{"amount": 12.5}"#,
    ] {
        let response = infer(&model, &history, &[]).await.unwrap();
        assert_eq!(response.finish, FinishReason::ToolCalls);
        let call = response.tool_calls[0].clone();
        history.push(Message::assistant(response.content, response.tool_calls));
        history.push(Message::tool(&call, result, false));
    }
    let calls: Vec<_> = history.iter().flat_map(Message::tool_calls).cloned().collect();
    assert_eq!(
        (calls[0].id.as_str(), calls[0].arguments.as_str()),
        ("call_1", r#"{"name":"John"}"#)
    );
    assert_eq!((calls[1].id.as_str(), calls[1].name.as_str()), ("call_2", "c_9_spend"));
    assert_eq!(calls[1].arguments, r#"{"id":"c-9","n":7}"#);
    let answer = infer(&model, &history, &[]).await.unwrap();
    assert_eq!(
        (answer.content.as_str(), answer.finish),
        ("c-9 spends 12.5", FinishReason::Stop)
    );
    assert_eq!(model.end_use(), Ok(()));
    assert_eq!(model.requests().len(), 3);
}

#[tokio::test]
async fn a_failed_expectation_is_reported_with_its_turn_and_the_nearest_name() {
    let expected = Expectation::new()
        .tools(["search_customer"])
        .no_tools(["delete_all"])
        .last_result(TextMatch::new().contains("c-1"));
    let model = ScriptedModel::new()
        .with_name("spend")
        .turn(ScriptedTurn::answer("never").with_expectation(expected))
        .answer("end");
    let tools = [declared_tool("search_customers"), declared_tool("delete_all")];
    let message = script_error(infer(&model, &[Message::user("hi")], &tools).await);
    let expected_texts = [
        "the script `spend` does not match: turn 1 of 2: ",
        "expected the tool `search_customer`, but the declared tools are `search_customers`, `delete_all`; the most similar is `search_customers`",
        "expected no tool `delete_all`, but it is declared",
        "expected a tool result, but there is none",
    ];
    for text in expected_texts {
        assert!(message.contains(text), "{message}");
    }
    assert_eq!(model.turns_left(), 2, "a turn that was not played remains");
}

#[tokio::test]
async fn requests_after_the_last_turn_and_unplayed_turns_are_errors() {
    let model = ScriptedModel::new().answer("one").answer("two");
    let history = [Message::user("hi")];
    infer(&model, &history, &[]).await.unwrap();
    assert!(model.end_use().unwrap_err().to_string().contains("after 1 of 2 turns"));
    infer(&model, &history, &[]).await.unwrap();
    assert!(script_error(infer(&model, &history, &[]).await).contains("all 2 turns were played"));
}

#[tokio::test]
async fn an_expectation_that_can_never_fail_is_refused_when_its_turn_would_be_played() {
    let model = ScriptedModel::new().turn(ScriptedTurn::answer("x").with_expectation(Expectation::new()));
    assert!(script_error(infer(&model, &[Message::user("hi")], &[]).await).contains("never fail"));
}

// attack: F1, attack: F9
#[tokio::test]
async fn hostile_turns_are_sent_unchanged() {
    let model = ScriptedModel::new().turn(
        ScriptedTurn::call_verbatim("f", "{\"a\": {{result}}")
            .with_id("same")
            .and_call("f", json!({}))
            .with_id("same")
            .with_finish_reason(FinishReason::Length),
    );
    let response = infer(&model, &[Message::user("hi")], &[]).await.unwrap();
    assert_eq!(response.tool_calls[0].arguments, "{\"a\": {{result}}");
    assert!(response.tool_calls.iter().all(|call| call.id == "same"));
    assert_eq!(response.finish, FinishReason::Length);
}

// accept: 133
#[tokio::test]
async fn a_failing_turn_ends_with_its_error_and_a_silent_turn_when_cancelled() {
    let refused = ModelError::Refused {
        status: 401,
        message: "no".into(),
    };
    let model = Arc::new(
        ScriptedModel::new()
            .turn(ScriptedTurn::fail(refused.clone()))
            .turn(ScriptedTurn::silence()),
    );
    let history = [Message::user("hi")];
    assert_eq!(infer(&model, &history, &[]).await, Err(refused));
    let (options, cancel) = (ChatOptions::default(), CancellationToken::new());
    let request = ChatRequest::new(&history, &[], &options, &cancel);
    let silent = async { model.chat(request).await };
    let (response, ()) = tokio::join!(silent, async { cancel.cancel() });
    assert_eq!(response, Err(ModelError::Cancelled));
    assert_eq!(
        model.chat(request).await,
        Err(ModelError::Cancelled),
        "a cancelled request plays no turn"
    );
    assert_eq!(model.end_use(), Ok(()));
}

#[tokio::test]
async fn four_bytes_count_as_a_token_unless_the_turn_sets_its_usage() {
    let model = ScriptedModel::new()
        .answer("12345")
        .turn(ScriptedTurn::answer("x").with_usage(TokenUsage::new(100, 50, 7)));
    let (history, tools) = ([Message::user("123")], [declared_tool("f")]);
    // The input has 3 bytes of prompt, 1 of tool name and 2 of schema. The output has 5 bytes.
    let response = infer(&model, &history, &tools).await.unwrap();
    assert_eq!(response.usage, TokenUsage::new(2, 0, 2));
    let response = infer(&model, &history, &tools).await.unwrap();
    assert_eq!(response.usage, TokenUsage::new(100, 50, 7));
}
