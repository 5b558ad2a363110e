//! The context of a call, which the model never sees.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, LazyLock};

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::{Blackboard, Error, ErrorKind, NoOutput, OutputSink, Phase, ToolCaller, ToolError};

type Values = BTreeMap<String, Value>;

/// The typed objects, at most one for each type. A context has about ten objects, and a search in a list of this length is
/// faster than in a map.
type Extensions = Vec<(TypeId, Arc<dyn Any + Send + Sync>)>;

/// The values of a new context. All new contexts share this map, which saves an allocation for each.
static NO_VALUES: LazyLock<Arc<Values>> = LazyLock::new(Arc::default);

/// The typed objects of a new context. All new contexts share this list.
static NO_EXTENSIONS: LazyLock<Arc<Extensions>> = LazyLock::new(Arc::default);

/// The key of the id of the current run of a conversation or an agent. The agent loop sets the value.
pub const LOOP_ID: &str = "loop_id";

/// The key of the user's channel, such as mail or chat. The application sets the value.
pub const CHANNEL: &str = "channel";

/// The key of the chat within the channel. The application sets the value.
pub const CHAT_ID: &str = "chat_id";

/// An immutable set of values that every tool and decorator of a call receives: tenant, correlation id, channel.
///
/// The model never sees the context. The context also contains typed objects, the cancellation token, the output to the user,
/// and the tools that the called tool may call. Values may be secret, so the debug form shows only keys.
///
/// ```
/// use toolwit_core::ToolContext;
///
/// let conversation = ToolContext::new().with("tenant", "acme").with("channel", "mail");
/// let call = ToolContext::new().with("channel", "chat");
/// let merged = conversation.merged_with(&call);
/// assert_eq!(merged.text("tenant"), Some("acme"));
/// assert_eq!(merged.text("channel"), Some("chat"), "the value of the call takes precedence");
/// ```
#[derive(Clone)]
pub struct ToolContext {
    values: Arc<Values>,
    extensions: Arc<Extensions>,
    cancel_token: CancellationToken,
    /// Whether [`with_cancel_token`](Self::with_cancel_token) set `cancel_token`. If not, [`merged_with`](Self::merged_with) uses
    /// the token of the other context.
    has_own_cancel_token: bool,
    output: Option<Arc<dyn OutputSink>>,
    tools: Option<Arc<dyn ToolCaller>>,
}

impl Default for ToolContext {
    fn default() -> Self {
        Self {
            values: NO_VALUES.clone(),
            extensions: NO_EXTENSIONS.clone(),
            cancel_token: CancellationToken::new(),
            has_own_cancel_token: false,
            output: None,
            tools: None,
        }
    }
}

impl ToolContext {
    /// Creates an empty context without output.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a copy with one more value.
    #[must_use]
    pub fn with(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        Arc::make_mut(&mut self.values).insert(key.into(), value.into());
        self
    }

    /// Returns a copy with one more typed object, such as the limits of the call. It replaces an object of the same type.
    #[must_use]
    pub fn with_extension<T: Any + Send + Sync>(mut self, extension: T) -> Self {
        insert_extension(
            Arc::make_mut(&mut self.extensions),
            TypeId::of::<T>(),
            Arc::new(extension),
        );
        self
    }

    /// Returns a copy with this blackboard.
    #[must_use]
    pub fn with_blackboard(self, blackboard: Arc<dyn Blackboard>) -> Self {
        self.with_extension(blackboard)
    }

    /// Returns a copy without the typed object of this type.
    #[must_use]
    pub fn without_extension<T: Any + Send + Sync>(mut self) -> Self {
        if self.extension::<T>().is_some() {
            Arc::make_mut(&mut self.extensions).retain(|(key, _)| *key != TypeId::of::<T>());
        }
        self
    }

    /// Returns a copy with this cancellation token.
    #[must_use]
    pub fn with_cancel_token(mut self, cancel_token: CancellationToken) -> Self {
        self.cancel_token = cancel_token;
        self.has_own_cancel_token = true;
        self
    }

    /// Returns a copy with this output.
    #[must_use]
    pub fn with_output(mut self, output: Arc<dyn OutputSink>) -> Self {
        self.output = Some(output);
        self
    }

    /// Returns a copy with the tools that the called tool may call.
    #[must_use]
    pub fn with_tools(mut self, tools: Arc<dyn ToolCaller>) -> Self {
        self.tools = Some(tools);
        self
    }

    /// Merges two contexts. The values, typed objects, cancellation token, output and tools of `call` take precedence.
    #[must_use]
    pub fn merged_with(&self, call: &Self) -> Self {
        let mut values = self.values.clone();
        if !call.values.is_empty() {
            Arc::make_mut(&mut values).extend(call.values.iter().map(|(key, value)| (key.clone(), value.clone())));
        }
        let mut extensions = self.extensions.clone();
        if !call.extensions.is_empty() {
            let extensions = Arc::make_mut(&mut extensions);
            for (key, value) in call.extensions.iter() {
                insert_extension(extensions, *key, value.clone());
            }
        }
        let cancel_token = if call.has_own_cancel_token {
            &call.cancel_token
        } else {
            &self.cancel_token
        };
        Self {
            values,
            extensions,
            cancel_token: cancel_token.clone(),
            has_own_cancel_token: call.has_own_cancel_token || self.has_own_cancel_token,
            output: call.output.clone().or_else(|| self.output.clone()),
            tools: call.tools.clone().or_else(|| self.tools.clone()),
        }
    }

