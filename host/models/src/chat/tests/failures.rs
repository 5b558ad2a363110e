//! Providers that fail, do not answer, or send malformed responses.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::raw::{RawServer, ServerAction};
use super::*;
use toolwit_agent::Conversation;
use toolwit_core::{NativeTool, ToolResult};

/// Returns an error response with this status.
fn failure(status: u16) -> ResponseTemplate {
    ResponseTemplate::new(status).set_body_json(json!({"error": {"message": "why", "type": "x"}}))
}

// attack: F5
#[tokio::test]
async fn transient_failures_are_retried_a_limited_number_of_times() {
    for status in [408, 409, 429, 500, 503, 529] {
        let server = server(vec![failure(status)]).await;
        let error = infer(&client(&server.uri()).build().unwrap()).await.unwrap_err();
        let expected = ModelError::Unavailable {
            attempts: 4,
            message: format!("status {status}: why"),
            status: Some(status),
        };
        assert_eq!((error, request_count(&server).await), (expected, 4));
    }
    let server = server(vec![failure(503), failure(429), response("at last")]).await;
    assert_eq!(
        infer(&client(&server.uri()).build().unwrap()).await.unwrap().content,
        "at last"
    );
    assert_eq!(request_count(&server).await, 3);
}

// attack: F5
#[tokio::test]
async fn permanent_failures_are_not_retried() {
    for status in [400, 401, 403, 404, 422] {
        let server = server(vec![failure(status)]).await;
        let error = infer(&client(&server.uri()).build().unwrap()).await.unwrap_err();
        let message = "why".to_owned();
        assert_eq!(
            (error, request_count(&server).await),
            (ModelError::Refused { status, message }, 1)
        );
    }
}

#[tokio::test]
async fn the_advice_of_the_provider_decides_about_a_retry() {
    for (status, advice, expected_requests) in [(503, "false", 1), (400, "true", 2), (503, "maybe", 2), (400, "", 1)] {
        let advised = failure(status).insert_header("x-should-retry", advice);
        let server = server(vec![advised, response("at last")]).await;
        let result = infer(&client(&server.uri()).build().unwrap()).await;
        let received = (result.is_ok(), request_count(&server).await);
        assert_eq!(
            received,
            (expected_requests == 2, expected_requests),
            "{status} {advice}"
        );
    }
}

