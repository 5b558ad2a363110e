//! The messages of the chat-completions API.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};

use super::content::WireContent;
use super::reader::{CALL_EXTRA_CONTENT, EXTRA_CONTENT};
use crate::client::CallIdForm;
use toolwit_core::{Message, ProviderBlock, Role, ToolCall};

/// A message in the format of the API.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "lowercase")]
#[expect(
    clippy::large_enum_variant,
    reason = "most messages are those of the model, and a history has few thousand"
)]
pub(super) enum WireMessage {
    #[serde(alias = "developer")]
    System {
        content: WireContent,
    },
    User {
        content: WireContent,
    },
    Assistant {
        /// `null` if the message has calls and no text. The API requires a text if the message has no calls.
        #[serde(default)]
        content: Option<WireContent>,
        #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
        tool_calls: Vec<WireCall>,
        /// The reasoning as its provider sent it. This field and the following ones are dropped when a history is converted
        /// to messages.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reasoning_content: Option<Value>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reasoning: Option<Value>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reasoning_details: Option<Value>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        extra_content: Option<Value>,
    },
    Tool {
        tool_call_id: String,
        /// The name of the tool. Other clients may write this field. It is never serialized, because the call also
        /// contains the name.
        #[serde(default, skip_serializing)]
        name: Option<String>,
        content: WireContent,
    },
}

/// A call in an assistant message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct WireCall {
    #[serde(default, deserialize_with = "null_as_default")]
    id: String,
    #[serde(rename = "type", default)]
    kind: CallKind,
    function: WireFunction,
    /// The data that the provider requires back with the call, such as the signature of a thought.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    extra_content: Option<Value>,
}

/// The kind of a call. The host declares functions only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum CallKind {
    #[default]
    Function,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct WireFunction {
    name: String,
    /// The arguments as JSON text. Some servers send a JSON object instead.
    #[serde(default, deserialize_with = "deserialize_arguments")]
    arguments: String,
}

impl WireMessage {
    /// Adds a signature to the first call if it has none. `signature` is a placeholder, which the provider documents for calls of
    /// other models.
    pub(super) fn sign_first_call(&mut self, signature: &str) {
        if let Self::Assistant { tool_calls, .. } = self
            && let Some(first_call) = tool_calls.first_mut()
        {
            let signed = || json!({"google": {"thought_signature": signature}});
            first_call.extra_content.get_or_insert_with(signed);
        }
    }

    /// Converts a message. The pictures of a result are not part of its message.
    pub(super) fn new(message: &Message, block_issuer: &str, id_form: CallIdForm) -> Self {
        match &message.role {
            Role::System { content } => Self::System {
                content: WireContent::text(content),
            },
            Role::User { content } => Self::User {
                content: WireContent::text(content).with_pictures(&message.pictures),
            },
            Role::Assistant {
                content,
                tool_calls,
                blocks,
            } => Self::Assistant {
                content: (!content.is_empty() || tool_calls.is_empty()).then(|| WireContent::text(content)),
                tool_calls: tool_calls
                    .iter()
                    .enumerate()
                    .map(|(position, call)| {
                        let mut wire_call = WireCall::new(call, id_form);
                        wire_call.extra_content = call_extra_content(blocks, block_issuer, position);
                        wire_call
                    })
                    .collect(),
                // Some models refuse the reasoning of a message without calls.
                reasoning_content: block_field(blocks, block_issuer, "reasoning_content")
                    .filter(|_| !tool_calls.is_empty()),
                reasoning: block_field(blocks, block_issuer, "reasoning").filter(|_| !tool_calls.is_empty()),
                reasoning_details: block_field(blocks, block_issuer, "reasoning_details"),
                extra_content: block_field(blocks, block_issuer, EXTRA_CONTENT),
            },
            Role::Tool {
                tool_call_id, content, ..
            } => Self::Tool {
                tool_call_id: id_form.apply_to(tool_call_id).into_owned(),
                name: None,
                content: WireContent::text(content),
            },
        }
    }
}

/// Returns the value of a field, from the first provider block of `block_issuer` that contains the field.
fn block_field(blocks: &[ProviderBlock], block_issuer: &str, field: &str) -> Option<Value> {
    let mut blocks_of_issuer = blocks.iter().filter(|block| block.issuer == block_issuer);
    blocks_of_issuer.find_map(|block| block.data.get(field).cloned())
}

/// Returns the extra content of the call at a position, from the provider block of `block_issuer` before the call.
fn call_extra_content(blocks: &[ProviderBlock], block_issuer: &str, position: usize) -> Option<Value> {
    let mut blocks_before_call = blocks
        .iter()
        .filter(|block| block.issuer == block_issuer && block.calls_before == position);
    blocks_before_call.find_map(|block| block.data.get(CALL_EXTRA_CONTENT).cloned())
}

impl WireCall {
    fn new(call: &ToolCall, id_form: CallIdForm) -> Self {
        Self {
            id: id_form.apply_to(&call.id).into_owned(),
            kind: CallKind::Function,
            function: WireFunction {
                name: call.name.clone(),
                arguments: call.arguments.clone(),
            },
            extra_content: None,
        }
    }
}

impl From<WireCall> for ToolCall {
    fn from(call: WireCall) -> Self {
        Self {
            id: call.id,
            name: call.function.name,
            arguments: call.function.arguments,
        }
    }
}

/// Deserializes arguments: a text, `null` or any other JSON value, which becomes its text.
fn deserialize_arguments<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::String(text) => text,
        Value::Null => String::new(),
        other => other.to_string(),
    })
}

/// Deserializes a value. `null` becomes the default.
fn null_as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
