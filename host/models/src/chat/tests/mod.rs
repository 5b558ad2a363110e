#![allow(clippy::unwrap_used, clippy::panic)]

mod documents;
mod failures;
mod raw;
mod requests;
mod secrecy;
mod streams;
mod variations;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use wiremock::matchers::{body_json, header, method, path};
use wiremock::{Mock, MockServer, ResponseTemplate};

use super::{ChatCompletions, OpenAi, OpenAiBuilder};
use crate::http::{KeyHeader, RetryPolicy, Secret};
use toolwit_agent::model::{ChatModel, ChatOptions, ChatRequest, ChatResponse, FinishReason, ModelError};
use toolwit_core::Message;

/// Returns a retry policy without waits.
fn without_waits() -> RetryPolicy {
    RetryPolicy {
        wait_ms_first: 0,
        wait_ms_max: 0,
        ..RetryPolicy::default()
    }
}

fn client(base_url: &str) -> OpenAiBuilder {
    OpenAi::builder("test-model").base_url(base_url).retry(without_waits())
}

async fn infer(model: &OpenAi) -> Result<ChatResponse, ModelError> {
    infer_until(model, &CancellationToken::new()).await
}

/// Sends a request that is cancelled when `cancel` is cancelled.
async fn infer_until(model: &OpenAi, cancel: &CancellationToken) -> Result<ChatResponse, ModelError> {
    let (messages, options) = ([Message::user("hi")], ChatOptions::default());
    model.chat(ChatRequest::new(&messages, &[], &options, cancel)).await
}

/// Returns the body of a complete response with this text.
fn answer(text: &str) -> Value {
    json!({"choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]})
}

fn response(text: &str) -> ResponseTemplate {
    ResponseTemplate::new(200).set_body_json(answer(text))
}

/// Starts a server that returns these responses in order and repeats the last one.
async fn server(responses: Vec<ResponseTemplate>) -> MockServer {
    let server = MockServer::start().await;
    let last = responses.len().saturating_sub(1);
    for (index, response) in responses.into_iter().enumerate() {
        let mock = Mock::given(method("POST")).respond_with(response);
        if index == last {
            mock.mount(&server).await;
        } else {
            mock.up_to_n_times(1).mount(&server).await;
        }
    }
    server
}

/// Returns the number of requests that the server received.
async fn request_count(server: &MockServer) -> usize {
    server.received_requests().await.unwrap().len()
}

// accept: 10
#[tokio::test]
async fn a_request_is_sent_to_the_endpoint_with_its_key_and_its_response_is_returned() {
    let server = MockServer::start().await;
    let expected = json!({
        "model": "test-model",
        "messages": [{"role": "user", "content": "hi"}],
        "max_tokens": 8192,
        "stream": true,
        "stream_options": {"include_usage": true},
    });
    Mock::given(method("POST"))
        .and(path("/v1/chat/completions"))
        .and(header("authorization", "Bearer sk-key"))
        .and(header("content-type", "application/json"))
        .and(body_json(expected))
        .respond_with(response("hello"))
        .expect(1)
        .mount(&server)
        .await;
    let model = client(&format!("{}/v1", server.uri()))
        .key(Secret::new("sk-key\n"))
        .build()
        .unwrap();
    let response = infer(&model).await.unwrap();
    assert_eq!(
        (response.content.as_str(), response.finish),
        ("hello", FinishReason::Stop)
    );
    assert_eq!(model.name(), "test-model");
}

#[tokio::test]
async fn the_key_is_read_before_each_request() {
    let server = server(vec![response("hello")]).await;
    let keys = std::sync::Mutex::new(vec!["third", "second", "first"]);
    let model = client(&server.uri())
        .key_source(move || keys.lock().unwrap().pop().map(Secret::new))
        .key_header(KeyHeader::Named("api-key"))
        .build();
    // `build` has read the first key to check that a key exists, and the second key to check that it is valid.
    let model = model.unwrap();
    infer(&model).await.unwrap();
    let received = server.received_requests().await.unwrap();
    assert_eq!(received[0].headers.get("api-key").unwrap(), "third");
    assert!(received[0].headers.get("authorization").is_none());
}

#[tokio::test]
async fn no_authorization_header_is_sent_without_a_key() {
    let server = server(vec![response("hello")]).await;
    infer(&client(&server.uri()).build().unwrap()).await.unwrap();
    let received = server.received_requests().await.unwrap();
    assert!(received[0].headers.get("authorization").is_none());
}
