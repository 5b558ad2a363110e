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

/// The field of a call or of a message with data that the provider requires back. Gemini sends the signatures of its thoughts
/// there, as `google.thought_signature`.
pub(super) const EXTRA_CONTENT: &str = "extra_content";

/// The field of a provider block with the [`EXTRA_CONTENT`] of the call that follows the block.
pub(super) const CALL_EXTRA_CONTENT: &str = "call_extra_content";

/// The reasons for the end of a response that stand for a failure of the provider.
const FAILURE_REASONS: [&str; 4] = ["abort", "error", "failed", "insufficient_system_resource"];

/// Reads complete responses and the chunks of streams, whose messages have the same fields.
#[derive(Debug, Default)]
pub struct ChunkReader {
    /// The index of the choice that is read. Further choices are alternatives to it.
    choice_index: Option<u64>,
    /// The first field in which reasoning arrived. The other fields repeat its text.
    reasoning_field: Option<&'static str>,
    /// The entries of `reasoning_details`, which OpenRouter requires in later requests.
    reasoning_details: Vec<Value>,
    /// The text of the reasoning, which DeepSeek, vLLM and Ollama require in later requests.
    reasoning: String,
    /// The [`EXTRA_CONTENT`] of the message.
    extra_content: Option<Value>,
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
            let details = std::mem::take(&mut self.reasoning_details);
            block.insert("reasoning_details".to_owned(), Value::Array(details));
        }
        if let Some(field) = self.reasoning_field.filter(|_| !self.reasoning.is_empty()) {
            // `reasoning_details` contains the text of `reasoning`.
            if field != "reasoning" || block.is_empty() {
                let text = std::mem::take(&mut self.reasoning);
                block.insert(field.to_owned(), json!(text));
            }
        }
        if let Some(extra_content) = self.extra_content.take() {
            block.insert(EXTRA_CONTENT.to_owned(), extra_content);
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
        // Moonshot has the counts in the choice, Groq in a field of its own.
        let places = ["/usage", "/x_groq/usage", "/choices/0/usage"];
        let mut counts = places.iter().filter_map(|place| body.pointer(place));
        if let Some(counts) = counts.find(|counts| counts.is_object()) {
            *response.usage_mut() = token_usage(counts);
        }
        let Some(choice) = self.choice(body, response)? else {
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
            if FAILURE_REASONS.contains(&reason) {
                return Err(AttemptFailure::ended_with_error(reason));
            }
            response.set_stop_reason(reason, finish_reason(reason));
        }
        Ok(message.is_some())
    }

    /// Returns the choice of a response or chunk that is read: the first one of the response. Some servers number it from 1.
    /// If a choice with the index 0 arrives later, it is read instead, unless a person has read a part of the other one.
    fn choice<'b>(
        &mut self,
        body: &'b Value,
        response: &mut ResponseAssembly<'_>,
    ) -> Result<Option<&'b Value>, AttemptFailure> {
        let index_of = |choice: &Value| choice.unsigned_at("/index").unwrap_or_default();
        let choices = body.items("choices");
        let lowest = choices.iter().map(index_of).min();
        let index = match (self.choice_index, lowest) {
            (Some(index), Some(0)) if index != 0 && !response.is_shown() => {
                response.restart()?;
                *self = Self::default();
                0
            }
            (Some(index), _) => index,
            (None, Some(lowest)) => lowest,
            (None, None) => return Ok(None),
        };
        self.choice_index = Some(index);
        Ok(choices.iter().find(|choice| index_of(choice) == index))
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
        self.read_extra_content(message, response)?;
        for (position, call) in (0..).zip(message.items("tool_calls")) {
            // In a complete response, each entry is a separate call.
            let index = if is_complete {
                Some(position)
            } else {
                call.unsigned_at("/index")
            };
            read_call(call, index, response)?;
        }
        // The form of calls before `tool_calls`: a message has at most one.
        if let Some(function) = message
            .non_null("function_call")
            .filter(|_| message.items("tool_calls").is_empty())
        {
            tracing::warn!("the provider sent a call in the outdated field `function_call`");
            response.push_call(CallPiece {
                index: None,
                id: "",
                name: function.text("name"),
                arguments: function.get("arguments"),
            })?;
        }
        Ok(())
    }

    /// Reads the [`EXTRA_CONTENT`] of a message. Of several chunks, the last one with a value counts.
    fn read_extra_content(
        &mut self,
        message: &Value,
        response: &mut ResponseAssembly<'_>,
    ) -> Result<(), AttemptFailure> {
        if let Some(extra_content) = message.non_null(EXTRA_CONTENT) {
            response.reserve(counted_bytes(extra_content))?;
            self.extra_content = Some(extra_content.clone());
        }
        Ok(())
    }

    /// Reads the reasoning in a message: as readable text, and in the forms that providers require in later requests.
    fn read_reasoning(&mut self, message: &Value, response: &mut ResponseAssembly<'_>) -> Result<(), AttemptFailure> {
        for field in REASONING_FIELDS {
            let text = message.text(field);
            if !text.is_empty() && *self.reasoning_field.get_or_insert(field) == field {
                response.push_reasoning(text)?;
                response.reserve(text.len())?;
                self.reasoning.push_str(text);
            }
        }
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

/// Reads a call, or a piece of one. A call without a function is ignored, because the host declares only functions.
fn read_call(call: &Value, index: Option<u64>, response: &mut ResponseAssembly<'_>) -> Result<(), AttemptFailure> {
    let (function, extra_content) = (call.non_null("function"), call.non_null(EXTRA_CONTENT));
    if function.is_none() && extra_content.is_none() {
        return Ok(());
    }
    let position = response.push_located_call(CallPiece {
        index,
        id: call.text("id"),
        name: function.map_or("", |function| function.text("name")),
        arguments: function.and_then(|function| function.get("arguments")),
    })?;
    if let Some(extra_content) = extra_content {
        response.push_block_at(json!({CALL_EXTRA_CONTENT: extra_content}), 0, position)?;
    }
    Ok(())
}

/// Converts the finish reason. Returns `None` if the reason must be derived from the content: servers also send "stop"
/// with calls, and "tool_calls" without calls. Servers spell the reasons in different ways.
fn finish_reason(reason: &str) -> Option<FinishReason> {
    match reason.to_lowercase().replace('-', "_").as_str() {
        "" | "stop" | "eos" | "eos_token" | "end_turn" | "stop_sequence" | "complete" | "completed" | "done" => None,
        "tool_calls" | "tool_call" | "tool_use" | "function_call" | "function_calls" => None,
        "length" | "max_length" | "max_tokens" | "max_output_tokens" | "model_length" => Some(FinishReason::Length),
        "content_filter" | "content_filtered" | "prohibited_content" | "recitation" | "safety" => {
            Some(FinishReason::ContentFilter)
        }
        "refusal" => Some(FinishReason::Refusal),
        _ => Some(FinishReason::Other(reason.to_owned())),
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
