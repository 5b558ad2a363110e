#![allow(clippy::unwrap_used, clippy::panic)]

mod failures;
mod raw;
mod secrecy;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use wiremock::matchers::{body_json, header, method, path};
use wiremock::{Mock, MockServer, ResponseTemplate};

use super::{OpenAi, OpenAiBuilder};
use crate::http::{RetryPolicy, Secret};
use toolwit_agent::model::{ChatModel, ChatOptions, ChatRequest, ChatResponse, FinishReason, ModelError};
use toolwit_core::Message;

/// A policy whose waits take no time, so that only their number counts.
fn at_once() -> RetryPolicy {
    RetryPolicy {
        wait_ms_first: 0,
        wait_ms_max: 0,
        ..RetryPolicy::default()
    }
}

fn client(base_url: &str) -> OpenAiBuilder {
    OpenAi::builder("test-model").base_url(base_url).retry(at_once())
}

async fn ask(model: &OpenAi) -> Result<ChatResponse, ModelError> {
    ask_until(model, &CancellationToken::new()).await
}

async fn ask_until(model: &OpenAi, cancel: &CancellationToken) -> Result<ChatResponse, ModelError> {
    let (messages, options) = ([Message::user("hi")], ChatOptions::default());
    model.chat(ChatRequest::new(&messages, &[], &options, cancel)).await
}

fn answer(text: &str) -> Value {
    json!({"choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]})
}

fn said(text: &str) -> ResponseTemplate {
    ResponseTemplate::new(200).set_body_json(answer(text))
}

/// Answers each request with the next of these, and the last one for ever.
async fn server(responses: Vec<ResponseTemplate>) -> MockServer {
    let server = MockServer::start().await;
    let last = responses.len().saturating_sub(1);
    for (index, response) in responses.into_iter().enumerate() {
        let mock = Mock::given(method("POST")).respond_with(response);
        match index == last {
            true => mock.mount(&server).await,
            false => mock.up_to_n_times(1).mount(&server).await,
        }
    }
    server
}

async fn requests(server: &MockServer) -> usize {
    server.received_requests().await.unwrap().len()
}

// accept: 10
#[tokio::test]
async fn a_request_goes_to_the_endpoint_with_its_key_and_the_answer_comes_back() {
    let server = MockServer::start().await;
    let expected = json!({"model": "test-model", "messages": [{"role": "user", "content": "hi"}], "stream": false});
    Mock::given(method("POST"))
        .and(path("/v1/chat/completions"))
        .and(header("authorization", "Bearer sk-key"))
        .and(header("content-type", "application/json"))
        .and(body_json(expected))
        .respond_with(said("hello"))
        .expect(1)
        .mount(&server)
        .await;
    let model = client(&format!("{}/v1", server.uri()))
        .key(Secret::new("sk-key\n"))
        .build()
        .unwrap();
    let response = ask(&model).await.unwrap();
    assert_eq!(
        (response.content.as_str(), response.finish),
        ("hello", FinishReason::Stop)
    );
    assert_eq!(model.name(), "test-model");
}

#[tokio::test]
async fn without_a_key_no_authorization_is_sent() {
    let server = server(vec![said("hello")]).await;
    ask(&client(&server.uri()).build().unwrap()).await.unwrap();
    let received = server.received_requests().await.unwrap();
    assert!(received[0].headers.get("authorization").is_none());
}
