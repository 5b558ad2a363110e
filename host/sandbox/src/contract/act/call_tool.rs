//! The function `call-tool`, and the collector of the events in its result.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::sync::oneshot;
use wasmtime::component::{Func, Source, StreamConsumer, StreamResult};
use wasmtime::{AsContextMut as _, Store, StoreContextMut};

use super::types::{LocalizedString, Metadata, ToolEvent, ToolResult};
use crate::contract::{ContractFunction, cbor};
use crate::link::host::host_state::HostState;
use crate::link::limits::streams_too_large::StreamsTooLarge;
use toolwit_core::Arguments;

/// The maximum number of events that are read from a stream at once.
const EVENTS_PER_READ: usize = 16;

/// The estimated memory of an event without its content, in bytes: the event itself, its text in the result, and an
/// artifact.
const EVENT_BYTES: usize = 1 << 10;

/// The estimated memory of a metadata entry or of a translation, without its key and value, in bytes.
const ENTRY_BYTES: usize = 64;

/// The function `call-tool`, with its arguments.
pub(crate) struct CallTool {
    pub(crate) index: usize,
    name: String,
    /// The arguments as CBOR.
    arguments: Vec<u8>,
}

impl CallTool {
    pub(crate) fn new(index: usize, name: &str, arguments: &Arguments) -> Self {
        Self {
            index,
            name: name.to_owned(),
            arguments: cbor::encode(arguments),
        }
    }
}

impl ContractFunction for CallTool {
    type Output = Vec<ToolEvent>;

    fn index(&self) -> usize {
        self.index
    }

    async fn run(
        self,
        store: &mut Store<HostState>,
        func: Func,
        stream_bytes_max: u64,
    ) -> wasmtime::Result<Vec<ToolEvent>> {
        let call = func.typed::<(String, Vec<u8>, Metadata), (ToolResult,)>(&*store)?;
        let outcome = store
            .run_concurrent(async |accessor| {
                let arguments = (self.name, self.arguments, Metadata::new());
                let (result,) = call.call_concurrent(accessor, arguments).await?;
                let stream = match result {
                    ToolResult::Immediate(events) => {
                        let bytes = events.iter().map(event_bytes).sum::<usize>() as u64;
                        return if bytes > stream_bytes_max {
                            Err(StreamsTooLarge(stream_bytes_max).into())
                        } else {
                            Ok(events)
                        };
                    }
                    ToolResult::Streaming(stream) => stream,
                };
                let (sender, receiver) = oneshot::channel();
                let collector = EventCollector {
                    events: Vec::new(),
                    remaining_bytes: stream_bytes_max,
                    bytes_max: stream_bytes_max,
                    is_too_large: false,
                    sender: Some(sender),
                };
                accessor.with(|mut store| stream.pipe(store.as_context_mut(), collector))?;
                receiver.await?
            })
            .await;
        outcome?
    }
}

/// Collects the events of a stream, and delivers them when wasmtime drops the collector at the end of the stream.
struct EventCollector {
    events: Vec<ToolEvent>,
    remaining_bytes: u64,
    bytes_max: u64,
    /// Whether the events exceed `bytes_max`.
    is_too_large: bool,
    sender: Option<oneshot::Sender<wasmtime::Result<Vec<ToolEvent>>>>,
}

impl EventCollector {
    fn deliver(&mut self) {
        let collected = if self.is_too_large {
            Err(StreamsTooLarge(self.bytes_max).into())
        } else {
            Ok(std::mem::take(&mut self.events))
        };
        if let Some(sender) = self.sender.take() {
            // Sending fails only if the call has already ended, and then the events are not needed.
            let _ = sender.send(collected);
        }
    }
}

impl Drop for EventCollector {
    fn drop(&mut self) {
        self.deliver();
    }
}

impl StreamConsumer<HostState> for EventCollector {
    type Item = ToolEvent;

    fn poll_consume(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
        mut store: StoreContextMut<HostState>,
        mut source: Source<'_, ToolEvent>,
        _finish: bool,
    ) -> Poll<wasmtime::Result<StreamResult>> {
        let count = source.remaining(&mut store).min(EVENTS_PER_READ);
        if count == 0 {
            return Poll::Ready(Ok(StreamResult::Completed));
        }
        let mut events = Vec::with_capacity(count);
        source.read(&mut store, &mut events)?;
        let bytes = events.iter().map(event_bytes).sum::<usize>() as u64;
        match self.remaining_bytes.checked_sub(bytes) {
            Some(remaining) => self.remaining_bytes = remaining,
            None => {
                self.events = Vec::new();
                self.is_too_large = true;
                return Poll::Ready(Ok(StreamResult::Dropped));
            }
        }
        // An error ends the result, so no further events are read.
        let has_ended = events.iter().any(|event| matches!(event, ToolEvent::Error(_)));
        self.events.append(&mut events);
        if has_ended {
            return Poll::Ready(Ok(StreamResult::Dropped));
        }
        Poll::Ready(Ok(StreamResult::Completed))
    }
}

/// Returns the estimated memory of an event, in bytes.
fn event_bytes(event: &ToolEvent) -> usize {
    EVENT_BYTES
        + match event {
            ToolEvent::Content(part) => {
                part.data.len() + part.mime_type.as_ref().map_or(0, String::len) + metadata_bytes(&part.metadata)
            }
            ToolEvent::Error(error) => error.kind.len() + text_bytes(&error.message) + metadata_bytes(&error.metadata),
        }
}

fn text_bytes(text: &LocalizedString) -> usize {
    let translation_bytes = |(tag, text): &(String, String)| tag.len() + text.len() + ENTRY_BYTES;
    match text {
        LocalizedString::Plain(text) => text.len(),
        LocalizedString::Localized(texts) => texts.iter().map(translation_bytes).sum(),
    }
}

fn metadata_bytes(metadata: &Metadata) -> usize {
    let entries = metadata.iter();
    entries.map(|(key, value)| key.len() + value.len() + ENTRY_BYTES).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::act::types::ActError;

    #[test]
    fn the_bytes_of_an_error_include_its_texts_and_metadata() {
        let text = || "x".repeat(10_000);
        let error = |message, metadata| {
            event_bytes(&ToolEvent::Error(ActError {
                kind: text(),
                message,
                metadata,
            }))
        };
        let translated = LocalizedString::Localized(vec![("en".to_owned(), text()), ("de".to_owned(), text())]);
        assert!(error(LocalizedString::Plain(text()), Metadata::new()) >= 20_000);
        assert!(error(translated, Metadata::new()) >= 30_000);
        let metadata = vec![("key".to_owned(), vec![0; 10_000])];
        assert!(error(LocalizedString::Plain(String::new()), metadata) >= 20_000);
    }
}
