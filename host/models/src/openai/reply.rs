//! The response format of the chat-completions API, with the variations of compatible servers.

use std::collections::HashSet;

use serde::Deserialize;
use serde_json::Value;

use super::history::{WireCall, content, null_as_default};
use crate::http::{AttemptFailure, HttpReply, ProviderError};
use toolwit_agent::model::{ChatResponse, FinishReason, TokenUsage};
use toolwit_core::{Message, ToolCall};

/// The response of a provider. Unknown fields are ignored.
#[derive(Deserialize)]
struct WireReply {
    #[serde(default, deserialize_with = "null_as_default")]
    choices: Vec<WireChoice>,
    #[serde(default)]
    usage: Value,
    #[serde(default)]
    error: Value,
}

#[derive(Deserialize)]
struct WireChoice {
    message: Option<WireMessage>,
    finish_reason: Option<String>,
    #[serde(default)]
    error: Value,
}

#[derive(Deserialize)]
struct WireMessage {
    #[serde(default, deserialize_with = "content")]
    content: String,
    #[serde(default)]
    refusal: Option<String>,
    #[serde(default, deserialize_with = "null_as_default")]
    tool_calls: Vec<WireCall>,
}

/// Parses the response to a request with this history.
///
/// Missing parts of calls are completed: blank arguments become `{}`, and a call gets a new id if it has none or if its id
/// is already used in this response or in the history (some servers restart their numbering with each response).
pub(super) fn read(reply: &HttpReply, history: &[Message]) -> Result<ChatResponse, AttemptFailure> {
    let wire: WireReply = serde_json::from_slice(&reply.body).map_err(|error| {
        let kind = match reply.content_type.as_str() {
            "" => "of no content type".to_owned(),
            kind => format!("of content type `{kind}`"),
        };
        AttemptFailure::malformed(format!("{} bytes {kind}: {error}", reply.body.len()))
    })?;
    let choice = match wire.choices.into_iter().next() {
        Some(choice) if choice.error.is_null() => choice,
        Some(choice) => return Err(ProviderError::of(&choice.error).failure(200, None)),
        None if wire.error.is_null() => return Err(AttemptFailure::malformed("it has no choices")),
        None => return Err(ProviderError::of(&wire.error).failure(200, None)),
    };
    let message = choice
        .message
        .ok_or_else(|| AttemptFailure::malformed("its choice has no message"))?;
    let text = match message.refusal {
        Some(refusal) if message.content.is_empty() => refusal,
        _ => message.content,
    };
    let mut response = ChatResponse::new(text, calls(message.tool_calls, history));
    response.finish = finish(choice.finish_reason.as_deref(), response.finish);
    response.usage = usage(&wire.usage);
    Ok(response)
}

fn calls(wire: Vec<WireCall>, history: &[Message]) -> Vec<ToolCall> {
    let mut taken: HashSet<String> = history
        .iter()
        .flat_map(Message::tool_calls)
        .map(|call| call.id.clone())
        .collect();
    let offered: HashSet<String> = wire.iter().map(|call| call.id.clone()).collect();
    let mut number = taken.len();
    let mut calls: Vec<ToolCall> = wire.into_iter().map(ToolCall::from).collect();
    for call in &mut calls {
        if call.arguments.trim().is_empty() {
            call.arguments = "{}".to_owned();
        }
        while call.id.is_empty() || taken.contains(&call.id) {
            number += 1;
            let id = format!("call_{number}");
            if !offered.contains(&id) {
                call.id = id;
            }
        }
        taken.insert(call.id.clone());
    }
    calls
}

/// Maps the finish reason. The content takes precedence over "stop" with calls and "tool_calls" without calls.
fn finish(reason: Option<&str>, from_content: FinishReason) -> FinishReason {
    match reason {
        None | Some("" | "stop" | "eos" | "end_turn" | "tool_calls" | "function_call") => from_content,
        Some("length" | "max_tokens") => FinishReason::Length,
        Some("content_filter") => FinishReason::ContentFilter,
        Some(other) => FinishReason::Other(other.to_owned()),
    }
}

/// Parses the token counts. Missing and invalid counts are treated as 0, so that they never fail the response.
fn usage(usage: &Value) -> TokenUsage {
    let count = |pointer: &str| usage.pointer(pointer).and_then(Value::as_u64);
    TokenUsage::new(
        count("/prompt_tokens").unwrap_or_default(),
        count("/prompt_tokens_details/cached_tokens")
            .or_else(|| count("/prompt_cache_hit_tokens"))
            .unwrap_or_default(),
        count("/completion_tokens").unwrap_or_default(),
    )
}

#[cfg(test)]
mod tests;
