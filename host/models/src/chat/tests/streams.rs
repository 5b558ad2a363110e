//! Streamed responses.

use std::sync::Mutex;

use super::raw::{RawServer, ServerAction};
use super::*;
use crate::client::testing::{BLOCK_ISSUER, assert_cuts_do_not_matter, read, stream};
use crate::http::AttemptFailure;
use toolwit_agent::model::{ChatDelta, TokenUsage};

pub(super) fn chunk(delta: Value, finish_reason: Option<&str>) -> Value {
    json!({"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]})
}

pub(super) fn call_delta(index: u64, id: Option<&str>, name: Option<&str>, arguments: &str) -> Value {
    json!({"tool_calls": [{"index": index, "id": id, "function": {"name": name, "arguments": arguments}}]})
}

pub(super) fn parse(events: &[Value]) -> Result<ChatResponse, AttemptFailure> {
    read::<ChatCompletions>(stream(events))
}

/// Returns the chunks of a stream with reasoning, text, two calls and token counts.
fn sample_chunks() -> Vec<Value> {
    vec![
        chunk(json!({"role": "assistant", "content": ""}), None),
        chunk(json!({"reasoning_content": "Hm, ", "reasoning": "Hm, "}), None),
        chunk(json!({"reasoning_content": "é.", "reasoning": "é."}), None),
        chunk(json!({"content": "Let me ", "tool_calls": null}), None),
        chunk(json!({"content": "löök."}), None),
        chunk(call_delta(0, Some("call_a"), Some("f"), ""), None),
        chunk(call_delta(1, Some("call_b"), Some("g"), "{\"x\":"), None),
        chunk(call_delta(0, None, None, "{}"), None),
        chunk(call_delta(1, None, None, " 1}"), None),
        chunk(json!({}), Some("tool_calls")),
        json!({"id": "c", "choices": [], "usage": {
            "prompt_tokens": 20, "completion_tokens": 9,
            "prompt_tokens_details": {"cached_tokens": 16},
            "completion_tokens_details": {"reasoning_tokens": 4},
        }}),
    ]
}

// attack: F4, accept: 10
#[test]
fn a_stream_becomes_one_response_with_text_reasoning_calls_and_usage() {
    let response = parse(&sample_chunks()).unwrap();
    assert_eq!(
        (response.content.as_str(), response.reasoning.as_str()),
        ("Let me löök.", "Hm, é.")
    );
    let calls = response.tool_calls.iter();
    let calls: Vec<_> = calls.map(|call| (&*call.id, &*call.name, &*call.arguments)).collect();
    assert_eq!(calls, [("call_a", "f", "{}"), ("call_b", "g", "{\"x\": 1}")]);
    assert_eq!(
        (&response.finish, response.stop_reason.as_deref()),
        (&FinishReason::ToolCalls, Some("tool_calls"))
    );
    assert_eq!(response.usage, TokenUsage::new(20, 16, 9).with_reasoning(4));
    assert_eq!(response.blocks.len(), 1);
    assert_eq!(
        (response.blocks[0].issuer.as_str(), &response.blocks[0].data),
        (BLOCK_ISSUER, &json!({"reasoning_content": "Hm, é."}))
    );
}

// attack: F6
#[test]
fn the_bytes_of_a_stream_may_be_cut_anywhere() {
    let mut body = stream(&sample_chunks()[3..8]);
    body.push_str(
        ": a comment\r\n\r\nevent: x\r\ndata: {\"choices\": [{\"finish_reason\": \"stop\"}]}\r\n\r\ndata: [DONE]",
    );
    assert_cuts_do_not_matter::<ChatCompletions>(body.as_bytes());
    assert_cuts_do_not_matter::<ChatCompletions>(&body.as_bytes()[..body.len() / 2]);
    assert_cuts_do_not_matter::<ChatCompletions>(answer("é").to_string().as_bytes());
}

// attack: F6
#[test]
fn the_end_mark_may_be_missing_repeated_or_followed_by_data() {
    let events = [chunk(json!({"content": "hi"}), None), chunk(json!({}), Some("stop"))];
    let body = stream(&events);
    let chunk_after_end = stream(&[chunk(json!({"content": " there"}), None)]);
    for end in [
        "",
        "data: [DONE]",
        "data: [DONE]\n\ndata: [DONE]\n\n",
        &format!("data: [DONE]\n\n{chunk_after_end}"),
    ] {
        assert_eq!(
            read::<ChatCompletions>(format!("{body}{end}")).unwrap().content,
            "hi",
            "{end}"
        );
    }
    let without_finish_reason = stream(&events[..1]);
    let with_mark = read::<ChatCompletions>(format!("{without_finish_reason}data: [DONE]\n\n")).unwrap();
    assert_eq!((with_mark.content.as_str(), with_mark.stop_reason), ("hi", None));
    let failure = read::<ChatCompletions>(without_finish_reason).unwrap_err();
    assert_eq!(failure, AttemptFailure::interrupted());
}

// attack: F5
#[test]
fn an_error_in_a_stream_is_the_error_of_the_response() {
    let busy = json!({"error": {"message": "busy", "code": 502}, "choices": [{"finish_reason": "error", "delta": {}}]});
    let refused = json!({"error": {"message": "no", "type": "invalid_request_error"}});
    for earlier_chunks in [vec![], vec![chunk(json!({"content": "hi"}), None)]] {
        let events = |error: &Value| [earlier_chunks.clone(), vec![error.clone()]].concat();
        let failure = parse(&events(&busy)).unwrap_err();
        assert!(matches!(failure, AttemptFailure::Transient { status: Some(502), .. }));
        assert!(matches!(
            parse(&events(&refused)).unwrap_err(),
            AttemptFailure::Permanent(ModelError::Refused { .. })
        ));
    }
}

// attack: F1
#[test]
fn a_truncated_stream_keeps_its_arguments_incomplete() {
    let events = [
        chunk(call_delta(0, Some("a"), Some("f"), "{\"x\": "), None),
        chunk(json!({}), Some("length")),
    ];
    let response = parse(&events).unwrap();
    assert_eq!(
        (&*response.tool_calls[0].arguments, response.finish),
        ("{\"x\": ", FinishReason::Length)
    );
}

#[test]
fn refusals_and_content_filters_are_recognized_and_further_choices_are_ignored() {
    let refused = parse(&[
        chunk(json!({"refusal": "I "}), None),
        chunk(json!({"refusal": "cannot."}), Some("stop")),
    ])
    .unwrap();
    assert_eq!((refused.text(), &refused.finish), ("I cannot.", &FinishReason::Refusal));
    let filtered = parse(&[chunk(json!({"content": "x"}), Some("content_filter"))]).unwrap();
    assert_eq!(filtered.finish, FinishReason::ContentFilter);
    let second_choice = json!({"choices": [{"index": 1, "delta": {"content": "other"}, "finish_reason": "length"}]});
    let response = parse(&[chunk(json!({"content": "x"}), Some("stop")), second_choice]).unwrap();
    assert_eq!((response.content.as_str(), response.finish), ("x", FinishReason::Stop));
}

#[test]
fn pieces_of_reasoning_details_are_joined_in_a_provider_block() {
    let detail = |text: &str, signature: Option<&str>| -> Value {
        json!({"reasoning_details": [{"type": "reasoning.text", "index": 0, "text": text, "signature": signature}]})
    };
    let encrypted = json!({"reasoning_details": [{"type": "reasoning.encrypted", "index": 1, "data": "x"}]});
    let events = [
        chunk(detail("Let ", None), None),
        chunk(detail("me", Some("s")), None),
        chunk(encrypted, Some("stop")),
    ];
    let expected = json!([
        {"type": "reasoning.text", "index": 0, "text": "Let me", "signature": "s"},
        {"type": "reasoning.encrypted", "index": 1, "data": "x"},
    ]);
    assert_eq!(parse(&events).unwrap().blocks[0].data["reasoning_details"], expected);
}

/// The head of a response without a content length: the body ends when the connection closes.
const RESPONSE_HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

fn send_stream(events: &str) -> ServerAction {
    ServerAction::Send(Box::leak(format!("{RESPONSE_HEAD}{events}").into_boxed_str()))
}

// accept: 16
#[tokio::test]
async fn the_listener_receives_the_pieces_in_order() {
    let server = RawServer::start(vec![send_stream(&stream(&sample_chunks()))]).await;
    let model = client(&server.url).build().unwrap();
    let (messages, options, cancel) = ([Message::user("hi")], ChatOptions::default(), CancellationToken::new());
    let received_pieces = Mutex::new(Vec::new());
    let listener = |delta: ChatDelta<'_>| received_pieces.lock().unwrap().push(format!("{delta:?}"));
    let request = ChatRequest::new(&messages, &[], &options, &cancel).with_listener(&listener);
    model.chat(request).await.unwrap();
    assert_eq!(
        *received_pieces.lock().unwrap(),
        [
            "Reasoning(\"Hm, \")",
            "Reasoning(\"é.\")",
            "Text(\"Let me \")",
            "Text(\"löök.\")",
            "Call { index: 0, name: \"f\", arguments: \"\" }",
            "Call { index: 1, name: \"g\", arguments: \"{\\\"x\\\":\" }",
            "Call { index: 0, name: \"f\", arguments: \"{}\" }",
            "Call { index: 1, name: \"g\", arguments: \" 1}\" }",
        ]
    );
}

// attack: F7
#[tokio::test]
async fn a_request_is_retried_until_a_person_has_read_a_part_of_its_response() {
    let incomplete = stream(&[chunk(json!({"content": "Hel"}), None)]);
    let complete = stream(&[chunk(json!({"content": "Hello"}), Some("stop"))]);
    let complete_after = |first: &str| vec![send_stream(first), send_stream(&complete)];
    let (messages, options, cancel) = ([Message::user("hi")], ChatOptions::default(), CancellationToken::new());
    let listener = |_: ChatDelta<'_>| {};
    let request = ChatRequest::new(&messages, &[], &options, &cancel);

    let thought = stream(&[chunk(json!({"reasoning": "Hm"}), None)]);
    for shown in [&incomplete, &thought] {
        let server = RawServer::start(complete_after(shown)).await;
        let model = client(&server.url).build().unwrap();
        let error = model.chat(request.with_listener(&listener)).await.unwrap_err();
        assert!(matches!(error, ModelError::Unavailable { attempts: 1, .. }), "{error}");
    }

    let unshown = request.with_listener(&listener).with_shown_pieces(false);
    let call = stream(&[chunk(call_delta(0, Some("a"), Some("f"), "{"), None)]);
    for (request, first) in [
        (unshown, &incomplete),
        (unshown, &thought),
        (request.with_listener(&listener), &call),
    ] {
        let server = RawServer::start(complete_after(first)).await;
        let response = client(&server.url).build().unwrap().chat(request).await.unwrap();
        assert_eq!(
            (response.content.as_str(), response.tool_calls.len()),
            ("Hello", 0),
            "{first}"
        );
    }

    let server = RawServer::start(complete_after(&incomplete)).await;
    let model = client(&server.url).build().unwrap();
    let response = model.chat(request).await.unwrap();
    assert_eq!(response.content, "Hello", "a request without a listener is retried");

    let empty_event = stream(&[chunk(json!({"role": "assistant"}), None)]);
    let server = RawServer::start(complete_after(&empty_event)).await;
    let model = client(&server.url).build().unwrap();
    let response = model.chat(request.with_listener(&listener)).await.unwrap();
    assert_eq!(
        response.content, "Hello",
        "the listener received nothing before the retry"
    );
}

#[tokio::test]
async fn a_complete_response_without_an_end_mark_ends_although_the_connection_stays_open() {
    let complete = stream(&[
        chunk(json!({"content": "Hello"}), Some("stop")),
        json!({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 1}}),
    ]);
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
    let open = Box::leak(format!("{head}{complete}").into_boxed_str());
    let server = RawServer::start(vec![ServerAction::SendAndHang(open)]).await;
    let model = client(&server.url).end_timeout_ms(100).build().unwrap();
    let response = infer(&model).await.unwrap();
    assert_eq!(
        (response.content.as_str(), response.usage),
        ("Hello", TokenUsage::new(3, 0, 1))
    );
}

// attack: F7
#[tokio::test]
async fn an_endless_stream_ends_at_the_limits() {
    let text_event = "data: {\"choices\": [{\"delta\": {\"content\": \"xxxxxxxxxx\"}}]}\n\n";
    let texts = RawServer::start(vec![ServerAction::Flood(RESPONSE_HEAD, text_event)]).await;
    let limited = |url: &str| client(url).response_bytes_max(10_000).build().unwrap();
    let error = infer(&limited(&texts.url)).await.unwrap_err();
    assert!(error.to_string().contains("more than 10000 bytes"), "{error}");
    let call_event = concat!(
        r#"data: {"choices": [{"delta": {"tool_calls": [{"function": {"name": "f", "arguments": {"a": ["#,
        r#""xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx""#,
        "]}}}]}}]}\n\n"
    );
    let calls = RawServer::start(vec![ServerAction::Flood(RESPONSE_HEAD, call_event)]).await;
    let error = infer(&limited(&calls.url)).await.unwrap_err();
    assert!(error.to_string().contains("more than 10000 bytes"), "{error}");
    let empty_texts = concat!(
        r#"data: {"choices": [{"delta": {"tool_calls": [{"function": {"name": "f", "arguments": {"a": ["#,
        r#""","","","","","","","","","","","","","","","","","","","","","","","","","","","","","","","""#,
        "]}}}]}}]}\n\n"
    );
    let calls = RawServer::start(vec![ServerAction::Flood(RESPONSE_HEAD, empty_texts)]).await;
    let error = infer(&limited(&calls.url)).await.unwrap_err();
    assert!(error.to_string().contains("more than 10000 bytes"), "{error}");
    let comments = RawServer::start(vec![ServerAction::Flood(RESPONSE_HEAD, ": keep-alive\n\n")]).await;
    let error = infer(&limited(&comments.url)).await.unwrap_err();
    // The body of a stream may be 64 times as large as the response that it contains.
    assert!(error.to_string().contains("more than 640000 bytes"), "{error}");
    let line = RawServer::start(vec![ServerAction::Flood(
        RESPONSE_HEAD,
        "data: xxxxxxxxxxxxxxxxxxxxxxxxxxx",
    )])
    .await;
    let error = infer(&limited(&line.url)).await.unwrap_err();
    assert!(
        error
            .to_string()
            .contains("an event of the stream has more than 10000 bytes"),
        "{error}"
    );
}
