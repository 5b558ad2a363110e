//! The response format of the chat-completions API, with the variations of compatible servers.

use serde_json::{Map, Value, json};

use crate::assembly::{CallPiece, ResponseAssembly, counted_bytes};
use crate::client::{ReaderState, ResponseReader};
use crate::decode::Fields;
use crate::http::{AttemptFailure, ProviderError};
use toolwit_agent::model::{FinishReason, TokenUsage};

/// The fields of a message that can contain readable reasoning. Providers use different fields. A server that sends
/// several of them sends the same text in each field.
const REASONING_FIELDS: [&str; 2] = ["reasoning_content", "reasoning"];

/// The fields of an entry of `reasoning_details` whose texts arrive in pieces.
const STREAMED_DETAIL_FIELDS: [&str; 3] = ["data", "summary", "text"];

/// Reads complete responses and the chunks of streams, whose messages have the same fields.
#[derive(Debug, Default)]
pub struct ChunkReader {
    /// The first field in which reasoning arrived. The other fields repeat its text.
    reasoning_field: Option<&'static str>,
    /// The entries of `reasoning_details`, which OpenRouter requires in later requests.
    reasoning_details: Vec<Value>,
    /// The text of `reasoning_content`, which DeepSeek requires in later requests.
    reasoning_content: String,
}

impl ResponseReader for ChunkReader {
    fn read_event(
        &mut self,
        chunk: &Value,
        response: &mut ResponseAssembly<'_>,
    ) -> Result<ReaderState, AttemptFailure> {
        self.read(chunk, "delta", response)?;
        Ok(ReaderState::Open)
    }

    fn read_document(&mut self, document: &Value, response: &mut ResponseAssembly<'_>) -> Result<(), AttemptFailure> {
        if !self.read(document, "message", response)? {
            return Err(AttemptFailure::malformed("it has no choices with a message"));
        }
        Ok(())
    }

    fn finish(&mut self, response: &mut ResponseAssembly<'_>) -> Result<(), AttemptFailure> {
        let mut block = Map::new();
        if !self.reasoning_details.is_empty() {
            block.insert(
                "reasoning_details".to_owned(),
                Value::Array(std::mem::take(&mut self.reasoning_details)),
            );
        }
        if !self.reasoning_content.is_empty() {
            let text = std::mem::take(&mut self.reasoning_content);
            block.insert("reasoning_content".to_owned(), json!(text));
        }
        if block.is_empty() {
            return Ok(());
        }
        response.push_block_at(Value::Object(block), 0, 0)
    }
}

impl ChunkReader {
    /// Reads a response or a chunk of a stream. Its message is in the field `message_key`, or else in `message`. Returns
    /// whether a message was found.
    fn read(
        &mut self,
        body: &Value,
        message_key: &str,
        response: &mut ResponseAssembly<'_>,
    ) -> Result<bool, AttemptFailure> {
        if let Some(counts) = body.non_null("usage") {
            *response.usage_mut() = token_usage(counts);
        }
        let choice = body.items("choices").iter().find(|choice| {
            // Further choices are alternatives to the first choice.
            choice.unsigned_at("/index").unwrap_or_default() == 0
        });
        let Some(choice) = choice else {
            return Ok(false);
        };
        let is_complete = message_key == "message";
        if let Some(error) = choice.non_null("error") {
            return Err(ProviderError::from_json(error).into_failure(200, None));
        }
        let message = choice.non_null(message_key).or_else(|| choice.non_null("message"));
        if let Some(message) = message {
            self.read_message(message, is_complete, response)?;
        }
        // Some servers send an empty reason in each chunk of a stream. It does not end the response.
        let reason = choice.non_null("finish_reason").and_then(Value::as_str);
        if let Some(reason) = reason.filter(|reason| !reason.is_empty() || is_complete) {
            response.set_stop_reason(reason, finish_reason(reason));
        }
        Ok(message.is_some())
    }

