//! The messages of a conversation in the format of the responses API.

use serde_json::{Value, json};

use super::namespaces::Namespaces;
use crate::client::{CallIdForm, MessagePart, message_parts};
use toolwit_core::{Message, Picture, Role};

/// Returns the messages as items: texts, calls with the namespaces of their tools, results, and the provider blocks of earlier
/// responses. Only those provider blocks are returned that `block_issuer` issued: the API and the host of the model, as
/// `API:HOST`.
pub(super) fn input_items(messages: &[Message], block_issuer: &str, namespaces: &Namespaces<'_>) -> Vec<Value> {
    let mut items = Vec::with_capacity(messages.len());
    for message in messages {
        match &message.role {
            Role::System { content } => items.push(json!({"role": "system", "content": content})),
            Role::User { content } => {
                items.push(json!({"role": "user", "content": content_of(content, &message.pictures)}));
            }
            Role::Assistant {
                content,
                tool_calls,
                blocks,
            } => {
                let parts = message_parts(content, tool_calls, blocks, block_issuer);
                items.extend(parts.into_iter().map(|part| part_item(part, namespaces)));
            }
            Role::Tool {
                tool_call_id, content, ..
            } => items.push(json!({
                "type": "function_call_output",
                "call_id": CallIdForm::Word.apply_to(tool_call_id),
                "output": content_of(content, &message.pictures),
            })),
        }
    }
    items
}

/// Returns a text or, if there are pictures, a list of the text and the pictures.
fn content_of(text: &str, pictures: &[Picture]) -> Value {
    if pictures.is_empty() {
        return json!(text);
    }
    let text_part = (!text.is_empty()).then(|| json!({"type": "input_text", "text": text}));
    let picture_parts = pictures
        .iter()
        .map(|picture| json!({"type": "input_image", "image_url": picture.data_url()}));
    text_part.into_iter().chain(picture_parts).collect()
}

/// Converts a part of an assistant message to an item.
fn part_item(part: MessagePart<'_>, namespaces: &Namespaces<'_>) -> Value {
    match part {
        MessagePart::Text(text) => json!({"role": "assistant", "content": text}),
        MessagePart::Block(data) => data.clone(),
        MessagePart::Call(call) => {
            let mut item = json!({
                "type": "function_call",
                "call_id": CallIdForm::Word.apply_to(&call.id),
                "name": call.name,
                "arguments": call.arguments,
            });
            if let Some(namespace) = namespaces.namespace_of(&call.name) {
                item["namespace"] = json!(namespace);
            }
            item
        }
    }
}
