//! Responses in the format of the messages API.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::assembly::{CallPiece, ResponseAssembly, counted_bytes};
use crate::client::{ReaderState, ResponseReader};
use crate::decode::Fields;
use crate::http::{AttemptFailure, ProviderError};
use toolwit_agent::model::{FinishReason, TokenUsage};

/// Reads complete responses and streams of events.
#[derive(Debug, Default)]
pub struct MessageReader {
    /// The id of the message that is read; empty if the server sends none.
    message_id: String,
    /// The open blocks by their index.
    open_blocks: BTreeMap<u64, OpenBlock>,
    /// The number of calls so far.
    call_count: u64,
    token_counts: TokenCounts,
}

/// A block whose end has not arrived.
#[derive(Debug)]
enum OpenBlock {
    Text,
    Call(OpenCall),
    Opaque(OpaqueBlock),
}

#[derive(Debug)]
struct OpenCall {
    /// The number of the call in the response, which becomes [`CallPiece::index`]. The index of the block is not used,
    /// because another block can have the same index after a second start of the message.
    number: u64,
    /// The arguments in the start of the block. They are used if no pieces of arguments follow.
    input: Value,
    /// Whether pieces of the arguments have arrived.
    has_pieces: bool,
}

/// A block that later requests contain unchanged, such as a thinking block.
#[derive(Debug)]
struct OpaqueBlock {
    data: Value,
    /// The input of a tool that the provider runs: the pieces of its JSON so far.
    input: String,
    /// The position in the response; see [`ResponseAssembly::position`].
    position: (usize, usize),
}

/// The token counts so far. The provider sends cumulative counts, and leaves out those that have not changed.
#[derive(Clone, Copy, Debug, Default)]
struct TokenCounts {
    input: u64,
    cache_read: u64,
    cache_write: u64,
    output: u64,
    thinking: u64,
}

impl ResponseReader for MessageReader {
    fn read_event(
        &mut self,
        event: &Value,
        response: &mut ResponseAssembly<'_>,
    ) -> Result<ReaderState, AttemptFailure> {
        let index = event.unsigned_at("/index").unwrap_or_default();
        match event.text("type") {
            "message_start" => self.start_message(&event["message"], response)?,
            "content_block_start" => self.start_block(index, &event["content_block"], response)?,
            "content_block_delta" => self.add_piece(index, &event["delta"], response)?,
            "content_block_stop" => self.end_block(index, response)?,
            "message_delta" => {
                self.update_usage(&event["usage"], response);
                read_stop_reason(&event["delta"], response);
            }
            "message_stop" => return Ok(ReaderState::Done),
            "error" => return Err(ProviderError::from_json(event).into_failure(200, None)),
            _ => {}
        }
        Ok(ReaderState::Open)
    }

    fn read_document(&mut self, document: &Value, response: &mut ResponseAssembly<'_>) -> Result<(), AttemptFailure> {
        if !document["content"].is_array() {
            return Err(AttemptFailure::malformed("it is not a message with content"));
        }
        for block in document.items("content") {
            self.start_block(0, block, response)?;
            self.end_block(0, response)?;
        }
        self.update_usage(&document["usage"], response);
        read_stop_reason(document, response);
        Ok(())
    }

    /// Ends the blocks whose end did not arrive. Some gateways do not send it.
    fn finish(&mut self, response: &mut ResponseAssembly<'_>) -> Result<(), AttemptFailure> {
        while let Some((index, _)) = self.open_blocks.first_key_value() {
            self.end_unended_block(*index, response)?;
        }
        Ok(())
    }
}

impl MessageReader {
    /// Reads the start of the message. A gateway that tries another provider starts another message, which replaces the one that
    /// was read so far. A second start of the same message changes only its usage.
    ///
    /// # Errors
    /// Another message starts after a person has read a part of the first one.
    fn start_message(&mut self, message: &Value, response: &mut ResponseAssembly<'_>) -> Result<(), AttemptFailure> {
        let id = message.text("id");
        if !self.message_id.is_empty() && !id.is_empty() && self.message_id != id {
            response.restart()?;
            *self = Self::default();
        }
        if !id.is_empty() {
            response.reserve(id.len())?;
            id.clone_into(&mut self.message_id);
        }
        self.update_usage(&message["usage"], response);
        Ok(())
    }

    /// Reads the start of a block. In a complete response, this is the complete block.
    fn start_block(
        &mut self,
        index: u64,
        block: &Value,
        response: &mut ResponseAssembly<'_>,
    ) -> Result<(), AttemptFailure> {
        response.reserve(size_of::<OpenBlock>())?;
        self.end_unended_block(index, response)?;
        let open_block = match block.text("type") {
            "" => return Ok(()),
            "text" => {
                response.push_text(block.text("text"))?;
                OpenBlock::Text
            }
            "tool_use" => {
                self.call_count += 1;
                response.push_call(CallPiece {
                    index: Some(self.call_count),
                    id: block.text("id"),
                    name: block.text("name"),
                    arguments: None,
                })?;
                OpenBlock::Call(OpenCall {
                    number: self.call_count,
                    input: block["input"].clone(),
                    has_pieces: false,
                })
            }
            _ => {
                response.push_reasoning(block.text("thinking"))?;
                response.reserve(counted_bytes(block))?;
                OpenBlock::Opaque(OpaqueBlock {
                    data: block.clone(),
                    input: String::new(),
                    position: response.position(),
                })
            }
        };
        self.open_blocks.insert(index, open_block);
        Ok(())
    }

