//! Server-sent events of limited size.

use std::time::Duration;

use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt, future, stream};
use rmcp::model::RequestId;
use serde_json::Value;
use sse_stream::{Error as SseError, Sse, SseStream};

use super::message::{self, MessageError};
use super::request_limit::RequestLimit;
use super::unusable_answer::{UnusableText, unusable_answer};
use toolwit_core::limits::MCP_MESSAGE_BYTES_MAX;

/// The minimum time before a closed stream is opened again, in milliseconds. Without a minimum, a server could make the
/// client reconnect without a pause.
const RETRY_MS_MIN: u64 = 500;

/// The stream of server-sent events of a response.
pub(super) type Events = BoxStream<'static, Result<Sse, SseError>>;

/// The reason why a stream of events ends with an error.
#[derive(Debug, thiserror::Error)]
enum StreamError {
    #[error("an event exceeds the maximum size of a message")]
    TooLarge,
    #[error("an event cannot be used: {0}")]
    Message(#[from] MessageError),
    #[error("the connection failed")]
    Connection(#[from] reqwest::Error),
}

/// Returns the events of a body. Each event has a limited size. The data of an event is either JSON or empty.
///
/// If the stream answers a request, `request_id` is the id of the request. An answer that cannot be used is replaced by an error.
pub(super) fn events(
    body: impl Stream<Item = reqwest::Result<Bytes>> + Send + 'static,
    requests: RequestLimit,
    request_id: Option<RequestId>,
) -> Events {
    let mut size = EventSize::default();
    let limited = body.map(move |chunk| {
        let chunk = chunk?;
        if size.add(&chunk) {
            Ok(chunk)
        } else {
            Err(StreamError::TooLarge)
        }
    });
    // Some servers do not end the last event with an empty line.
    let last_line = request_id.is_some().then(|| Ok(Bytes::from_static(b"\n\n")));
    // After an error, nothing more is read.
    let limited = limited.chain(stream::iter(last_line)).scan(false, |has_failed, chunk| {
        let had_failed = std::mem::replace(has_failed, chunk.is_err());
        future::ready((!had_failed).then_some(chunk))
    });
    SseStream::from_bytes_stream(limited)
        .map(move |event| event.and_then(|event| checked_event(event, &requests, request_id.as_ref())))
        .boxed()
}

/// Returns the events of a body that the server keeps open. The stream ends if no data arrives within `silence_max`,
/// because the connection may be dead.
///
/// At an error, the stream ends without returning the error. The reason is the protocol library (`rmcp`): it waits before
/// it reopens a stream that ended, but it does not wait after an error.
pub(super) fn long_lived_events(
    body: impl Stream<Item = reqwest::Result<Bytes>> + Send + 'static,
    requests: RequestLimit,
    silence_max: Duration,
) -> Events {
    let body = stream::unfold(body.boxed(), move |mut body| async move {
        let chunk = tokio::time::timeout(silence_max, body.next()).await;
        chunk.ok().flatten().map(|chunk| (chunk, body))
    });
    events(body, requests, None)
        .take_while(|event| {
            if let Err(error) = event {
                tracing::debug!(%error, "a stream of events of an MCP server ends");
            }
            future::ready(event.is_ok())
        })
        .boxed()
}

/// Returns an event whose data is this message.
pub(super) fn message_event(message: String) -> Sse {
    Sse {
        data: Some(message),
        ..Sse::default()
    }
}

/// Checks the data of an event. Data that is not a message is removed, or replaced by an error if it is an answer. A request beyond
/// the limit is removed, too. The event itself remains, because its id can still be used. A `retry` time below [`RETRY_MS_MIN`] is
/// raised.
///
/// # Errors
/// If the data is not an answer, and has too many JSON values and names.
fn checked_event(mut event: Sse, requests: &RequestLimit, request_id: Option<&RequestId>) -> Result<Sse, SseError> {
    event.retry = event.retry.map(|retry| retry.max(RETRY_MS_MIN));
    let Some(data) = event.data.take().filter(|data| !data.trim().is_empty()) else {
        return Ok(event);
    };
    let unusable = match message::checked_value(data.as_bytes(), requests) {
        Ok(mut value) => {
            drop(data);
            let lacks_id = value.get("method").is_none() && value.get("id").is_none_or(Value::is_null);
            if let (true, Some(id)) = (lacks_id, request_id) {
                value["id"] = serde_json::to_value(id).unwrap_or_default();
            }
            event.data = Some(value.to_string());
            return Ok(event);
        }
        Err(MessageError::TooManyRequests) => return Ok(event),
        Err(error) => UnusableText::of(data.as_bytes(), error),
    };
    match (unusable.answered_request(request_id), unusable.error) {
        (Some(id), error) => {
            event.data = serde_json::to_string(&unusable_answer(id, &error)).ok();
            Ok(event)
        }
        (None, error @ MessageError::TooManyParts) => Err(SseError::Body(Box::new(StreamError::Message(error)))),
        (None, _) => Ok(event),
    }
}

/// The size of the event that is being read, in bytes, without line breaks.
#[derive(Default)]
struct EventSize {
    bytes: usize,
    /// Whether the last byte ended a line. A further line break is then an empty line, which ends the event.
    is_line_start: bool,
}

impl EventSize {
    /// Adds the bytes of a chunk. Returns `false` if an event exceeds [`MCP_MESSAGE_BYTES_MAX`].
    fn add(&mut self, chunk: &[u8]) -> bool {
        for byte in chunk {
            match byte {
                b'\n' | b'\r' if self.is_line_start => self.bytes = 0,
                b'\n' => self.is_line_start = true,
                // The first byte of the line break `\r\n`.
                b'\r' => {}
                _ => {
                    self.is_line_start = false;
                    self.bytes += 1;
                }
            }
            if self.bytes > MCP_MESSAGE_BYTES_MAX {
                return false;
            }
        }
        true
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    async fn read_events(chunks: Vec<Bytes>) -> Vec<Result<Sse, SseError>> {
        let body = stream::iter(chunks.into_iter().map(Ok));
        events(body, RequestLimit::default(), None).collect().await
    }

    #[tokio::test]
    async fn json_is_kept_and_other_data_is_removed() {
        let text = "retry: 0\nid: 1\ndata:\n\n: ping\n\ndata: hello\n\nid: 2\ndata: {\"jsonrpc\": \"2.0\", \"method\": \"a\"}\n\n";
        let chunks = text.bytes().map(|byte| Bytes::from(vec![byte])).collect();
        let events: Vec<_> = read_events(chunks).await.into_iter().map(Result::unwrap).collect();
        let data: Vec<_> = events.iter().filter_map(|event| event.data.as_deref()).collect();
        assert_eq!(data, [r#"{"jsonrpc":"2.0","method":"a"}"#]);
        assert_eq!(events[0].retry, Some(RETRY_MS_MIN));
        assert_eq!(events.last().unwrap().id.as_deref(), Some("2"));
    }

    // attack: G9
    #[tokio::test]
    async fn an_endless_event_is_given_up() {
        let chunk = Bytes::from(vec![b'x'; 1 << 20]);
        let mut chunks = vec![Bytes::from_static(b"data: ")];
        chunks.extend(vec![chunk; 20]);
        let events = read_events(chunks).await;
        assert!(events.last().unwrap().is_err());
        assert!(events.iter().filter(|event| event.is_ok()).count() == 0);
    }

    // attack: G9
    #[tokio::test(start_paused = true)]
    async fn a_stream_that_is_silent_ends() {
        let event = Bytes::from_static(b"data: {\"jsonrpc\": \"2.0\", \"method\": \"a\"}\n\n");
        let body = stream::once(future::ready(Ok(event))).chain(stream::pending());
        let started = tokio::time::Instant::now();
        let events = long_lived_events(body, RequestLimit::default(), Duration::from_secs(600));
        assert_eq!(events.collect::<Vec<_>>().await.len(), 1);
        assert_eq!(started.elapsed().as_secs(), 600);
    }

    // attack: G9
    #[tokio::test]
    async fn a_stream_that_the_server_keeps_open_ends_at_an_error() {
        let chunks = [
            "data: {\"jsonrpc\": \"2.0\", \"method\": \"a\"}\n\n",
            "hello\n\n",
            "data: {\"jsonrpc\": \"2.0\", \"method\": \"a\"}\n\n",
        ];
        let body = stream::iter(chunks.map(|chunk| Ok(Bytes::from_static(chunk.as_bytes()))));
        let events = long_lived_events(body, RequestLimit::default(), Duration::from_secs(600));
        let events: Vec<_> = events.collect().await;
        assert_eq!(events.len(), 1);
        assert!(events[0].is_ok());
    }

    // attack: G9
    #[tokio::test]
    async fn requests_beyond_the_limit_are_removed_and_responses_are_kept() {
        let request = "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n\n".repeat(2_000);
        let text = format!("{request}data: {{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{{}}}}\n\n");
        let events = read_events(vec![Bytes::from(text)]).await;
        let messages = events.into_iter().filter_map(|event| event.unwrap().data);
        let messages: Vec<_> = messages.collect();
        assert!((1..1_000).contains(&messages.len()), "{}", messages.len());
        assert!(messages.last().unwrap().contains("result"));
    }
}
