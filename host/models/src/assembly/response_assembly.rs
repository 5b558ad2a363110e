//! A response that is assembled from its pieces.

use serde_json::Value;

use super::call_assembly::{CallAssembly, CallPiece, NewPart};
use crate::http::AttemptFailure;
use toolwit_agent::model::{ChatDelta, ChatRequest, ChatResponse, FinishReason, TokenUsage};
use toolwit_core::ProviderBlock;

/// The bytes that a call counts in addition to its texts, so that empty calls are limited too.
const CALL_BYTES: usize = 128;

/// A response that is assembled from its pieces, within a limit of bytes.
pub struct ResponseAssembly<'r> {
    request: ChatRequest<'r>,
    issuer: &'r str,
    response: ChatResponse,
    calls: CallAssembly,
    finish: Option<FinishReason>,
    bytes: usize,
    bytes_max: usize,
    has_emitted: bool,
}

impl<'r> ResponseAssembly<'r> {
    pub(crate) fn new(request: ChatRequest<'r>, issuer: &'r str, bytes_max: usize) -> Self {
        Self {
            request,
            issuer,
            response: ChatResponse::default(),
            calls: CallAssembly::default(),
            finish: None,
            bytes: 0,
            bytes_max,
            has_emitted: false,
        }
    }

    /// Returns whether observers received a part of the response, so that the request must not be repeated.
    pub(crate) fn has_emitted(&self) -> bool {
        self.has_emitted
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
        let arguments = match piece.arguments {
            Some(Value::String(text)) => text.len(),
            Some(Value::Object(fields)) => fields.len().saturating_mul(CALL_BYTES),
            _ => 0,
        };
        let calls_before = self.calls.len();
        self.reserve(piece.id.len() + piece.name.len() + arguments)?;
        let new = self.calls.push(piece);
        if let Some(NewPart {
            position,
            name,
            arguments,
        }) = new
        {
            self.request.emit(ChatDelta::Call {
                index: position,
                name,
                arguments,
            });
            self.has_emitted = self.request.has_listener();
        }
        let added = self.calls.len() - calls_before;
        self.reserve(added * CALL_BYTES)
    }

    /// Adds a part that the provider requires back, at the current position.
    pub(crate) fn push_block(&mut self, data: Value) -> Result<(), AttemptFailure> {
        self.push_block_at(data, self.response.content.len(), self.calls.len())
    }

    /// Adds a part that the provider requires back, at an earlier position.
    pub(crate) fn push_block_at(&mut self, data: Value, text_bytes: usize, calls: usize) -> Result<(), AttemptFailure> {
        self.reserve(CALL_BYTES + json_bytes(&data))?;
        self.response.blocks.push(ProviderBlock {
            issuer: self.issuer.to_owned(),
            data,
            text_bytes_before: text_bytes,
            calls_before: calls,
        });
        Ok(())
    }

    /// Returns the current position: the bytes of the text, and the number of calls.
    pub(crate) fn position(&self) -> (usize, usize) {
        (self.response.content.len(), self.calls.len())
    }

    /// Returns the token usage, to be changed. A provider may send it in parts.
    pub(crate) fn usage_mut(&mut self) -> &mut TokenUsage {
        &mut self.response.usage
    }

    /// Sets the reason why the model stopped, in the provider's words. `finish` is its kind, or `None` if the content decides.
    pub(crate) fn stop(&mut self, word: &str, finish: Option<FinishReason>) {
        self.response.stop_reason = Some(word.to_owned());
        self.finish = finish;
    }

    /// Returns whether the provider named a reason why the model stopped.
    pub(crate) fn has_stopped(&self) -> bool {
        self.response.stop_reason.is_some()
    }

    /// Returns the response.
    pub(crate) fn finish(mut self) -> ChatResponse {
        let from_content = match (&self.response.refusal, self.calls.len()) {
            (Some(_), 0) => FinishReason::Refusal,
            (None, 0) => FinishReason::Stop,
            _ => FinishReason::ToolCalls,
        };
        self.response.finish = self.finish.unwrap_or(from_content);
        let is_complete = self.response.finish.is_complete();
        self.response.tool_calls = self.calls.finish(is_complete, self.request.messages);
        self.response
    }

    fn emit(&mut self, delta: ChatDelta<'_>) {
        if matches!(delta, ChatDelta::Text("") | ChatDelta::Reasoning("")) {
            return;
        }
        self.request.emit(delta);
        self.has_emitted = self.request.has_listener();
    }

    /// Counts bytes that a reader keeps. Fails if the response exceeds its limit.
    pub(crate) fn reserve(&mut self, bytes: usize) -> Result<(), AttemptFailure> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes <= self.bytes_max {
            return Ok(());
        }
        let max = self.bytes_max;
        Err(AttemptFailure::malformed(format!("it has more than {max} bytes")))
    }
}

/// Returns the size of a value in memory, approximately.
pub(crate) fn json_bytes(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(json_bytes).sum::<usize>() + CALL_BYTES,
        Value::Object(fields) => {
            fields
                .iter()
                .map(|(key, value)| key.len() + json_bytes(value))
                .sum::<usize>()
                + CALL_BYTES
        }
        _ => size_of::<Value>(),
    }
}
