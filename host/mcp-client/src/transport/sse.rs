//! Server-sent events of limited size.

use std::time::Duration;

use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt, future, stream};
use sse_stream::{Error as SseError, Sse, SseStream};

use super::message::{self, MessageError};
use super::request_limit::RequestLimit;
use toolwit_core::limits::MCP_MESSAGE_BYTES_MAX;

/// The minimum time before a closed stream is opened again, in milliseconds. Without a minimum, a server could make the
/// client reconnect without a pause.
const RETRY_MS_MIN: u64 = 500;

/// The events of a response.
pub(super) type Events = BoxStream<'static, Result<Sse, SseError>>;

/// The reason why a stream of events is given up.
#[derive(Debug, thiserror::Error)]
enum StreamError {
    #[error("an event is larger than a message may be")]
    TooLarge,
    #[error("an event cannot be used: {0}")]
    Message(#[from] MessageError),
    #[error("the connection failed")]
    Connection(#[from] reqwest::Error),
}

/// Returns the events of a body. An event is of limited size, and contains a message or no data.
pub(super) fn events(
    body: impl Stream<Item = reqwest::Result<Bytes>> + Send + 'static,
    requests: RequestLimit,
) -> Events {
    let mut size = EventSize::default();
    let limited = body.map(move |piece| {
        let piece = piece?;
        if size.add(&piece) {
            Ok(piece)
        } else {
            Err(StreamError::TooLarge)
        }
    });
    // After an error, nothing more is read.
    let limited = limited.scan(false, |has_failed, piece| {
        let had_failed = std::mem::replace(has_failed, piece.is_err());
        future::ready((!had_failed).then_some(piece))
    });
    SseStream::from_bytes_stream(limited)
        .map(move |event| event.and_then(|event| checked_event(event, &requests)))
        .boxed()
}

/// Returns the events of a body that the server keeps open. The stream ends if the body is silent for too long, because
/// the connection may be dead. It also ends in place of an error: after the end of a stream, the protocol library waits
/// before it reopens the stream; after an error, it does not wait.
pub(super) fn lasting_events(
    body: impl Stream<Item = reqwest::Result<Bytes>> + Send + 'static,
    requests: RequestLimit,
    silence_max: Duration,
) -> Events {
    let body = stream::unfold(body.boxed(), move |mut body| async move {
        let piece = tokio::time::timeout(silence_max, body.next()).await;
        piece.ok().flatten().map(|piece| (piece, body))
    });
    events(body, requests)
        .take_while(|event| {
            if let Err(error) = event {
                tracing::debug!(%error, "a stream of events of an MCP server ends");
            }
            future::ready(event.is_ok())
        })
        .boxed()
}

/// Returns one event with a message.
pub(super) fn message_event(message: String) -> Sse {
    Sse {
        data: Some(message),
        ..Sse::default()
    }
}

/// Checks the message of an event. Text that is not a message is removed, and so is a request beyond the limit. An
/// event without a message can still carry an id.
fn checked_event(mut event: Sse, requests: &RequestLimit) -> Result<Sse, SseError> {
    event.retry = event.retry.map(|retry| retry.max(RETRY_MS_MIN));
    let data = event.data.take().filter(|data| !data.trim().is_empty());
    event.data = match data.map(|data| message::checked_text(data, requests)) {
        None | Some(Err(MessageError::NotJson | MessageError::NotAMessage | MessageError::TooManyRequests)) => None,
        Some(Ok(data)) => Some(data),
        Some(Err(error @ MessageError::TooManyParts)) => {
            return Err(SseError::Body(Box::new(StreamError::Message(error))));
        }
    };
    Ok(event)
}

/// The size of the event that is being read, without its line breaks.
#[derive(Default)]
struct EventSize {
    bytes: usize,
    is_line_start: bool,
}

impl EventSize {
    /// Adds bytes. Returns whether the event is small enough.
    fn add(&mut self, piece: &[u8]) -> bool {
        for byte in piece {
            match byte {
                b'\n' | b'\r' if self.is_line_start => self.bytes = 0,
                b'\n' => self.is_line_start = true,
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

    async fn read(pieces: Vec<Bytes>) -> Vec<Result<Sse, SseError>> {
        let body = stream::iter(pieces.into_iter().map(Ok));
        events(body, RequestLimit::default()).collect().await
    }

    #[tokio::test]
    async fn events_are_messages_and_other_text_is_left_out() {
        let text = "retry: 0\nid: 1\ndata:\n\n: ping\n\ndata: hello\n\nid: 2\ndata: {\"jsonrpc\": \"2.0\"}\n\n";
        let pieces = text.bytes().map(|byte| Bytes::from(vec![byte])).collect();
        let events: Vec<_> = read(pieces).await.into_iter().map(Result::unwrap).collect();
        let data: Vec<_> = events.iter().filter_map(|event| event.data.as_deref()).collect();
        assert_eq!(data, [r#"{"jsonrpc":"2.0"}"#]);
        assert_eq!(events[0].retry, Some(RETRY_MS_MIN));
        assert_eq!(events.last().unwrap().id.as_deref(), Some("2"));
    }

    // attack: G9
    #[tokio::test]
    async fn an_endless_event_is_given_up() {
        let piece = Bytes::from(vec![b'x'; 1 << 20]);
        let mut pieces = vec![Bytes::from_static(b"data: ")];
        pieces.extend(vec![piece; 20]);
        let events = read(pieces).await;
        assert!(events.last().unwrap().is_err());
        assert!(events.iter().filter(|event| event.is_ok()).count() == 0);
    }

    // attack: G9
    #[tokio::test(start_paused = true)]
    async fn a_stream_that_is_silent_ends() {
        let event = Bytes::from_static(b"data: {\"jsonrpc\": \"2.0\"}\n\n");
        let body = stream::once(future::ready(Ok(event))).chain(stream::pending());
        let started = tokio::time::Instant::now();
        let events = lasting_events(body, RequestLimit::default(), Duration::from_secs(600));
        assert_eq!(events.collect::<Vec<_>>().await.len(), 1);
        assert_eq!(started.elapsed().as_secs(), 600);
    }

    // attack: G9
    #[tokio::test]
    async fn a_stream_that_the_server_keeps_open_ends_at_an_error() {
        let pieces = [
            "data: {\"jsonrpc\": \"2.0\"}\n\n",
            "hello\n\n",
            "data: {\"jsonrpc\": \"2.0\"}\n\n",
        ];
        let body = stream::iter(pieces.map(|piece| Ok(Bytes::from_static(piece.as_bytes()))));
        let events = lasting_events(body, RequestLimit::default(), Duration::from_secs(600));
        let events: Vec<_> = events.collect().await;
        assert_eq!(events.len(), 1);
        assert!(events[0].is_ok());
    }

    // attack: G9
    #[tokio::test]
    async fn a_flood_of_requests_is_left_out_and_responses_are_not() {
        let request = "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n\n".repeat(2_000);
        let text = format!("{request}data: {{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{{}}}}\n\n");
        let events = read(vec![Bytes::from(text)]).await;
        let messages = events.into_iter().filter_map(|event| event.unwrap().data);
        let messages: Vec<_> = messages.collect();
        assert!((1..1_000).contains(&messages.len()), "{}", messages.len());
        assert!(messages.last().unwrap().contains("result"));
    }
}
