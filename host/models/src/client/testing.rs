//! Reading of responses without a server, for tests.

#![allow(clippy::unwrap_used)]

use std::sync::Mutex;

use tokio_util::sync::CancellationToken;

use super::dialect::{Dialect, ReaderState};
use super::response_body::BodyReader;
use crate::assembly::ResponseAssembly;
use crate::http::AttemptFailure;
use toolwit_agent::model::{ChatDelta, ChatOptions, ChatRequest, ChatResponse};
use toolwit_core::Message;

/// The issuer of the provider blocks that tests read.
pub(crate) const ISSUER: &str = "test:host";

/// Reads a body that arrives in these pieces, as the response to a request with this history.
pub(crate) fn read_pieces<'p, D: Dialect>(
    pieces: impl IntoIterator<Item = &'p [u8]>,
    history: &[Message],
) -> Result<ChatResponse, AttemptFailure> {
    let (options, cancel) = (ChatOptions::default(), CancellationToken::new());
    let text = Mutex::new(String::new());
    let listener = |delta: ChatDelta<'_>| {
        if let ChatDelta::Text(piece) = delta {
            text.lock().unwrap().push_str(piece);
        }
    };
    let request = ChatRequest::new(history, &[], &options, &cancel).with_listener(&listener);
    let mut response = ResponseAssembly::new(request, ISSUER, 1 << 20);
    let mut body = BodyReader::new(D::default().reader(), 1 << 20);
    let mut state = ReaderState::Open;
    for piece in pieces {
        state = body.push(piece, &mut response)?;
        if state == ReaderState::Done {
            break;
        }
    }
    if state == ReaderState::Open {
        body.finish("application/json", &mut response)?;
    }
    let response = response.finish();
    assert_eq!(
        *text.lock().unwrap(),
        format!("{}{}", response.content, response.refusal.clone().unwrap_or_default()),
        "observers receive the text of the response"
    );
    Ok(response)
}

/// Reads a body that arrives at once.
pub(crate) fn read<D: Dialect>(body: impl AsRef<[u8]>) -> Result<ChatResponse, AttemptFailure> {
    read_pieces::<D>([body.as_ref()], &[])
}

/// Returns a stream of events with this data, and an end mark if the API has one.
pub(crate) fn stream(events: &[serde_json::Value]) -> String {
    events.iter().map(|event| format!("data: {event}\n\n")).collect()
}

/// Asserts that a body gives the same result however it is cut into two pieces, and one byte at a time.
pub(crate) fn assert_cuts_do_not_matter<D: Dialect>(body: &[u8]) {
    let together = read::<D>(body);
    assert_eq!(read_pieces::<D>(body.chunks(1), &[]), together);
    for cut in 0..body.len() {
        let (head, tail) = body.split_at(cut);
        assert_eq!(read_pieces::<D>([head, tail], &[]), together, "{cut}");
    }
}
