//! The messages of a conversation in the format of the Gemini API.

use serde_json::{Value, json};

use crate::client::{MessagePart, message_parts};
use crate::decode::Fields;
use toolwit_core::{Message, Picture, ProviderBlock, Role, ToolCall};

/// The field of a provider block that contains the signature of a call. The call follows the block in the message.
pub(super) const CALL_SIGNATURE: &str = "call_signature";

/// The field of a provider block that contains the signature of a text. The text follows the block in the message.
pub(super) const TEXT_SIGNATURE: &str = "text_signature";

/// The field of a provider block that contains the length of the text with the [signature](TEXT_SIGNATURE), in bytes.
pub(super) const TEXT_BYTES: &str = "text_bytes";

/// The field of a provider block that contains a part of a message. The part is sent back unchanged.
pub(super) const PART: &str = "part";

/// The placeholder that the API documents for a call without a signature, such as a call of another model.
const SIGNATURE_PLACEHOLDER: &str = "skip_thought_signature_validator";

/// A part of a model's name. The models whose names contain it require a signature in the first call of each message, and accept
/// pictures in results.
const SIGNATURE_MODEL_NAME_PART: &str = "gemini-3";

/// Returns the system prompts as one instruction, or `None` if there are no system prompts.
pub(super) fn system_instruction(messages: &[Message]) -> Option<Value> {
    let texts = messages.iter().filter_map(|message| match &message.role {
        Role::System { content } if !content.is_empty() => Some(json!({"text": content})),
        _ => None,
    });
    let parts: Vec<Value> = texts.collect();
    (!parts.is_empty()).then(|| json!({"parts": parts}))
}

/// Returns the messages without the system prompts. Consecutive tool results become one message, because the API requires the
/// results of all calls of a response in one message.
///
/// The messages contain only those provider blocks that `block_issuer` issued. It is the API and the host of the model, as
/// `API:HOST`. Provider blocks of other issuers are skipped.
pub(super) fn contents(messages: &[Message], block_issuer: &str, model: &str) -> Vec<Value> {
    let mut contents: Vec<Value> = Vec::new();
    let mut follows_result = false;
    for message in messages {
        let is_result = matches!(message.role, Role::Tool { .. });
        match &message.role {
            Role::System { .. } => continue,
            Role::User { content } => {
                let mut parts = vec![json!({"text": content})];
                if content.is_empty() && !message.pictures.is_empty() {
                    parts.clear();
                }
                parts.extend(message.pictures.iter().map(picture_part));
                contents.push(json!({"role": "user", "parts": parts}));
            }
            Role::Assistant {
                content,
                tool_calls,
                blocks,
            } => {
                let mut parts = model_parts(content, tool_calls, blocks, block_issuer);
                if model.contains(SIGNATURE_MODEL_NAME_PART) {
                    sign_first_call(&mut parts);
                }
                if !parts.is_empty() {
                    contents.push(json!({"role": "model", "parts": parts}));
                }
            }
            Role::Tool {
                tool_call_id,
                name,
                content,
                is_error,
            } => {
                let key = if *is_error { "error" } else { "output" };
                let mut part =
                    json!({"functionResponse": {"id": tool_call_id, "name": name, "response": {key: content}}});
                let pictures = message.pictures.iter().map(picture_part);
                // Earlier models accept no pictures in a result, but next to it.
                let mut new_parts = if model.contains(SIGNATURE_MODEL_NAME_PART) && !message.pictures.is_empty() {
                    part["functionResponse"]["parts"] = pictures.collect();
                    vec![part]
                } else {
                    std::iter::once(part).chain(pictures).collect()
                };
                let last = contents.last_mut().filter(|_| follows_result);
                match last.and_then(|last| last["parts"].as_array_mut()) {
                    Some(parts) => parts.append(&mut new_parts),
                    None => contents.push(json!({"role": "user", "parts": new_parts})),
                }
            }
        }
        follows_result = is_result;
    }
    contents
}

fn picture_part(picture: &Picture) -> Value {
    json!({"inlineData": {"mimeType": picture.media_type(), "data": picture.base64()}})
}

/// Returns the parts of a message of the model, with the signatures that the provider issued.
fn model_parts(content: &str, calls: &[ToolCall], blocks: &[ProviderBlock], block_issuer: &str) -> Vec<Value> {
    let mut parts: Vec<Value> = Vec::new();
    let mut call_signature = None;
    let mut text_signature: Option<(&str, usize)> = None;
    for part in message_parts(content, calls, blocks, block_issuer) {
        match part {
            MessagePart::Text(text) => {
                let (signed, unsigned) = match text_signature.take() {
                    Some((signature, bytes)) => match text.split_at_checked(bytes) {
                        Some((signed, unsigned)) => (Some((signed, signature)), unsigned),
                        // The text has changed since the response arrived.
                        None => (Some((text, signature)), ""),
                    },
                    None => (None, text),
                };
                if let Some((text, signature)) = signed {
                    parts.push(json!({"text": text, "thoughtSignature": signature}));
                }
                if !unsigned.is_empty() {
                    parts.push(json!({"text": unsigned}));
                }
            }
            MessagePart::Call(call) => {
                let arguments = serde_json::from_str(&call.arguments).unwrap_or_else(|_| json!({}));
                let arguments: Value = arguments;
                let mut part = json!({"functionCall": {"id": call.id, "name": call.name, "args": arguments}});
                if let Some(signature) = call_signature.take() {
                    part["thoughtSignature"] = json!(signature);
                }
                parts.push(part);
            }
            MessagePart::Block(data) => {
                let text_bytes = data
                    .unsigned_at("/text_bytes")
                    .and_then(|bytes| usize::try_from(bytes).ok());
                if let Some(part) = data.get(PART) {
                    parts.push(part.clone());
                } else if let (Some(signature), Some(bytes)) = (data.get(TEXT_SIGNATURE), text_bytes) {
                    let signature = signature.as_str().unwrap_or_default();
                    if bytes == 0 {
                        parts.push(json!({"text": "", "thoughtSignature": signature}));
                    } else {
                        text_signature = Some((signature, bytes));
                    }
                } else {
                    call_signature = data.get(CALL_SIGNATURE).and_then(Value::as_str);
                }
            }
        }
    }
    parts
}

/// Adds [`SIGNATURE_PLACEHOLDER`] to the first call of a message if this call has no signature.
fn sign_first_call(parts: &mut [Value]) {
    let first = parts.iter_mut().find(|part| part.get("functionCall").is_some());
    if let Some(call) = first.filter(|call| call.get("thoughtSignature").is_none()) {
        call["thoughtSignature"] = json!(SIGNATURE_PLACEHOLDER);
    }
}
