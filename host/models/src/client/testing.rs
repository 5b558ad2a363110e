//! Helpers for tests that read responses without a server.

#![allow(clippy::unwrap_used)]

use std::sync::Mutex;

use tokio_util::sync::CancellationToken;

use super::dialect::{Dialect, ReaderState};
use super::response_body::BodyReader;
use crate::assembly::ResponseAssembly;
use crate::http::AttemptFailure;
use toolwit_agent::model::{ChatDelta, ChatOptions, ChatRequest, ChatResponse};
use toolwit_core::Message;

/// The issuer of the provider blocks in tests: the API and the host that returned them, as `API:HOST`.
pub(crate) const BLOCK_ISSUER: &str = "test:host";

/// Reads a body that arrives in these pieces, as the response to a request with these messages.
pub(crate) fn read_pieces<'p, D: Dialect>(
    pieces: impl IntoIterator<Item = &'p [u8]>,
    messages: &[Message],
) -> Result<ChatResponse, AttemptFailure> {
    let (options, cancel) = (ChatOptions::default(), CancellationToken::new());
    let received_text = Mutex::new(String::new());
    let listener = |delta: ChatDelta<'_>| {
        if let ChatDelta::Text(piece) = delta {
            received_text.lock().unwrap().push_str(piece);
        }
    };
    let request = ChatRequest::new(messages, &[], &options, &cancel).with_listener(&listener);
    let mut response = ResponseAssembly::new(request, BLOCK_ISSUER, 1 << 20);
    let mut body_reader = BodyReader::new(D::default().reader(), 1 << 20);
    let mut reader_state = ReaderState::Open;
    for piece in pieces {
        reader_state = body_reader.push(piece, &mut response)?;
        if reader_state == ReaderState::Done {
            break;
        }
    }
    if reader_state == ReaderState::Open {
        body_reader.finish("application/json", &mut response)?;
    }
    let response = response.finish();
    assert_eq!(
        *received_text.lock().unwrap(),
        format!("{}{}", response.content, response.refusal.clone().unwrap_or_default()),
        "the listener receives the text of the response"
    );
    Ok(response)
}

/// Reads a body that arrives in one piece, as the response to a request without messages.
pub(crate) fn read<D: Dialect>(body: impl AsRef<[u8]>) -> Result<ChatResponse, AttemptFailure> {
    read_pieces::<D>([body.as_ref()], &[])
}

/// Returns the body of a stream of events with this data, without an end mark.
pub(crate) fn stream(events: &[serde_json::Value]) -> String {
    events.iter().map(|event| format!("data: {event}\n\n")).collect()
}

/// Asserts that a body gives the same result in one piece, in any two pieces, and in pieces of one byte.
pub(crate) fn assert_cuts_do_not_matter<D: Dialect>(body: &[u8]) {
    let uncut = read::<D>(body);
    assert_eq!(read_pieces::<D>(body.chunks(1), &[]), uncut);
    for cut in 0..body.len() {
        let (head, tail) = body.split_at(cut);
        assert_eq!(read_pieces::<D>([head, tail], &[]), uncut, "{cut}");
    }
}
