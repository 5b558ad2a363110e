//! The assembly of a response from its pieces.

use serde_json::Value;

use super::call_assembly::{CallAssembly, CallPiece};
use crate::http::AttemptFailure;
use toolwit_agent::model::{ChatDelta, ChatRequest, ChatResponse, FinishReason, TokenUsage};
use toolwit_core::ProviderBlock;

/// The bytes that are counted for each call, block, array and object, in addition to its texts. They limit the number of
/// items that are empty.
const ITEM_BYTES: usize = 128;

/// A response that is assembled from its pieces. Methods that add data fail if the response exceeds its maximum size.
pub struct ResponseAssembly<'r> {
    request: ChatRequest<'r>,
    /// The issuer of the provider blocks: the API and the host that return them, as `API:HOST`.
    block_issuer: &'r str,
    response: ChatResponse,
    calls: CallAssembly,
    /// The reason why the model stopped. `None` if the reason follows from the content: calls, a refusal, or an answer.
    finish_reason: Option<FinishReason>,
    /// The size of the response so far, counted by [`reserve`](Self::reserve).
    bytes: usize,
    bytes_max: usize,
    /// Whether a person has read a part of the response.
    is_shown: bool,
}

impl<'r> ResponseAssembly<'r> {
    pub(crate) fn new(request: ChatRequest<'r>, block_issuer: &'r str, bytes_max: usize) -> Self {
        Self {
            request,
            block_issuer,
            response: ChatResponse::default(),
            calls: CallAssembly::default(),
            finish_reason: None,
            bytes: 0,
            bytes_max,
            is_shown: false,
        }
    }

    /// Returns whether a person has read a part of the response. The request must then not be repeated.
    pub(crate) fn is_shown(&self) -> bool {
        self.is_shown
    }

    /// Discards everything that was read, because the provider starts the response again.
    ///
    /// # Errors
    /// A person has read a part of the response.
    pub(crate) fn restart(&mut self) -> Result<(), AttemptFailure> {
        if self.is_shown {
            let message = "the provider started another response before the first one was complete";
            return Err(AttemptFailure::malformed(message));
        }
        self.response = ChatResponse::default();
        self.calls = CallAssembly::default();
        self.finish_reason = None;
        Ok(())
    }

    /// Adds a piece of the text.
    pub(crate) fn push_text(&mut self, piece: &str) -> Result<(), AttemptFailure> {
        self.reserve(piece.len())?;
        self.response.content.push_str(piece);
        self.emit(ChatDelta::Text(piece));
        Ok(())
    }

    /// Adds a piece of the readable reasoning.
    pub(crate) fn push_reasoning(&mut self, piece: &str) -> Result<(), AttemptFailure> {
        self.reserve(piece.len())?;
        self.response.reasoning.push_str(piece);
        self.emit(ChatDelta::Reasoning(piece));
        Ok(())
    }

    /// Adds a piece of the refusal.
    pub(crate) fn push_refusal(&mut self, piece: &str) -> Result<(), AttemptFailure> {
        if piece.is_empty() {
            return Ok(());
        }
        self.reserve(piece.len())?;
        self.response.refusal.get_or_insert_default().push_str(piece);
        self.emit(ChatDelta::Text(piece));
        Ok(())
    }

    /// Adds a piece of a call.
    pub(crate) fn push_call(&mut self, piece: CallPiece<'_>) -> Result<(), AttemptFailure> {
        self.push_located_call(piece).map(drop)
    }

    /// Adds a piece of a call. Returns the position of the call in the response.
    pub(crate) fn push_located_call(&mut self, piece: CallPiece<'_>) -> Result<usize, AttemptFailure> {
        let argument_text = piece.argument_text();
        let previous_call_count = self.calls.len();
        self.reserve(piece.id.len() + piece.name.len() + argument_text.len())?;
        let pushed = self.calls.push(piece, &argument_text);
        let position = pushed.position;
        if let Some((name, arguments)) = pushed.unemitted {
            self.request.emit(ChatDelta::Call {
                index: position,
                name,
                arguments,
            });
        }
        let added_calls = self.calls.len() - previous_call_count;
        self.reserve(added_calls * ITEM_BYTES)?;
        Ok(position)
    }

    /// Adds a provider block at the current position. The provider requires the data of the block in later requests.
    pub(crate) fn push_block(&mut self, data: Value) -> Result<(), AttemptFailure> {
        self.push_block_at(data, self.response.content.len(), self.calls.len())
    }

    /// Adds a provider block at an earlier position, which [`position`](Self::position) returned.
    pub(crate) fn push_block_at(&mut self, data: Value, text_bytes: usize, calls: usize) -> Result<(), AttemptFailure> {
        self.reserve(ITEM_BYTES + counted_bytes(&data))?;
        self.response.blocks.push(ProviderBlock {
            issuer: self.block_issuer.to_owned(),
            data,
            text_bytes_before: text_bytes,
            calls_before: calls,
        });
        Ok(())
    }

    /// Returns the current position: the number of bytes of the text, and the number of calls.
    pub(crate) fn position(&self) -> (usize, usize) {
        (self.response.content.len(), self.calls.len())
    }

    /// Returns the token usage, for readers to set. A provider may send its counts in several events.
    pub(crate) fn usage_mut(&mut self) -> &mut TokenUsage {
        &mut self.response.usage
    }

    /// Sets the reason why the model stopped: the provider's word, and the [`FinishReason`], which is `None` if it
    /// follows from the content.
    pub(crate) fn set_stop_reason(&mut self, reason: &str, finish_reason: Option<FinishReason>) {
        self.response.stop_reason = Some(reason.to_owned());
        self.finish_reason = finish_reason;
    }

    /// Returns whether the reader has set the reason why the model stopped.
    pub(crate) fn has_stop_reason(&self) -> bool {
        self.response.stop_reason.is_some()
    }

    /// Completes the calls and returns the response.
    pub(crate) fn finish(mut self) -> ChatResponse {
        let reason_of_content = match (&self.response.refusal, self.calls.len()) {
            (Some(_), 0) => FinishReason::Refusal,
            (None, 0) => FinishReason::Stop,
            _ => FinishReason::ToolCalls,
        };
        self.response.finish = self.finish_reason.unwrap_or(reason_of_content);
        let is_complete = self.response.finish.is_complete();
        self.response.tool_calls = self.calls.finish(is_complete, self.request.messages);
        self.response
    }

    /// Passes a piece to the listener of the request, unless the piece is an empty text.
    fn emit(&mut self, delta: ChatDelta<'_>) {
        if matches!(delta, ChatDelta::Text("") | ChatDelta::Reasoning("")) {
            return;
        }
        self.request.emit(delta);
        self.is_shown = self.request.shows_pieces();
    }

    /// Adds to the size of the response. Readers call this method for data that they collect themselves. Fails if the
    /// response exceeds its maximum size.
    pub(crate) fn reserve(&mut self, bytes: usize) -> Result<(), AttemptFailure> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes <= self.bytes_max {
            return Ok(());
        }
        let max = self.bytes_max;
        Err(AttemptFailure::malformed(format!("it has more than {max} bytes")))
    }
}

/// Returns the bytes that are counted for a value: approximately its size in memory.
pub(crate) fn counted_bytes(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + size_of::<Value>(),
        Value::Array(items) => items.iter().map(counted_bytes).sum::<usize>() + ITEM_BYTES,
        Value::Object(fields) => {
            fields
                .iter()
                .map(|(key, value)| key.len() + counted_bytes(value))
                .sum::<usize>()
                + ITEM_BYTES
        }
        _ => size_of::<Value>(),
    }
}
