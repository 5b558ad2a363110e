//! The history format of the chat-completions API.

use std::collections::HashMap;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::client::CallIdForm;
use toolwit_agent::model::ModelError;
use toolwit_core::{Message, ProviderBlock, Role, ToolCall};

/// A history in the format of the chat-completions API, which can be serialized and deserialized as JSON.
///
/// Roles, texts, calls with their ids, names and argument texts, and the call ids of results are preserved. The format
/// has no field for the time of a message or for whether a result is an error: after deserialization these are the
/// current time and `false`. The provider blocks of messages are not serialized. Images and audio in a history of
/// another client are dropped; its reasoning is dropped by [`into_messages`](Self::into_messages).
///
/// ```
/// use toolwit_core::Message;
/// use toolwit_models::OpenAiHistory;
///
/// let json = serde_json::to_string(&OpenAiHistory::from([Message::user("hi")].as_slice()))?;
/// assert_eq!(json, r#"[{"role":"user","content":"hi"}]"#);
/// let history: OpenAiHistory = serde_json::from_str(&json)?;
/// assert_eq!(history.into_messages()?[0].content(), "hi");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OpenAiHistory(Vec<WireMessage>);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "lowercase")]
enum WireMessage {
    #[serde(alias = "developer")]
    System {
        #[serde(deserialize_with = "deserialize_content")]
        content: String,
    },
    User {
        #[serde(deserialize_with = "deserialize_content")]
        content: String,
    },
    Assistant {
        /// `null` if the message has calls and no text. The API requires a text if the message has no calls.
        #[serde(default, deserialize_with = "deserialize_some_content")]
        content: Option<String>,
        #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_as_default")]
        tool_calls: Vec<WireCall>,
        /// The reasoning as its provider sent it. This field and `reasoning_details` are dropped when a history is
        /// converted to messages.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reasoning_content: Option<Value>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reasoning_details: Option<Value>,
    },
    Tool {
        tool_call_id: String,
        /// The name of the tool. Other clients may write this field. It is never serialized, because the call also
        /// contains the name.
        #[serde(default, skip_serializing)]
        name: Option<String>,
        #[serde(deserialize_with = "deserialize_content")]
        content: String,
    },
}

/// A call in an assistant message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct WireCall {
    #[serde(default, deserialize_with = "null_as_default")]
    id: String,
    #[serde(rename = "type", default)]
    kind: CallKind,
    function: WireFunction,
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

impl From<&[Message]> for OpenAiHistory {
    fn from(messages: &[Message]) -> Self {
        // No provider block has an empty issuer. The history therefore contains no reasoning.
        let messages = messages
            .iter()
            .map(|message| WireMessage::new(message, "", CallIdForm::Any));
        Self(messages.collect())
    }
}

impl OpenAiHistory {
    /// Converts messages for a provider, with the reasoning from those provider blocks that `block_issuer` issued.
    pub(super) fn for_provider(messages: &[Message], block_issuer: &str, id_form: CallIdForm) -> Self {
        let messages = messages
            .iter()
            .map(|message| WireMessage::new(message, block_issuer, id_form));
        Self(messages.collect())
    }

    /// Converts the history to messages.
    ///
    /// # Errors
    /// [`ModelError::Configuration`] for a result that has no tool name and whose call is not in the history before it.
    pub fn into_messages(self) -> Result<Vec<Message>, ModelError> {
        let mut names: HashMap<String, String> = HashMap::new();
        let mut messages = Vec::with_capacity(self.0.len());
        for message in self.0 {
            messages.push(Message::new(match message {
                WireMessage::System { content } => Role::System { content },
                WireMessage::User { content } => Role::User { content },
                WireMessage::Assistant {
                    content, tool_calls, ..
                } => {
                    let tool_calls: Vec<ToolCall> = tool_calls.into_iter().map(ToolCall::from).collect();
                    names.extend(tool_calls.iter().map(|call| (call.id.clone(), call.name.clone())));
                    Role::Assistant {
                        content: content.unwrap_or_default(),
                        tool_calls,
                        blocks: Vec::new(),
                    }
                }
                WireMessage::Tool {
                    tool_call_id,
                    name,
                    content,
                } => Role::Tool {
                    name: match name.or_else(|| names.get(&tool_call_id).cloned()) {
                        Some(name) => name,
                        None => return Err(result_without_call(&tool_call_id)),
                    },
                    tool_call_id,
                    content,
                    is_error: false,
                },
            }));
        }
        Ok(messages)
    }
}

impl WireMessage {
    fn new(message: &Message, block_issuer: &str, id_form: CallIdForm) -> Self {
        match &message.role {
            Role::System { content } => Self::System {
                content: content.clone(),
            },
            Role::User { content } => Self::User {
                content: content.clone(),
            },
            Role::Assistant {
                content,
                tool_calls,
                blocks,
            } => Self::Assistant {
                content: Some(content.clone()).filter(|content| !content.is_empty() || tool_calls.is_empty()),
                tool_calls: tool_calls.iter().map(|call| WireCall::new(call, id_form)).collect(),
                // Some models refuse the reasoning of a message without calls.
                reasoning_content: block_field(blocks, block_issuer, "reasoning_content")
                    .filter(|_| !tool_calls.is_empty()),
                reasoning_details: block_field(blocks, block_issuer, "reasoning_details"),
            },
            Role::Tool {
                tool_call_id, content, ..
            } => Self::Tool {
                tool_call_id: id_form.apply_to(tool_call_id).into_owned(),
                name: None,
                content: content.clone(),
            },
        }
    }
}

