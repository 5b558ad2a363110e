#![allow(clippy::unwrap_used, clippy::panic)]

use std::sync::Arc;

use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::model::{
    ChatModel, ChatOptions, ChatRequest, ChatResponse, DeclaredTool, FinishReason, ModelError, TokenUsage,
};
use toolwit_core::{Message, ToolDefinition, ToolId, ToolName};

fn declared(name: &str) -> DeclaredTool {
    DeclaredTool {
        name: ToolName::parse(name).unwrap(),
        definition: Arc::new(ToolDefinition::new(ToolId::native(name), name, "", json!({}))),
    }
}

async fn ask(model: &ScriptedModel, messages: &[Message], tools: &[DeclaredTool]) -> Result<ChatResponse, ModelError> {
    let (options, cancel) = (ChatOptions::default(), CancellationToken::new());
    model.chat(ChatRequest::new(messages, tools, &options, &cancel)).await
}

fn refusal(result: Result<ChatResponse, ModelError>) -> String {
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
        let said = ask(&model, &history, &[]).await.unwrap();
        assert_eq!(said.finish, FinishReason::ToolCalls);
        let call = said.tool_calls[0].clone();
        history.push(Message::assistant(said.content, said.tool_calls));
        history.push(Message::tool(&call, result, false));
    }
    let calls: Vec<_> = history.iter().flat_map(Message::tool_calls).cloned().collect();
    assert_eq!(
        (calls[0].id.as_str(), calls[0].arguments.as_str()),
        ("call_1", r#"{"name":"John"}"#)
    );
    assert_eq!((calls[1].id.as_str(), calls[1].name.as_str()), ("call_2", "c_9_spend"));
    assert_eq!(calls[1].arguments, r#"{"id":"c-9","n":7}"#);
    let answer = ask(&model, &history, &[]).await.unwrap();
    assert_eq!(
        (answer.content.as_str(), answer.finish),
        ("c-9 spends 12.5", FinishReason::Stop)
    );
    assert_eq!(model.finish(), Ok(()));
    assert_eq!(model.requests().len(), 3);
}

#[tokio::test]
async fn what_was_not_expected_is_told_with_turn_and_nearest_name() {
    let expected = Expectation::new()
        .tools(["search_customer"])
        .no_tools(["delete_all"])
        .last_result(TextMatch::new().contains("c-1"));
    let model = ScriptedModel::new()
        .with_name("spend")
        .turn(ScriptedTurn::answer("never").with_expectation(expected))
        .answer("end");
    let tools = [declared("search_customers"), declared("delete_all")];
    let message = refusal(ask(&model, &[Message::user("hi")], &tools).await);
    let parts = [
        "the script `spend` does not fit: turn 1 of 2: ",
        "expected the tool `search_customer`, but declared are `search_customers`, `delete_all`; the nearest is `search_customers`",
        "expected no tool `delete_all`, but it is declared",
        "expected a tool result, but there is none",
    ];
    for part in parts {
        assert!(message.contains(part), "{message}");
    }
    assert_eq!(model.turns_left(), 2, "a turn that was not played stays");
}

#[tokio::test]
async fn turns_after_the_end_and_turns_left_over_are_errors() {
    let model = ScriptedModel::new().answer("one").answer("two");
    let history = [Message::user("hi")];
    ask(&model, &history, &[]).await.unwrap();
    assert!(model.finish().unwrap_err().to_string().contains("after 1 of 2 turns"));
    ask(&model, &history, &[]).await.unwrap();
    assert!(refusal(ask(&model, &history, &[]).await).contains("all 2 turns were played"));
}

#[tokio::test]
async fn a_vacuous_expectation_built_in_rust_is_refused_too() {
    let model = ScriptedModel::new().turn(ScriptedTurn::answer("x").with_expectation(Expectation::new()));
    assert!(refusal(ask(&model, &[Message::user("hi")], &[]).await).contains("never fail"));
}

// attack: F1, attack: F9
#[tokio::test]
async fn hostile_turns_say_what_is_written() {
    let model = ScriptedModel::new().turn(
        ScriptedTurn::call_verbatim("f", "{\"a\": {{result}}")
            .with_id("same")
            .and_call("f", json!({}))
            .with_id("same")
            .with_finish_reason(FinishReason::Length),
    );
    let said = ask(&model, &[Message::user("hi")], &[]).await.unwrap();
    assert_eq!(said.tool_calls[0].arguments, "{\"a\": {{result}}");
    assert!(said.tool_calls.iter().all(|call| call.id == "same"));
    assert_eq!(said.finish, FinishReason::Length);
}

// accept: 133
#[tokio::test]
async fn failing_and_silent_turns_end_as_their_errors() {
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
    assert_eq!(ask(&model, &history, &[]).await, Err(refused));
    let (options, cancel) = (ChatOptions::default(), CancellationToken::new());
    let request = ChatRequest::new(&history, &[], &options, &cancel);
    let silent = async { model.chat(request).await };
    let (said, ()) = tokio::join!(silent, async { cancel.cancel() });
    assert_eq!(said, Err(ModelError::Cancelled));
    assert_eq!(
        model.chat(request).await,
        Err(ModelError::Cancelled),
        "a cancelled request plays no turn"
    );
    assert_eq!(model.finish(), Ok(()));
}

#[tokio::test]
async fn four_bytes_are_a_token_unless_the_turn_says_otherwise() {
    let model = ScriptedModel::new()
        .answer("12345")
        .turn(ScriptedTurn::answer("x").with_usage(TokenUsage::new(100, 50, 7)));
    let (history, tools) = ([Message::user("123")], [declared("f")]);
    // 3 bytes of prompt, 1 of name, 2 of schema; 5 of answer.
    let said = ask(&model, &history, &tools).await.unwrap();
    assert_eq!(said.usage, TokenUsage::new(2, 0, 2));
    let said = ask(&model, &history, &tools).await.unwrap();
    assert_eq!(said.usage, TokenUsage::new(100, 50, 7));
}
