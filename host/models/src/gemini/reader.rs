//! The reader of responses of the Gemini API.

use serde_json::{Value, json};

use super::history::{CALL_SIGNATURE, PART, TEXT_BYTES, TEXT_SIGNATURE};
use crate::assembly::{CallPiece, ResponseAssembly};
use crate::client::{ReaderState, ResponseReader};
use crate::decode::Fields;
use crate::http::AttemptFailure;
use toolwit_agent::model::{FinishReason, TokenUsage};

/// The keys of the parts that the provider's own tools produced. The provider requires these parts back in later requests.
const PROVIDER_PARTS: [&str; 4] = ["codeExecutionResult", "executableCode", "toolCall", "toolResponse"];

/// Reads complete responses and the events of streams, which have the same fields.
#[derive(Debug, Default)]
pub struct CandidateReader {
    /// The number of calls that have been read. The API does not number calls, so that this number becomes their index.
    call_count: u64,
}

impl ResponseReader for CandidateReader {
    fn read_event(
        &mut self,
        event: &Value,
        response: &mut ResponseAssembly<'_>,
    ) -> Result<ReaderState, AttemptFailure> {
        self.read(event, response)?;
        Ok(ReaderState::Open)
    }

    fn read_document(&mut self, document: &Value, response: &mut ResponseAssembly<'_>) -> Result<(), AttemptFailure> {
        self.read(document, response)?;
        if !document["candidates"].is_array() && !response.has_stop_reason() {
            return Err(AttemptFailure::malformed("it has no candidates"));
        }
        Ok(())
    }
}

impl CandidateReader {
    /// Reads a response or an event: its first candidate, its usage and its feedback on the prompt.
    fn read(&mut self, body: &Value, response: &mut ResponseAssembly<'_>) -> Result<(), AttemptFailure> {
        if let Some(counts) = body.non_null("usageMetadata") {
            *response.usage_mut() = token_usage(counts);
        }
        if let Some(candidate) = body.items("candidates").first() {
            for part in candidate["content"].items("parts") {
                self.read_part(part, response)?;
            }
            let reason = candidate.text("finishReason");
            if !reason.is_empty() {
                let finish_reason = match (finish_reason(reason), candidate.text("finishMessage")) {
                    (Some(FinishReason::Other(reason)), message) if !message.is_empty() => {
                        Some(FinishReason::Other(format!("{reason}: {message}")))
                    }
                    (finish_reason, _) => finish_reason,
                };
                response.set_stop_reason(reason, finish_reason);
            }
        }
        let block_reason = body["promptFeedback"].text("blockReason");
        if !block_reason.is_empty() && !response.has_stop_reason() {
            response.set_stop_reason(block_reason, Some(FinishReason::ContentFilter));
        }
        Ok(())
    }

    /// Reads a part of the content.
    fn read_part(&mut self, part: &Value, response: &mut ResponseAssembly<'_>) -> Result<(), AttemptFailure> {
        let signature = part.text("thoughtSignature");
        let text = part.text("text");
        if let Some(call) = part.non_null("functionCall") {
            if !signature.is_empty() {
                response.push_block(json!({CALL_SIGNATURE: signature}))?;
            }
            self.call_count += 1;
            return response.push_call(CallPiece {
                index: Some(self.call_count),
                id: call.text("id"),
                name: call.text("name"),
                arguments: call.get("args"),
            });
        }
        if part["thought"] == true {
            response.push_reasoning(text)?;
            // A summary of thoughts is for the user. It is sent back to the provider only if it has a signature.
            if signature.is_empty() {
                return Ok(());
            }
            return response.push_block(json!({PART: part}));
        }
        if PROVIDER_PARTS.iter().any(|key| part.get(*key).is_some()) {
            return response.push_block(json!({PART: part}));
        }
        if !signature.is_empty() {
            response.push_block(json!({TEXT_SIGNATURE: signature, TEXT_BYTES: text.len()}))?;
        }
        response.push_text(text)
    }
}

/// Converts a finish reason of the API. Returns `None` for `STOP`: the content then determines the [`FinishReason`].
fn finish_reason(reason: &str) -> Option<FinishReason> {
    match reason {
        "STOP" => None,
        "MAX_TOKENS" => Some(FinishReason::Length),
        "BLOCKLIST"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION"
        | "IMAGE_SAFETY"
        | "MODEL_ARMOR"
        | "PROHIBITED_CONTENT"
        | "RECITATION"
        | "SAFETY"
        | "SPII" => Some(FinishReason::ContentFilter),
        other => Some(FinishReason::Other(other.to_owned())),
    }
}

fn token_usage(usage: &Value) -> TokenUsage {
    let count = |pointer| usage.unsigned_at(pointer).unwrap_or_default();
    let thoughts = count("/thoughtsTokenCount");
    TokenUsage::new(
        count("/promptTokenCount"),
        count("/cachedContentTokenCount"),
        count("/candidatesTokenCount").saturating_add(thoughts),
    )
    .with_reasoning(thoughts)
}
