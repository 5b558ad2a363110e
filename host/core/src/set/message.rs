//! What is said in a conversation.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// One entry of a conversation's history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Message {
    /// Who says it, and what.
    #[serde(flatten)]
    pub role: Role,
    /// When, in milliseconds since 1970 UTC.
    pub timestamp_ms: u64,
}

/// Who speaks, and what is said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Role {
    /// Instructions by the application.
    System {
        /// The text.
        content: String,
    },
    /// The person.
    User {
        /// The text.
        content: String,
    },
    /// The model.
    Assistant {
        /// The text, also when calls accompany it; may be empty.
        content: String,
        /// The tools that it wants called.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<ToolCall>,
    },
    /// The answer to one call.
    Tool {
        /// Which call is answered.
        tool_call_id: String,
        /// The tool's name.
        name: String,
        /// What the model reads.
        content: String,
        /// Whether the call failed.
        #[serde(default)]
        is_error: bool,
    },
}

/// A model's wish to call a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Tells this call from the others of the conversation.
    pub id: String,
    /// The tool's name as the model wrote it.
    pub name: String,
    /// The arguments as JSON text.
    pub arguments: String,
}

impl Message {
    /// Makes a message of the given role, now.
    #[must_use]
    pub fn new(role: Role) -> Self {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            role,
            timestamp_ms: u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX),
        }
    }

    /// Instructions by the application.
    #[must_use]
    pub fn system(content: impl Into<String>) -> Self {
        Self::new(Role::System {
            content: content.into(),
        })
    }

    /// Words of the person.
    #[must_use]
    pub fn user(content: impl Into<String>) -> Self {
        Self::new(Role::User {
            content: content.into(),
        })
    }

    /// Words and calls of the model.
    #[must_use]
    pub fn assistant(content: impl Into<String>, tool_calls: Vec<ToolCall>) -> Self {
        Self::new(Role::Assistant {
            content: content.into(),
            tool_calls,
        })
    }

    /// The answer to a call.
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

    /// Returns the calls of an assistant's message; none for the others.
    #[must_use]
    pub fn tool_calls(&self) -> &[ToolCall] {
        match &self.role {
            Role::Assistant { tool_calls, .. } => tool_calls,
            _ => &[],
        }
    }
}
