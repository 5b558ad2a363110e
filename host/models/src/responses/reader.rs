//! The reader of responses of the OpenAI responses API.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::assembly::{CallPiece, ResponseAssembly};
use crate::client::{ReaderState, ResponseReader};
use crate::decode::Fields;
use crate::http::{AttemptFailure, ProviderError};
use toolwit_agent::model::{FinishReason, TokenUsage};

/// The separator between the parts of a reasoning summary.
const PART_SEPARATOR: &str = "\n\n";

/// Reads complete responses and streams of events.
///
/// In a stream, each output item arrives three times: in pieces, as a complete item, and in the final response. The reader reads
/// the pieces when they arrive. From the complete item, it reads only the content that did not arrive in pieces.
#[derive(Debug, Default)]
pub struct ItemReader {
    /// The id of the response that is read; empty if the server sends none.
    response_id: String,
    /// The progress of each item, by its `output_index`.
    items: HashMap<u64, ItemProgress>,
    /// The `output_index` of each item, by the item's `id` and by its `call_id`. It identifies an item in the final response, where
    /// the position of an item differs from its index if the server omits earlier items.
    indexes: HashMap<String, u64>,
}

/// The progress of reading an output item: the number of bytes read of each of its texts, and whether it is complete.
#[derive(Clone, Copy, Debug, Default)]
struct ItemProgress {
    text_bytes: usize,
    refusal_bytes: usize,
    reasoning_bytes: usize,
    argument_bytes: usize,
    /// The index of the last part of the reasoning, or of its summary.
    reasoning_part: u64,
    /// Whether the name of a call has been read.
    has_name: bool,
    is_complete: bool,
}

impl ResponseReader for ItemReader {
    fn read_event(
        &mut self,
        event: &Value,
        response: &mut ResponseAssembly<'_>,
    ) -> Result<ReaderState, AttemptFailure> {
        if event.text("type") == "response.created" {
            self.start_response(event["response"].text("id"), response)?;
        }
        let index = event.unsigned_at("/output_index").unwrap_or_default();
        if !self.items.contains_key(&index) {
            response.reserve(size_of::<ItemProgress>())?;
        }
        for id in [
            event.text("item_id"),
            event["item"].text("id"),
            event["item"].text("call_id"),
        ] {
            self.record_index(id, index, response)?;
        }
        let progress = self.items.entry(index).or_default();
        let piece = event.text("delta");
        match event.text("type") {
            "response.output_text.delta" => {
                progress.text_bytes += piece.len();
                response.push_text(piece)?;
            }
            "response.refusal.delta" => {
                progress.refusal_bytes += piece.len();
                response.push_refusal(piece)?;
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                let part = event
                    .unsigned_at("/summary_index")
                    .or_else(|| event.unsigned_at("/content_index"));
                let part = part.unwrap_or_default();
                if part > progress.reasoning_part {
                    progress.reasoning_part = part;
                    progress.reasoning_bytes += PART_SEPARATOR.len();
                    response.push_reasoning(PART_SEPARATOR)?;
                }
                progress.reasoning_bytes += piece.len();
                response.push_reasoning(piece)?;
            }
            "response.function_call_arguments.delta" => {
                progress.argument_bytes += piece.len();
                add_arguments(index, piece, response)?;
            }
            "response.output_item.added" if event["item"].text("type") == "function_call" => {
                progress.add_call(index, &event["item"], response)?;
            }
            "response.output_item.done" => self.read_item(index, &event["item"], response)?,
            "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled" => {
                self.read_complete_response(&event["response"], response)?;
                return Ok(ReaderState::Done);
            }
            "error" => return Err(ProviderError::from_json(event).into_failure(200, None)),
            _ => {}
        }
        Ok(ReaderState::Open)
    }

    fn read_document(&mut self, document: &Value, response: &mut ResponseAssembly<'_>) -> Result<(), AttemptFailure> {
        if !document["output"].is_array() {
            return Err(AttemptFailure::malformed("it is not a response with output"));
        }
        self.read_complete_response(document, response)
    }
}

impl ItemReader {
    /// Reads the start of the response. A gateway that tries another provider starts another response, which replaces the one
    /// that was read so far.
    ///
    /// # Errors
    /// Another response starts after a person has read a part of the first one.
    fn start_response(&mut self, id: &str, response: &mut ResponseAssembly<'_>) -> Result<(), AttemptFailure> {
        if !self.response_id.is_empty() && !id.is_empty() && self.response_id != id {
            response.restart()?;
            *self = Self::default();
        }
        if !id.is_empty() {
            response.reserve(id.len())?;
            id.clone_into(&mut self.response_id);
        }
        Ok(())
    }

