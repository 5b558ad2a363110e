//! The context of a call, which the model never sees.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, LazyLock};

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::{Blackboard, Error, ErrorKind, NoOutput, OutputSink, Phase, ToolCaller, ToolError};

type Values = BTreeMap<String, Value>;

/// The typed objects, at most one for each type. A context has about ten; a search in a short list is faster than in a map.
type Extensions = Vec<(TypeId, Arc<dyn Any + Send + Sync>)>;

static NO_VALUES: LazyLock<Arc<Values>> = LazyLock::new(Arc::default);
static NO_EXTENSIONS: LazyLock<Arc<Extensions>> = LazyLock::new(Arc::default);

/// The key of the id of the current run, which the loop sets.
pub const LOOP_ID: &str = "loop_id";

/// The key of the user's channel, such as mail or chat, which the application sets.
pub const CHANNEL: &str = "channel";

/// The key of the chat within the channel, which the application sets.
pub const CHAT_ID: &str = "chat_id";

/// An immutable set of values that every tool and decorator of a call receives: tenant, correlation id, channel.
///
/// The model never sees it. It also holds typed objects, the cancellation token, the output to the user, and the tools that the
/// called tool may call. Values may be secret, so the debug form shows keys only.
///
/// ```
/// use toolwit_core::ToolContext;
///
/// let process = ToolContext::new().with("tenant", "acme").with("channel", "mail");
/// let call = ToolContext::new().with("channel", "chat");
/// let merged = process.merged_with(&call);
/// assert_eq!(merged.text("tenant"), Some("acme"));
/// assert_eq!(merged.text("channel"), Some("chat"), "the value of the call takes precedence");
/// ```
#[derive(Clone)]
pub struct ToolContext {
    values: Arc<Values>,
    extensions: Arc<Extensions>,
    cancel: CancellationToken,
    /// Whether `cancel` was set. If it was not, [`merged_with`](Self::merged_with) uses the token of the other context.
    has_own_cancel: bool,
    output: Option<Arc<dyn OutputSink>>,
    tools: Option<Arc<dyn ToolCaller>>,
}

impl Default for ToolContext {
    fn default() -> Self {
        Self {
            values: NO_VALUES.clone(),
            extensions: NO_EXTENSIONS.clone(),
            cancel: CancellationToken::new(),
            has_own_cancel: false,
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
        insert(
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
    pub fn with_cancel(mut self, cancel: CancellationToken) -> Self {
        self.cancel = cancel;
        self.has_own_cancel = true;
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
                insert(extensions, *key, value.clone());
            }
        }
        let cancel = if call.has_own_cancel {
            &call.cancel
        } else {
            &self.cancel
        };
        Self {
            values,
            extensions,
            cancel: cancel.clone(),
            has_own_cancel: call.has_own_cancel || self.has_own_cancel,
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
    pub fn cancel(&self) -> &CancellationToken {
        &self.cancel
    }

    /// Returns a copy without tools to call.
    #[must_use]
    pub fn without_tools(mut self) -> Self {
        self.tools = None;
        self
    }

    /// Returns the tools that the called tool may call, or `None` if it may call no tools.
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

/// Adds a typed object, or replaces the one of the same type.
fn insert(extensions: &mut Extensions, key: TypeId, value: Arc<dyn Any + Send + Sync>) {
    match extensions.iter_mut().find(|(other, _)| *other == key) {
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
    fn call_values_override_process_values() {
        let process = ToolContext::new()
            .with("tenant", "a")
            .with("count", 1)
            .with_extension(7_u32);
        let call = ToolContext::new().with("tenant", "b");
        let merged = process.merged_with(&call);
        assert_eq!(merged.text("tenant"), Some("b"));
        assert_eq!(merged.get("count"), Some(&Value::from(1)));
        assert_eq!(merged.extension::<u32>(), Some(&7));
        assert_eq!(process.text("tenant"), Some("a"), "merging changes neither side");
    }

    #[test]
    fn call_without_a_token_is_cancelled_with_the_process() {
        let token = CancellationToken::new();
        let process = ToolContext::new().with_cancel(token.clone());
        let merged = process.merged_with(&ToolContext::new());
        token.cancel();
        assert!(merged.cancel().is_cancelled());
        assert!(!ToolContext::new().cancel().is_cancelled());
    }

    #[test]
    fn debug_form_shows_keys_only() {
        let shown = format!("{:?}", ToolContext::new().with("token", "hunter2"));
        assert!(shown.contains("token") && !shown.contains("hunter2"), "{shown}");
    }
}