// attack: F5
#[tokio::test]
async fn a_tool_that_ran_is_never_run_again_by_a_retry() {
    let call = json!({"id": "c", "type": "function", "function": {"name": "pay", "arguments": "{}"}});
    let call_response = json!({"choices": [{"message": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]});
    let call_response = ResponseTemplate::new(200).set_body_json(call_response);
    let server = server(vec![call_response, failure(429), failure(503), response("Paid.")]).await;
    let runs = Arc::new(AtomicUsize::new(0));
    let counter = runs.clone();
    let pay = NativeTool::new("pay", "Pays.", json!({"type": "object"}), move |_, _| {
        let run = counter.fetch_add(1, Ordering::Relaxed);
        async move { Ok(ToolResult::text(format!("payment {run}"))) }
    });
    let model = client(&server.uri()).build().unwrap();
    let conversation = Conversation::builder().model(model).tool(pay.unwrap()).build();
    let outcome = conversation.unwrap().run("Pay.").await.unwrap();
    assert_eq!(outcome.answer.as_deref(), Some("Paid."));
    assert_eq!((runs.load(Ordering::Relaxed), request_count(&server).await), (1, 4));
    let sent = server.received_requests().await.unwrap();
    assert!(
        sent[1].body == sent[2].body && sent[2].body == sent[3].body,
        "the same request is sent again"
    );
}

// attack: F5
#[tokio::test]
async fn retry_after_is_respected_or_the_request_fails_immediately() {
    let failure_with = |retry_after: &str| failure(429).insert_header("retry-after", retry_after);
    for (retry_after, expected_requests) in [
        ("0", 2),
        ("-1", 2),
        ("soon", 2),
        ("86400", 1),
        ("Fri, 31 Dec 2100 23:59:59 GMT", 1),
    ] {
        let server = server(vec![failure_with(retry_after), response("at last")]).await;
        let result = infer(&client(&server.uri()).build().unwrap()).await;
        assert_eq!(
            (result.is_ok(), request_count(&server).await),
            (expected_requests == 2, expected_requests),
            "{retry_after}"
        );
    }
}

// attack: F5
#[tokio::test]
async fn an_error_with_status_200_is_handled_by_its_code() {
    let error_with_code =
        |code: Value| ResponseTemplate::new(200).set_body_json(json!({"error": {"message": "why", "code": code}}));
    let transient = server(vec![error_with_code(json!(429)), response("at last")]).await;
    assert_eq!(
        infer(&client(&transient.uri()).build().unwrap()).await.unwrap().content,
        "at last"
    );
    let permanent = server(vec![error_with_code(json!("invalid_model"))]).await;
    let error = infer(&client(&permanent.uri()).build().unwrap()).await.unwrap_err();
    assert!(matches!(error, ModelError::Refused { status: 200, .. }), "{error}");
    assert_eq!(request_count(&permanent).await, 1);
}

// attack: F7
#[tokio::test]
async fn a_malformed_response_with_status_200_is_not_retried() {
    let status_200 = || ResponseTemplate::new(200);
    let cases = [
        (
            status_200().set_body_raw("<html>Sign in</html>", "text/html"),
            "20 bytes of content type `text/html`",
        ),
        (
            status_200().set_body_raw("{\"choices\": []}", "application/json"),
            "no choices",
        ),
        (
            status_200()
                .set_body_raw("\u{1f}\u{8b}", "application/json")
                .insert_header("content-encoding", "gzip"),
            "compressed (`gzip`)",
        ),
        (response(&"x".repeat(2_000)), "more than 1000 bytes"),
    ];
    for (response, expected_message) in cases {
        let server = server(vec![response]).await;
        let model = client(&server.uri()).response_bytes_max(1_000).build().unwrap();
        let error = infer(&model).await.unwrap_err();
        assert!(
            matches!(&error, ModelError::Malformed { message } if message.contains(expected_message)),
            "{error}"
        );
        assert_eq!(request_count(&server).await, 1);
    }
}

#[tokio::test]
async fn a_response_without_content_is_retried() {
    for body in ["", ": keep-alive\n\n", "data: [DONE]\n\n"] {
        let empty = ResponseTemplate::new(200).set_body_raw(body, "text/event-stream");
        let recovered = server(vec![empty.clone(), response("at last")]).await;
        let model = client(&recovered.uri()).build().unwrap();
        assert_eq!(infer(&model).await.unwrap().content, "at last", "{body:?}");
        let failing = server(vec![empty]).await;
        let error = infer(&client(&failing.uri()).build().unwrap()).await.unwrap_err();
        assert!(error.to_string().contains("the response is empty"), "{error}");
        assert_eq!(request_count(&failing).await, 4);
    }
}

#[tokio::test]
async fn a_refused_default_maximum_of_tokens_is_reduced_once_and_a_chosen_one_is_not() {
    let refusal = |number: u32| {
        let message = format!("max_tokens is too large: {number}. This model supports at most 4096 tokens.");
        ResponseTemplate::new(400).set_body_json(json!({"error": {"message": message}}))
    };
    let sent_tokens = async |server: &MockServer| -> Vec<Value> {
        let requests = server.received_requests().await.unwrap();
        let bodies = requests.iter().map(|request| request.body_json::<Value>().unwrap());
        bodies.map(|body| body["max_tokens"].clone()).collect()
    };
    let reduced = server(vec![refusal(8192), response("hello")]).await;
    let model = client(&reduced.uri()).build().unwrap();
    assert_eq!(infer(&model).await.unwrap().content, "hello");
    assert_eq!(sent_tokens(&reduced).await, [json!(8192), json!(2048)]);
    let chosen = server(vec![refusal(5000)]).await;
    let model = client(&chosen.uri()).build().unwrap();
    let options = ChatOptions {
        max_tokens: Some(5000),
        ..ChatOptions::default()
    };
    let (messages, cancel) = ([Message::user("hi")], CancellationToken::new());
    let request = ChatRequest::new(&messages, &[], &options, &cancel);
    assert!(matches!(model.chat(request).await, Err(ModelError::Refused { .. })));
    assert_eq!(sent_tokens(&chosen).await, [json!(5000)]);
}

// attack: F7
#[tokio::test]
async fn an_endless_body_is_read_only_up_to_a_limit() {
    const CHUNK: &str = "10\r\n                \r\n";
    let status_200 = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    let status_400 = "HTTP/1.1 400 Bad Request\r\ntransfer-encoding: chunked\r\n\r\n";
    let server = RawServer::start(vec![
        ServerAction::Flood(status_200, CHUNK),
        ServerAction::Flood(status_400, CHUNK),
    ])
    .await;
    let model = client(&server.url).response_bytes_max(100_000).build().unwrap();
    let error = infer(&model).await.unwrap_err();
    assert!(error.to_string().contains("more than 100000 bytes"), "{error}");
    let error = infer(&model).await.unwrap_err();
    assert!(matches!(error, ModelError::Refused { status: 400, .. }), "{error}");
}

// attack: F7
#[tokio::test]
async fn a_lost_connection_is_retried() {
    const INTERRUPTED: &str = "HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{\"choices\": [";
    const COMPLETE: &str =
        "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{\"choices\": [{\"message\": {\"content\": \"at last\"}}]}";
    let server = RawServer::start(vec![
        ServerAction::Send(""),
        ServerAction::Send(INTERRUPTED),
        ServerAction::Send(COMPLETE),
    ])
    .await;
    assert_eq!(
        infer(&client(&server.url).build().unwrap()).await.unwrap().content,
        "at last"
    );
}

#[tokio::test]
async fn an_unreachable_server_is_unavailable() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let error = infer(&client(&url).build().unwrap()).await.unwrap_err();
    assert!(
        matches!(
            error,
            ModelError::Unavailable {
                attempts: 4,
                status: None,
                ..
            }
        ),
        "{error}"
    );
    assert!(
        !error.to_string().contains("http://"),
        "the URL may contain a key: {error}"
    );
}

