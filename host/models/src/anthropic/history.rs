//! The history in the format of the messages API.

use serde_json::{Map, Value, json};

use crate::client::{CallIdForm, MessagePart, message_parts};
use toolwit_core::{Message, Picture, Role};

/// Returns the system prompts as blocks.
pub(super) fn system_blocks(messages: &[Message]) -> Vec<Value> {
    let texts = messages.iter().filter_map(|message| match &message.role {
        Role::System { content } if !content.trim().is_empty() => Some(content),
        _ => None,
    });
    texts.map(|text| json!({"type": "text", "text": text})).collect()
}

/// Marks a block as the end of the part of the prompt that the provider caches. Only texts, pictures and results are marked.
/// Other blocks stay unchanged.
pub(super) fn mark_cached(block: &mut Value) {
    let is_markable = ["text", "image", "tool_result"]
        .iter()
        .any(|kind| block["type"] == *kind);
    if is_markable {
        block["cache_control"] = json!({"type": "ephemeral"});
    }
}

/// Returns the messages without system prompts. Consecutive messages of one role are joined: the API requires that one
/// message contains the results of all calls of a response, and the text of the user that follows the results.
///
/// The messages contain only those provider blocks that `block_issuer` issued: the API and the host of the model, as `API:HOST`.
pub(super) fn messages(messages: &[Message], block_issuer: &str) -> Vec<Value> {
    let mut wire_messages: Vec<Value> = Vec::new();
    for message in messages {
        let (role, blocks) = match &message.role {
            Role::System { .. } => continue,
            Role::User { content } => {
                let pictures = message.pictures.iter().map(picture_block);
                ("user", text_block(content).into_iter().chain(pictures).collect())
            }
            Role::Assistant {
                content,
                tool_calls,
                blocks,
            } => {
                let parts = message_parts(content, tool_calls, blocks, block_issuer);
                ("assistant", parts.into_iter().filter_map(part_block).collect())
            }
            Role::Tool {
                tool_call_id,
                content,
                is_error,
                ..
            } => (
                "user",
                vec![result_block(tool_call_id, content, &message.pictures, *is_error)],
            ),
        };
        append_blocks(&mut wire_messages, role, blocks);
    }
    wire_messages
}

/// Appends blocks to the last message if this message has the role, or else as a new message.
fn append_blocks(wire_messages: &mut Vec<Value>, role: &str, blocks: Vec<Value>) {
    if blocks.is_empty() {
        return;
    }
    let last = wire_messages.last_mut().filter(|last| last["role"] == role);
    match last.and_then(|last| last["content"].as_array_mut()) {
        Some(content) => content.extend(blocks),
        None => wire_messages.push(json!({"role": role, "content": blocks})),
    }
}

/// Returns a text as a block, or `None` for a blank text, which the API refuses.
fn text_block(content: &str) -> Option<Value> {
    (!content.trim().is_empty()).then(|| json!({"type": "text", "text": content}))
}

/// Converts a part of an assistant message to a block. Returns `None` for a blank text.
fn part_block(part: MessagePart<'_>) -> Option<Value> {
    match part {
        MessagePart::Text(content) => text_block(content),
        MessagePart::Block(data) => Some(data.clone()),
        MessagePart::Call(call) => Some(json!({
            "type": "tool_use",
            "id": CallIdForm::Word.apply_to(&call.id),
            "name": call.name,
            // The API refuses an input that is not an object.
            "input": serde_json::from_str::<Map<String, Value>>(&call.arguments).unwrap_or_default(),
        })),
    }
}

/// Returns the result of a call as a block. A result with pictures is not marked as an error, because the API accepts only text
/// in errors; its text describes the error.
fn result_block(id: &str, content: &str, pictures: &[Picture], is_error: bool) -> Value {
    let mut block = json!({"type": "tool_result", "tool_use_id": CallIdForm::Word.apply_to(id), "content": content});
    if !pictures.is_empty() {
        let pictures = pictures.iter().map(picture_block);
        block["content"] = text_block(content).into_iter().chain(pictures).collect();
    } else if is_error {
        block["is_error"] = json!(true);
    }
    block
}

/// Returns a picture as a block.
fn picture_block(picture: &Picture) -> Value {
    let source = json!({"type": "base64", "media_type": picture.media_type(), "data": picture.base64()});
    json!({"type": "image", "source": source})
}