    /// Reads a complete response: its items, usage and status.
    fn read_complete_response(
        &mut self,
        body: &Value,
        response: &mut ResponseAssembly<'_>,
    ) -> Result<(), AttemptFailure> {
        if let Some(error) = body.non_null("error") {
            return Err(ProviderError::from_json(error).into_failure(200, None));
        }
        for (position, item) in (0..).zip(body.items("output")) {
            let ids = [item.text("id"), item.text("call_id")];
            let index = ids.iter().find_map(|id| self.indexes.get(*id).copied());
            self.read_item(index.unwrap_or(position), item, response)?;
        }
        let count = |pointer| body["usage"].unsigned_at(pointer).unwrap_or_default();
        *response.usage_mut() = TokenUsage::new(
            count("/input_tokens"),
            count("/input_tokens_details/cached_tokens"),
            count("/output_tokens"),
        )
        .with_cache_write(count("/input_tokens_details/cache_write_tokens"))
        .with_reasoning(count("/output_tokens_details/reasoning_tokens"));
        let reason = match body["incomplete_details"].text("reason") {
            "" => body.text("status"),
            reason => reason,
        };
        let finish_reason = match reason {
            "" | "complete" | "completed" => None,
            "max_output_tokens" => Some(FinishReason::Length),
            "content_filter" => Some(FinishReason::ContentFilter),
            other => Some(FinishReason::Other(other.to_owned())),
        };
        response.set_stop_reason(reason, finish_reason);
        Ok(())
    }

    /// Records that the item with this id or call id has this `output_index`.
    fn record_index(
        &mut self,
        id: &str,
        index: u64,
        response: &mut ResponseAssembly<'_>,
    ) -> Result<(), AttemptFailure> {
        if !id.is_empty() && !self.indexes.contains_key(id) {
            response.reserve(id.len() + size_of::<(String, u64)>())?;
            self.indexes.insert(id.to_owned(), index);
        }
        Ok(())
    }

    /// Reads the content of a complete item that did not arrive in pieces.
    fn read_item(
        &mut self,
        index: u64,
        item: &Value,
        response: &mut ResponseAssembly<'_>,
    ) -> Result<(), AttemptFailure> {
        let progress = self.items.entry(index).or_default();
        if std::mem::replace(&mut progress.is_complete, true) {
            return Ok(());
        }
        match item.text("type") {
            "message" => {
                let joined_text = |part_type: &str, key: &str| -> String {
                    let parts = item.items("content").iter();
                    parts
                        .filter(|part| part.text("type") == part_type)
                        .map(|part| part.text(key))
                        .collect()
                };
                response.push_text(unread(&joined_text("output_text", "text"), progress.text_bytes))?;
                response.push_refusal(unread(&joined_text("refusal", "refusal"), progress.refusal_bytes))
            }
            "function_call" => {
                progress.add_call(index, item, response)?;
                add_arguments(index, unread(item.text("arguments"), progress.argument_bytes), response)
            }
            "reasoning" => {
                let parts = match item.items("summary") {
                    [] => item.items("content"),
                    parts => parts,
                };
                let texts: Vec<&str> = parts.iter().map(|part| part.text("text")).collect();
                response.push_reasoning(unread(&texts.join(PART_SEPARATOR), progress.reasoning_bytes))?;
                // The provider does not store the item. Therefore, only an item with encrypted content can be sent back.
                if item.text("encrypted_content").is_empty() {
                    return Ok(());
                }
                response.push_block(without_status(item))
            }
            "compaction" | "tool_search_call" | "tool_search_output" => response.push_block(without_status(item)),
            _ => Ok(()),
        }
    }
}

impl ItemProgress {
    /// Adds the name and the id of a call, unless they have been added. The index of the item is the index of the call.
    fn add_call(
        &mut self,
        index: u64,
        item: &Value,
        response: &mut ResponseAssembly<'_>,
    ) -> Result<(), AttemptFailure> {
        if std::mem::replace(&mut self.has_name, true) {
            return Ok(());
        }
        response.push_call(CallPiece {
            index: Some(index),
            id: item.text("call_id"),
            name: item.text("name"),
            arguments: None,
        })
    }
}

/// Adds a piece of the arguments of a call.
fn add_arguments(index: u64, piece: &str, response: &mut ResponseAssembly<'_>) -> Result<(), AttemptFailure> {
    response.push_call(CallPiece {
        index: Some(index),
        arguments: Some(&json!(piece)),
        ..CallPiece::default()
    })
}

/// Returns the end of a text, without the bytes that have been read.
fn unread(text: &str, bytes_read: usize) -> &str {
    text.get(bytes_read..).unwrap_or_default()
}

/// Returns an item without its status, which the API refuses in a request.
fn without_status(item: &Value) -> Value {
    let mut item = item.clone();
    if let Some(fields) = item.as_object_mut() {
        fields.shift_remove("status");
    }
    item
}