    /// Reads a complete message, or the part of a message that a chunk contains.
    fn read_message(
        &mut self,
        message: &Value,
        is_complete: bool,
        response: &mut ResponseAssembly<'_>,
    ) -> Result<(), AttemptFailure> {
        self.read_reasoning(message, response)?;
        match message.get("content") {
            Some(Value::String(text)) => response.push_text(text)?,
            Some(Value::Array(parts)) => {
                for part in parts {
                    match part.text("type") {
                        "thinking" => {
                            for thought in part.items("thinking") {
                                response.push_reasoning(thought.text("text"))?;
                            }
                        }
                        _ => response.push_text(part.text("text"))?,
                    }
                }
            }
            _ => {}
        }
        response.push_refusal(message.text("refusal"))?;
        for (position, call) in (0..).zip(message.items("tool_calls")) {
            // Calls of other types are ignored, because the host declares only functions.
            let Some(function) = call.non_null("function") else {
                continue;
            };
            response.push_call(CallPiece {
                // In a complete response, each entry is a separate call.
                index: if is_complete {
                    Some(position)
                } else {
                    call.unsigned_at("/index")
                },
                id: call.text("id"),
                name: function.text("name"),
                arguments: function.get("arguments"),
            })?;
        }
        Ok(())
    }

    /// Reads the reasoning in a message: as readable text, and in the forms that providers require in later requests.
    fn read_reasoning(&mut self, message: &Value, response: &mut ResponseAssembly<'_>) -> Result<(), AttemptFailure> {
        for field in REASONING_FIELDS {
            let text = message.text(field);
            if !text.is_empty() && *self.reasoning_field.get_or_insert(field) == field {
                response.push_reasoning(text)?;
            }
        }
        let content = message.text("reasoning_content");
        response.reserve(content.len())?;
        self.reasoning_content.push_str(content);
        for detail in message.items("reasoning_details") {
            response.reserve(counted_bytes(detail))?;
            self.add_reasoning_detail(detail);
        }
        Ok(())
    }

    /// Adds an entry of `reasoning_details`, or a piece of the last entry. The pieces of an entry have the same type and
    /// index.
    fn add_reasoning_detail(&mut self, detail: &Value) {
        let is_same_entry = |last: &Value| ["type", "index"].iter().all(|key| last.get(key) == detail.get(key));
        let last = self.reasoning_details.last_mut().filter(|last| is_same_entry(last));
        let (Some(Value::Object(last)), Some(fields)) = (last, detail.as_object()) else {
            self.reasoning_details.push(detail.clone());
            return;
        };
        for (key, value) in fields {
            match (last.get_mut(key), value) {
                (Some(Value::String(text)), Value::String(piece)) if STREAMED_DETAIL_FIELDS.contains(&key.as_str()) => {
                    text.push_str(piece);
                }
                (_, Value::Null) => {}
                _ => {
                    last.insert(key.clone(), value.clone());
                }
            }
        }
    }
}

/// Converts the finish reason. Returns `None` if the reason must be derived from the content: servers also send "stop"
/// with calls, and "tool_calls" without calls.
fn finish_reason(reason: &str) -> Option<FinishReason> {
    match reason {
        "" | "stop" | "eos" | "end_turn" | "tool_calls" | "function_call" => None,
        "length" | "max_tokens" | "model_length" => Some(FinishReason::Length),
        "content_filter" => Some(FinishReason::ContentFilter),
        other => Some(FinishReason::Other(other.to_owned())),
    }
}

/// Parses the token counts. Missing and invalid counts are treated as 0, so that a response never fails because of them.
fn token_usage(usage: &Value) -> TokenUsage {
    let first_count = |pointers: &[&str]| pointers.iter().find_map(|pointer| usage.unsigned_at(pointer));
    let cache_read = first_count(&[
        "/prompt_tokens_details/cached_tokens",
        "/prompt_cache_hit_tokens",
        "/cached_tokens",
    ]);
    let cache_write = first_count(&[
        "/prompt_tokens_details/cache_write_tokens",
        "/cache_creation_input_tokens",
    ]);
    TokenUsage::new(
        usage.unsigned_at("/prompt_tokens").unwrap_or_default(),
        cache_read.unwrap_or_default(),
        usage.unsigned_at("/completion_tokens").unwrap_or_default(),
    )
    .with_cache_write(cache_write.unwrap_or_default())
    .with_reasoning(
        usage
            .unsigned_at("/completion_tokens_details/reasoning_tokens")
            .unwrap_or_default(),
    )
}