    /// Returns the value with this key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.values.get(key)
    }

    /// Returns the value with this key, if it is a string.
    #[must_use]
    pub fn text(&self, key: &str) -> Option<&str> {
        self.get(key)?.as_str()
    }

    /// Returns the id of the current run, if there is one.
    #[must_use]
    pub fn loop_id(&self) -> Option<&str> {
        self.text(LOOP_ID)
    }

    /// Returns the user's channel, if the application has set it.
    #[must_use]
    pub fn channel(&self) -> Option<&str> {
        self.text(CHANNEL)
    }

    /// Returns the chat within the channel, if the application has set it.
    #[must_use]
    pub fn chat_id(&self) -> Option<&str> {
        self.text(CHAT_ID)
    }

    /// Returns the keys in alphabetical order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.values.keys().map(String::as_str)
    }

    /// Returns the values with their keys, in the order of the keys.
    pub(super) fn values(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.values.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// Returns the typed object of this type.
    #[must_use]
    pub fn extension<T: Any + Send + Sync>(&self) -> Option<&T> {
        let mut extensions = self.extensions.iter();
        let (_, extension) = extensions.find(|(key, _)| *key == TypeId::of::<T>())?;
        extension.downcast_ref()
    }

    /// Returns the blackboard, which the tools of a conversation or of an agent share.
    ///
    /// # Errors
    /// [`ToolError::Model`] if the context has no blackboard, as outside a conversation.
    pub fn blackboard(&self) -> Result<&Arc<dyn Blackboard>, ToolError> {
        self.extension::<Arc<dyn Blackboard>>().ok_or_else(|| {
            let message = "the context of the call has no blackboard";
            ToolError::Model(
                Error::new(ErrorKind::ToolUnavailable, Phase::Execute, message)
                    .with_suggestion("call the tool in a conversation, or give its context a blackboard"),
            )
        })
    }

    /// Returns the token that cancels the call.
    #[must_use]
    pub fn cancel_token(&self) -> &CancellationToken {
        &self.cancel_token
    }

    /// Returns a copy with which the called tool may call no tools.
    #[must_use]
    pub fn without_tools(mut self) -> Self {
        self.tools = None;
        self
    }

    /// Returns the caller for the tools that the called tool may call, or `None` if the tool may call no tools.
    #[must_use]
    pub fn tools(&self) -> Option<&Arc<dyn ToolCaller>> {
        self.tools.as_ref()
    }

    /// Returns the output to the user as a shared object, if there is one.
    #[must_use]
    pub fn shared_output(&self) -> Option<&Arc<dyn OutputSink>> {
        self.output.as_ref()
    }

    /// Returns the output to the user, or [`NoOutput`] for a context without output.
    #[must_use]
    pub fn output(&self) -> &dyn OutputSink {
        self.output.as_deref().unwrap_or(&NoOutput)
    }
}

/// Adds a typed object, or replaces the object of the same type.
fn insert_extension(extensions: &mut Extensions, key: TypeId, value: Arc<dyn Any + Send + Sync>) {
    match extensions.iter_mut().find(|(existing_key, _)| *existing_key == key) {
        Some((_, extension)) => *extension = value,
        None => extensions.push((key, value)),
    }
}

impl fmt::Debug for ToolContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolContext")
            .field("keys", &self.keys().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    // accept: 88
    #[test]
    fn call_values_override_conversation_values() {
        let conversation = ToolContext::new()
            .with("tenant", "a")
            .with("count", 1)
            .with_extension(7_u32);
        let call = ToolContext::new().with("tenant", "b");
        let merged = conversation.merged_with(&call);
        assert_eq!(merged.text("tenant"), Some("b"));
        assert_eq!(merged.get("count"), Some(&Value::from(1)));
        assert_eq!(merged.extension::<u32>(), Some(&7));
        assert_eq!(
            conversation.text("tenant"),
            Some("a"),
            "the merged contexts do not change"
        );
    }

    #[test]
    fn call_without_a_token_is_cancelled_with_the_conversation() {
        let token = CancellationToken::new();
        let conversation = ToolContext::new().with_cancel_token(token.clone());
        let merged = conversation.merged_with(&ToolContext::new());
        token.cancel();
        assert!(merged.cancel_token().is_cancelled());
        assert!(!ToolContext::new().cancel_token().is_cancelled());
    }

    #[test]
    fn debug_form_shows_keys_only() {
        let debug_text = format!("{:?}", ToolContext::new().with("token", "hunter2"));
        assert!(
            debug_text.contains("token") && !debug_text.contains("hunter2"),
            "{debug_text}"
        );
    }
}