    /// Reads a piece of a block.
    fn add_piece(
        &mut self,
        index: u64,
        delta: &Value,
        response: &mut ResponseAssembly<'_>,
    ) -> Result<(), AttemptFailure> {
        match (self.open_blocks.get_mut(&index), delta.text("type")) {
            (Some(OpenBlock::Call(call)), "input_json_delta") => {
                call.has_pieces |= !delta.text("partial_json").is_empty();
                response.push_call(CallPiece {
                    index: Some(call.number),
                    arguments: delta.get("partial_json"),
                    ..CallPiece::default()
                })
            }
            (Some(OpenBlock::Opaque(block)), kind) => {
                response.reserve(counted_bytes(delta))?;
                if kind == "thinking_delta" {
                    response.push_reasoning(delta.text("thinking"))?;
                }
                block.push(delta);
                Ok(())
            }
            (_, "text_delta") => response.push_text(delta.text("text")),
            _ => Ok(()),
        }
    }

    /// Ends a block whose end did not arrive, if there is one. A block that later requests would contain unchanged is dropped,
    /// because it may be incomplete.
    fn end_unended_block(&mut self, index: u64, response: &mut ResponseAssembly<'_>) -> Result<(), AttemptFailure> {
        match self.open_blocks.get(&index) {
            Some(OpenBlock::Opaque(_)) => drop(self.open_blocks.remove(&index)),
            _ => self.end_block(index, response)?,
        }
        Ok(())
    }

    /// Reads the end of a block.
    fn end_block(&mut self, index: u64, response: &mut ResponseAssembly<'_>) -> Result<(), AttemptFailure> {
        match self.open_blocks.remove(&index) {
            // An input without fields is not used: either the arguments arrived in pieces, or the call has no arguments.
            Some(OpenBlock::Call(call)) if !call.has_pieces && has_fields(&call.input) => {
                response.push_call(CallPiece {
                    index: Some(call.number),
                    arguments: Some(&call.input),
                    ..CallPiece::default()
                })
            }
            Some(OpenBlock::Opaque(block)) => {
                let (text_bytes, calls) = block.position;
                match block.finish() {
                    Some(data) => response.push_block_at(data, text_bytes, calls),
                    None => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    /// Updates the token counts that `usage` contains. The other counts stay unchanged.
    fn update_usage(&mut self, usage: &Value, response: &mut ResponseAssembly<'_>) {
        let counts = &mut self.token_counts;
        let fields = [
            ("/input_tokens", &mut counts.input),
            ("/cache_read_input_tokens", &mut counts.cache_read),
            ("/cache_creation_input_tokens", &mut counts.cache_write),
            ("/output_tokens", &mut counts.output),
            ("/output_tokens_details/thinking_tokens", &mut counts.thinking),
        ];
        for (pointer, count) in fields {
            *count = usage.unsigned_at(pointer).unwrap_or(*count);
        }
        let cached = counts.cache_read.saturating_add(counts.cache_write);
        *response.usage_mut() = TokenUsage::new(counts.input.saturating_add(cached), counts.cache_read, counts.output)
            .with_cache_write(counts.cache_write)
            .with_reasoning(counts.thinking);
    }
}

impl OpaqueBlock {
    /// Adds a piece: `partial_json` is appended to the input, other texts to the fields of the same name.
    fn push(&mut self, delta: &Value) {
        let Value::Object(pieces) = delta else {
            return;
        };
        for (key, piece) in pieces.iter().filter(|(key, _)| *key != "type") {
            match (key.as_str(), piece) {
                ("partial_json", Value::String(piece)) => self.input.push_str(piece),
                (key, Value::String(piece)) => match &mut self.data[key] {
                    Value::String(text) => text.push_str(piece),
                    field => *field = json!(piece),
                },
                _ => {}
            }
        }
    }

    /// Returns the complete block, or `None` for a thinking block without a signature, which the API would refuse.
    fn finish(mut self) -> Option<Value> {
        if let Ok(input) = serde_json::from_str::<Value>(&self.input) {
            self.data["input"] = input;
        }
        let needs_signature = self.data["type"] == "thinking";
        (!needs_signature || !self.data.text("signature").is_empty()).then_some(self.data)
    }
}

fn has_fields(input: &Value) -> bool {
    input.as_object().is_some_and(|fields| !fields.is_empty())
}

/// Reads the reason why the model stopped, if there is one.
fn read_stop_reason(message: &Value, response: &mut ResponseAssembly<'_>) {
    let reason = message.text("stop_reason");
    if reason.is_empty() {
        return;
    }
    let finish_reason = match reason {
        "end_turn" | "stop_sequence" | "tool_use" => None,
        "max_tokens" | "model_context_window_exceeded" => Some(FinishReason::Length),
        "refusal" => Some(FinishReason::Refusal),
        "pause_turn" => Some(FinishReason::Paused),
        other => Some(FinishReason::Other(other.to_owned())),
    };
    response.set_stop_reason(reason, finish_reason);
}
