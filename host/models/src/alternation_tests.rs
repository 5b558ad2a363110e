//! Requests whose history has messages without an answer between them.

#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use wiremock::matchers::method;
use wiremock::{Mock, MockServer, ResponseTemplate};

use crate::{Anthropic, Gemini, OpenAi, OpenAiResponses, RetryPolicy};
use toolwit_agent::model::{ChatModel, ChatOptions, ChatRequest};
use toolwit_core::{Message, ToolCall};

/// Returns the body that a model sends to a server for these messages.
async fn sent_body<M: ChatModel>(connect: impl Fn(&str) -> M, messages: &[Message]) -> Value {
    let server = MockServer::start().await;
    Mock::given(method("POST"))
        .respond_with(ResponseTemplate::new(400))
        .mount(&server)
        .await;
    let (options, cancel) = (ChatOptions::default(), CancellationToken::new());
    let request = ChatRequest::new(messages, &[], &options, &cancel);
    connect(&server.uri()).chat(request).await.unwrap_err();
    server.received_requests().await.unwrap()[0].body_json().unwrap()
}

/// Returns the roles of the messages in a body, under this key.
fn roles(body: &Value, key: &str) -> Vec<String> {
    let messages = body[key].as_array().unwrap().iter();
    messages
        .map(|message| message["role"].as_str().unwrap_or("other").to_owned())
        .collect()
}

// accept: 9
#[tokio::test]
async fn the_user_and_the_model_take_turns_in_the_requests_of_every_api() {
    let messages = [
        Message::system("Be brief."),
        Message::user("one"),
        Message::user("two"),
        Message::assistant("yes", Vec::new()),
        Message::user("three"),
    ];
    let retry = || RetryPolicy {
        wait_ms_first: 0,
        wait_ms_max: 0,
        ..RetryPolicy::default()
    };
    let joined = "one\n\ntwo";
    let chat = |url: &str| OpenAi::builder("m").base_url(url).retry(retry()).build().unwrap();
    let body = sent_body(chat, &messages).await;
    assert_eq!(roles(&body, "messages"), ["system", "user", "assistant", "user"]);
    assert_eq!(body["messages"][1]["content"], joined);
    let anthropic = |url: &str| Anthropic::builder("m").base_url(url).retry(retry()).build().unwrap();
    let body = sent_body(anthropic, &messages).await;
    assert_eq!(roles(&body, "messages"), ["user", "assistant", "user"]);
    assert_eq!(body["messages"][0]["content"][0]["text"], joined);
    let gemini = |url: &str| Gemini::builder("m").base_url(url).retry(retry()).build().unwrap();
    let body = sent_body(gemini, &messages).await;
    assert_eq!(roles(&body, "contents"), ["user", "model", "user"]);
    assert_eq!(body["contents"][0]["parts"], json!([{"text": joined}]));
    let responses = |url: &str| {
        OpenAiResponses::builder("m")
            .base_url(url)
            .retry(retry())
            .build()
            .unwrap()
    };
    let body = sent_body(responses, &messages).await;
    assert_eq!(
        body["input"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|item| item["role"] == "user")
            .count(),
        2
    );
}

// accept: 9
#[tokio::test]
async fn a_message_of_the_model_separates_a_result_from_the_next_message_of_the_user() {
    let call = ToolCall {
        id: "call_1".to_owned(),
        name: "look".to_owned(),
        arguments: "{}".to_owned(),
    };
    let messages = [
        Message::user("one"),
        Message::assistant("", vec![call.clone()]),
        Message::tool(&call, "cancelled", true),
        Message::user("two"),
    ];
    let chat = |url: &str| OpenAi::builder("m").base_url(url).build().unwrap();
    let body = sent_body(chat, &messages).await;
    assert_eq!(
        roles(&body, "messages"),
        ["user", "assistant", "tool", "assistant", "user"]
    );
}
