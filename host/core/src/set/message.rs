//! Messages of a conversation.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Picture;

/// A message in the history of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Message {
    /// The role and content.
    #[serde(flatten)]
    pub role: Role,
    /// Creation time, in milliseconds since the Unix epoch.
    pub timestamp_ms: u64,
    /// Whether the message stays when a summary replaces the older messages of a long history.
    #[serde(default, rename = "pinned", skip_serializing_if = "std::ops::Not::not")]
    pub is_pinned: bool,
    /// The pictures of a user message or of the result of a call, which follow its text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pictures: Vec<Picture>,
}

/// The role and content of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Role {
    /// Instructions of the application.
    System {
        /// The text.
        content: String,
    },
    /// The user.
    User {
        /// The text.
        content: String,
    },
    /// The model.
    Assistant {
        /// The text; may be empty if there are tool calls.
        content: String,
        /// The requested tool calls.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<ToolCall>,
        /// Parts of the response that must be sent back to its provider, in order.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        blocks: Vec<ProviderBlock>,
    },
    /// The result of one call.
    Tool {
        /// The id of the call.
        tool_call_id: String,
        /// The name of the tool.
        name: String,
        /// The text that the model reads.
        content: String,
        /// Whether the call failed.
        #[serde(default)]
        is_error: bool,
    },
}

/// A request of a model to call a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The id, unique in the conversation.
    pub id: String,
    /// The name of the tool, as the model wrote it.
    pub name: String,
    /// The arguments as JSON text.
    pub arguments: String,
}

/// A part of a response in its provider's own format, such as a thinking block with its signature or an encrypted reasoning
/// item. Its content is opaque: it is sent back unchanged, and only to the provider that issued it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderBlock {
    /// The API and the host that issued the part, such as `anthropic:api.anthropic.com`.
    pub issuer: String,
    /// The part, in the provider's format.
    pub data: Value,
    /// The number of bytes of the response text that precede the part.
    pub text_bytes_before: usize,
    /// The number of tool calls of the response that precede the part.
    pub calls_before: usize,
}

impl Message {
    /// Creates a message with the current time.
    #[must_use]
    pub fn new(role: Role) -> Self {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            role,
            timestamp_ms: u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX),
            is_pinned: false,
            pictures: Vec::new(),
        }
    }

    /// Creates a system message.
    #[must_use]
    pub fn system(content: impl Into<String>) -> Self {
        Self::new(Role::System {
            content: content.into(),
        })
    }

    /// Creates a user message.
    #[must_use]
    pub fn user(content: impl Into<String>) -> Self {
        Self::new(Role::User {
            content: content.into(),
        })
    }

    /// Creates a message of the model.
    #[must_use]
    pub fn assistant(content: impl Into<String>, tool_calls: Vec<ToolCall>) -> Self {
        Self::new(Role::Assistant {
            content: content.into(),
            tool_calls,
            blocks: Vec::new(),
        })
    }

    /// Sets the parts of a response that must be sent back to its provider. A message of another role stays unchanged.
    #[must_use]
    pub fn with_blocks(mut self, new_blocks: Vec<ProviderBlock>) -> Self {
        if let Role::Assistant { blocks, .. } = &mut self.role {
            *blocks = new_blocks;
        }
        self
    }

    /// Sets the pictures of a user message or of the result of a call. A message of another role stays unchanged.
    #[must_use]
    pub fn with_pictures(mut self, pictures: Vec<Picture>) -> Self {
        if matches!(self.role, Role::User { .. } | Role::Tool { .. }) {
            self.pictures = pictures;
        }
        self
    }

    /// Creates a message with the result of a call.
    #[must_use]
    pub fn tool(call: &ToolCall, content: impl Into<String>, is_error: bool) -> Self {
        Self::new(Role::Tool {
            tool_call_id: call.id.clone(),
            name: call.name.clone(),
            content: content.into(),
            is_error,
        })
    }

    /// Returns the text.
    #[must_use]
    pub fn content(&self) -> &str {
        match &self.role {
            Role::System { content }
            | Role::User { content }
            | Role::Assistant { content, .. }
            | Role::Tool { content, .. } => content,
        }
    }

    /// Returns the tool calls of an assistant message; empty for other roles.
    #[must_use]
    pub fn tool_calls(&self) -> &[ToolCall] {
        match &self.role {
            Role::Assistant { tool_calls, .. } => tool_calls,
            _ => &[],
        }
    }

    /// Returns the parts of an assistant message that must be sent back to its provider; empty for other roles.
    #[must_use]
    pub fn blocks(&self) -> &[ProviderBlock] {
        match &self.role {
            Role::Assistant { blocks, .. } => blocks,
            _ => &[],
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn call() -> impl Strategy<Value = ToolCall> {
        (".*", ".*", ".*").prop_map(|(id, name, arguments)| ToolCall { id, name, arguments })
    }

    fn block() -> impl Strategy<Value = ProviderBlock> {
        (".*", ".*", any::<i64>(), 0..99_usize, 0..9_usize).prop_map(
            |(issuer, signature, number, text_bytes_before, calls_before)| ProviderBlock {
                issuer,
                data: json!({"signature": signature, "number": number}),
                text_bytes_before,
                calls_before,
            },
        )
    }

    fn role() -> impl Strategy<Value = Role> {
        let calls = prop::collection::vec(call(), 0..4);
        let blocks = prop::collection::vec(block(), 0..3);
        prop_oneof![
            ".*".prop_map(|content| Role::System { content }),
            ".*".prop_map(|content| Role::User { content }),
            (".*", calls, blocks).prop_map(|(content, tool_calls, blocks)| Role::Assistant {
                content,
                tool_calls,
                blocks
            }),
            (".*", ".*", ".*", any::<bool>()).prop_map(|(tool_call_id, name, content, is_error)| Role::Tool {
                tool_call_id,
                name,
                content,
                is_error
            }),
        ]
    }

    // accept: 9
    proptest! {
        #[test]
        fn a_message_is_unchanged_after_a_json_round_trip(role in role(), timestamp_ms: u64, is_pinned: bool) {
            let message = Message { role, timestamp_ms, is_pinned, pictures: Vec::new() };
            let json = serde_json::to_string(&message).unwrap();
            prop_assert_eq!(serde_json::from_str::<Message>(&json).unwrap(), message);
        }
    }
}
