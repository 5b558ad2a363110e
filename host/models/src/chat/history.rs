//! The history format of the chat-completions API.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::content::WireContent;
use super::wire_message::WireMessage;
use crate::client::CallIdForm;
use toolwit_agent::model::ModelError;
use toolwit_core::{Message, Picture, Role, ToolCall};

/// The placeholder for the signature of a call without one, such as a call of another model.
const SIGNATURE_PLACEHOLDER: &str = "skip_thought_signature_validator";

/// A history in the format of the chat-completions API, which can be serialized and deserialized as JSON.
///
/// Roles, texts, calls with their ids, names and argument texts, and the call ids of results are preserved. The format
/// has no field for the time of a message or for whether a result is an error: after deserialization these are the
/// current time and `false`. The provider blocks of messages are not serialized. The pictures of results follow the results as
/// a message of the user, because the API accepts only text in results. Audio and the addresses of images in a history of
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

/// The place of the pictures of results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResultPictures {
    /// In the content of the result.
    InResult,
    /// In a message of the user after the results of a response.
    AfterResults,
}

impl From<&[Message]> for OpenAiHistory {
    fn from(messages: &[Message]) -> Self {
        // No provider block has an empty issuer. The history therefore contains no reasoning.
        Self::for_provider(messages, "", CallIdForm::Any, ResultPictures::AfterResults)
    }
}

impl OpenAiHistory {
    /// Converts messages for a provider, with the reasoning from those provider blocks that `block_issuer` issued.
    pub(super) fn for_provider(
        messages: &[Message],
        block_issuer: &str,
        id_form: CallIdForm,
        result_pictures: ResultPictures,
    ) -> Self {
        let mut wire_messages = Vec::with_capacity(messages.len());
        let mut later_pictures = WireContent::default();
        for message in messages {
            let mut wire_message = WireMessage::new(message, block_issuer, id_form);
            match (&message.role, &mut wire_message) {
                (_, WireMessage::Tool { content, .. }) if result_pictures == ResultPictures::InResult => {
                    content.extend(WireContent::default().with_pictures(&message.pictures));
                }
                (Role::Tool { name, .. }, _) => later_pictures.extend(labelled_pictures(name, &message.pictures)),
                // The user must not have two messages in a row.
                (_, WireMessage::User { content }) => content.prepend(std::mem::take(&mut later_pictures)),
                _ => push_pictures(&mut wire_messages, std::mem::take(&mut later_pictures)),
            }
            wire_messages.push(wire_message);
        }
        push_pictures(&mut wire_messages, later_pictures);
        Self(wire_messages)
    }

    /// Adds a placeholder to each message whose first call has no signature. Newer models of Gemini refuse such messages.
    pub(super) fn with_signature_placeholders(mut self) -> Self {
        for message in &mut self.0 {
            message.sign_first_call(SIGNATURE_PLACEHOLDER);
        }
        self
    }

    /// Converts the history to messages.
    ///
    /// # Errors
    /// [`ModelError::Configuration`] for a result that has no tool name and whose call is not in the history before it.
    pub fn into_messages(self) -> Result<Vec<Message>, ModelError> {
        let mut names: HashMap<String, String> = HashMap::new();
        let mut messages = Vec::with_capacity(self.0.len());
        for message in self.0 {
            let mut pictures = Vec::new();
            let role = match message {
                WireMessage::System { content } => Role::System {
                    content: content.into_text(),
                },
                WireMessage::User { content } => {
                    pictures = content.pictures();
                    Role::User {
                        content: content.into_text(),
                    }
                }
                WireMessage::Assistant {
                    content, tool_calls, ..
                } => {
                    let tool_calls: Vec<ToolCall> = tool_calls.into_iter().map(ToolCall::from).collect();
                    names.extend(tool_calls.iter().map(|call| (call.id.clone(), call.name.clone())));
                    Role::Assistant {
                        content: content.unwrap_or_default().into_text(),
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
                    content: content.into_text(),
                    is_error: false,
                },
            };
            messages.push(Message::new(role).with_pictures(pictures));
        }
        Ok(messages)
    }
}

/// Returns the pictures of a result after a line that names its tool, or an empty content for a result without pictures.
fn labelled_pictures(tool: &str, pictures: &[Picture]) -> WireContent {
    if pictures.is_empty() {
        return WireContent::default();
    }
    WireContent::text(format!("[pictures of the result of `{tool}`]")).with_pictures(pictures)
}

/// Appends the pictures of the results before as a message of the user, if there are any.
fn push_pictures(messages: &mut Vec<WireMessage>, content: WireContent) {
    if !content.is_empty() {
        messages.push(WireMessage::User { content });
    }
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
    use serde_json::{Value, json};

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
    fn pictures_of_the_user_are_parts_and_those_of_results_follow_all_results() {
        let picture = Picture::from_bytes(b"GIF89a").unwrap();
        let call = |id: &str| ToolCall {
            id: id.to_owned(),
            name: "look".to_owned(),
            arguments: "{}".to_owned(),
        };
        let image = json!({"type": "image_url", "image_url": {"url": picture.data_url()}});
        let label = json!({"type": "text", "text": "[pictures of the result of `look`]"});
        let mut messages = vec![
            Message::user("see").with_pictures(vec![picture.clone()]),
            Message::assistant("", vec![call("a"), call("b")]),
            Message::tool(&call("a"), "1", false).with_pictures(vec![picture.clone()]),
            Message::tool(&call("b"), "2", false),
        ];
        let wire = |messages: &[Message]| serde_json::to_value(OpenAiHistory::from(messages)).unwrap();
        let sent = wire(&messages);
        assert_eq!(sent[0]["content"], json!([{"type": "text", "text": "see"}, image]));
        assert_eq!((&sent[2]["content"], &sent[3]["content"]), (&json!("1"), &json!("2")));
        assert_eq!(sent[4], json!({"role": "user", "content": [label, image]}));
        assert_eq!(deserialize(sent)[0].pictures, [picture]);
        messages.push(Message::user("and?"));
        let joined = json!({"role": "user", "content": [label, image, {"type": "text", "text": "and?"}]});
        assert_eq!(wire(&messages)[4], joined);
        assert_eq!(wire(&messages).as_array().unwrap().len(), 5);
        let in_result = OpenAiHistory::for_provider(&messages, "", CallIdForm::Any, ResultPictures::InResult);
        let in_result = serde_json::to_value(in_result).unwrap();
        assert_eq!(in_result[2]["content"], json!([{"type": "text", "text": "1"}, image]));
        assert_eq!(in_result[4], json!({"role": "user", "content": "and?"}));
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