/// Returns the value of a field, from the first provider block of `block_issuer` that contains the field.
fn block_field(blocks: &[ProviderBlock], block_issuer: &str, field: &str) -> Option<Value> {
    let mut blocks_of_issuer = blocks.iter().filter(|block| block.issuer == block_issuer);
    blocks_of_issuer.find_map(|block| block.data.get(field).cloned())
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

/// Deserializes a content: a text, `null`, or a list of parts, whose texts are concatenated.
fn deserialize_content<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Content {
        Text(String),
        Parts(Vec<Part>),
    }

    #[derive(Deserialize)]
    struct Part {
        text: Option<String>,
    }

    Ok(match Option::<Content>::deserialize(deserializer)? {
        None => String::new(),
        Some(Content::Text(text)) => text,
        Some(Content::Parts(parts)) => parts.into_iter().filter_map(|part| part.text).collect(),
    })
}

/// Deserializes a content as `Some`. `null` becomes an empty text.
fn deserialize_some_content<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    deserialize_content(deserializer).map(Some)
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

fn result_without_call(id: &str) -> ModelError {
    ModelError::Configuration {
        message: format!("the history has a result for `{id}`, but no call with this id before it"),
        suggestion: "truncate the history before a call, not between a call and its result".to_owned(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn deserialize(json: Value) -> Vec<Message> {
        serde_json::from_value::<OpenAiHistory>(json)
            .unwrap()
            .into_messages()
            .unwrap()
    }

    /// A role as a number, a text, and the name, arguments and result of each call.
    type Exchange = (u8, String, Vec<(String, String, String)>);

    fn exchange() -> impl Strategy<Value = Exchange> {
        (0u8..3, ".*", vec(("[a-z_]{1,8}", ".*", ".*"), 0..3))
    }

    fn history(exchanges: Vec<Exchange>) -> Vec<Message> {
        let mut history = Vec::new();
        for (number, (role, text, calls)) in exchanges.into_iter().enumerate() {
            match role {
                0 => history.push(Message::system(text)),
                1 => history.push(Message::user(text)),
                _ => {
                    let ids = (0..).map(|index| format!("{number}-{index}"));
                    let (calls, results): (Vec<_>, Vec<_>) = ids
                        .zip(calls)
                        .map(|(id, (name, arguments, result))| (ToolCall { id, name, arguments }, result))
                        .unzip();
                    history.push(Message::assistant(text, calls.clone()));
                    history.extend(
                        calls
                            .iter()
                            .zip(results)
                            .map(|(call, result)| Message::tool(call, result, false)),
                    );
                }
            }
        }
        history
    }

    // accept: 9
    #[test]
    fn histories_are_serialized_in_the_format_of_the_api() {
        let call = ToolCall {
            id: "call_1".into(),
            name: "search".into(),
            arguments: r#"{"q":1}"#.into(),
        };
        let messages = [
            Message::system("be brief"),
            Message::assistant("", vec![call.clone()]),
            Message::tool(&call, "found", true),
            Message::assistant("", vec![]),
        ];
        let expected = json!([
            {"role": "system", "content": "be brief"},
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "search", "arguments": "{\"q\":1}"}},
            ]},
            {"role": "tool", "tool_call_id": "call_1", "content": "found"},
            {"role": "assistant", "content": ""},
        ]);
        assert_eq!(
            serde_json::to_value(OpenAiHistory::from(messages.as_slice())).unwrap(),
            expected
        );
    }

    #[test]
    fn histories_of_other_clients_are_deserialized() {
        let messages = deserialize(json!([
            {"role": "developer", "content": "be brief"},
            {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image_url"}, {"type": "text", "text": "b"}]},
            {"role": "assistant", "tool_calls": [{"id": "x", "function": {"name": "f", "arguments": {"a": 1}}}]},
            {"role": "tool", "tool_call_id": "x", "content": "1"},
            {"role": "tool", "tool_call_id": "y", "name": "g", "content": "2"},
        ]));
        assert!(matches!(messages[0].role, Role::System { .. }));
        assert_eq!(messages[1].content(), "ab");
        assert_eq!(messages[2].tool_calls()[0].arguments, r#"{"a":1}"#);
        let names = messages.iter().filter_map(|message| match &message.role {
            Role::Tool { name, .. } => Some(name.as_str()),
            _ => None,
        });
        assert_eq!(names.collect::<Vec<_>>(), ["f", "g"]);
    }

    #[test]
    fn a_result_without_its_call_is_refused() {
        let history: OpenAiHistory =
            serde_json::from_value(json!([{"role": "tool", "tool_call_id": "x", "content": ""}])).unwrap();
        assert!(history.into_messages().unwrap_err().to_string().contains("`x`"));
    }

    proptest! {
        // accept: 9, accept: 10
        #[test]
        fn histories_survive_a_round_trip(exchanges in vec(exchange(), 0..6)) {
            let messages = history(exchanges);
            let json = serde_json::to_string(&OpenAiHistory::from(messages.as_slice())).unwrap();
            let deserialized = serde_json::from_str::<OpenAiHistory>(&json).unwrap().into_messages().unwrap();
            let roles = |messages: Vec<Message>| messages.into_iter().map(|message| message.role).collect::<Vec<_>>();
            prop_assert_eq!(roles(deserialized), roles(messages));
        }
    }
}