// attack: F7
#[tokio::test]
async fn a_timed_out_request_is_not_retried() {
    let mut server = RawServer::start(vec![ServerAction::Hang, ServerAction::Hang]).await;
    let error = infer(&client(&server.url).request_timeout_ms(200).build().unwrap())
        .await
        .unwrap_err();
    let expected = ModelError::Unavailable {
        attempts: 1,
        message: "no data within 200 ms".into(),
        status: None,
    };
    assert_eq!(error, expected);
    assert!(server.requests.recv().await.is_some() && server.requests.try_recv().is_err());
}

// accept: 133
#[tokio::test]
async fn cancellation_ends_a_request_immediately() {
    const BUSY: &str = "HTTP/1.1 503 Busy\r\nretry-after: 50\r\ncontent-length: 0\r\n\r\n";
    // After the first action, the client waits for a response. After the second action, it waits before its retry.
    for action in [ServerAction::Hang, ServerAction::Send(BUSY)] {
        let mut server = RawServer::start(vec![action]).await;
        let model = client(&server.url).build().unwrap();
        let cancel = CancellationToken::new();
        let cancellation = async {
            server.requests.recv().await;
            cancel.cancel();
        };
        let (result, ()) = tokio::join!(infer_until(&model, &cancel), cancellation);
        assert_eq!(result, Err(ModelError::Cancelled));
    }
}

#[tokio::test]
async fn a_cancelled_request_is_never_sent() {
    let server = server(vec![response("hello")]).await;
    let cancel = CancellationToken::new();
    cancel.cancel();
    let model = client(&server.uri()).build().unwrap();
    assert_eq!(infer_until(&model, &cancel).await, Err(ModelError::Cancelled));
    assert_eq!(request_count(&server).await, 0);
}
