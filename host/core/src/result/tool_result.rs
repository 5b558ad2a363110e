//! The result of a call.

use std::any::Any;
use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::entity::serialize_output;
use crate::{Artifact, CallUsage, DeniedAccess, Error, RejectedProvider, RevealedTools, Signal, ToolProvider};

use crate::text::parse_json;

/// Whether a tool succeeded, failed, or still works in the background.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToolStatus {
    /// The tool ran and succeeded.
    #[default]
    Success,
    /// The tool ran and failed.
    Error,
    /// The tool started a background task, which delivers the result later.
    Pending,
}

/// The readers of the texts of a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Audience {
    /// The model reads `for_llm`, the user reads `for_user` if there is one.
    #[default]
    ModelAndUser,
    /// The model reads `for_llm`, the user reads nothing.
    Model,
}

/// The continuation of the run after a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Disposition {
    /// The model receives the result and continues.
    #[default]
    Continue,
    /// The run ends with this result as its answer, unless the result is an error.
    ReturnDirect,
}

/// The result of a call: a text for the model, optionally a text for the user, and how the run continues.
///
/// Serialises as `{"for_llm", "for_user"?, "silent", "is_error", "async", "artifacts"?}`. All other fields stay in the process.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct ToolResult {
    /// The text that the model reads.
    pub for_llm: String,
    /// The text that the user reads, unless the [audience](Self::audience) excludes the user.
    pub for_user: Option<String>,
    /// The readers of the texts; `silent` in JSON.
    pub audience: Audience,
    /// Whether the tool succeeded, failed, or still works in the background; `is_error` and `async` in JSON.
    pub status: ToolStatus,
    /// Objects that the tool returned in addition to the text.
    pub artifacts: Vec<Artifact>,
    /// The result as a JSON value, if the tool returned a value and not only text.
    pub value: Option<Value>,
    /// The Rust value that a typed tool returned. See [`downcast`](Self::downcast).
    pub output: Option<Arc<dyn Any + Send + Sync>>,
    /// Live objects in the result, whose methods can become tools of the conversation.
    pub providers: Vec<Arc<dyn ToolProvider>>,
    /// Live objects in the result that cannot become tools.
    pub rejected: Vec<RejectedProvider>,
    /// The tools that a facade revealed.
    pub revealed_tools: Option<RevealedTools>,
    /// The continuation of the run.
    pub disposition: Disposition,
    /// A call that continues the work. It runs in the background if the conversation can receive late results, and inline
    /// otherwise.
    pub follow_up: Option<FollowUpCall>,
    /// A request to the run that made the call, such as to stop.
    pub signal: Option<Signal>,
    /// The resources that the call used, if they were measured.
    pub usage: Option<CallUsage>,
    /// Standard output, standard error and log of the guest, up to the limit `log_bytes_max`.
    pub log: Option<Arc<str>>,
    /// The accesses that the host denied during the call, for the operator.
    pub denied: Vec<DeniedAccess>,
    /// The accesses that grants allowed during the call, such as `read /notes/a.txt`.
    pub accesses: Vec<String>,
    /// The cause of a failure, for the log.
    pub source: Option<Arc<dyn StdError + Send + Sync>>,
}

impl Serialize for ToolResult {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("ToolResult", 6)?;
        fields.serialize_field("for_llm", &self.for_llm)?;
        match &self.for_user {
            Some(text) => fields.serialize_field("for_user", text)?,
            None => fields.skip_field("for_user")?,
        }
        fields.serialize_field("silent", &self.is_silent())?;
        fields.serialize_field("is_error", &self.is_error())?;
        fields.serialize_field("async", &self.is_pending())?;
        if self.artifacts.is_empty() {
            fields.skip_field("artifacts")?;
        } else {
            fields.serialize_field("artifacts", &self.artifacts)?;
        }
        fields.end()
    }
}

/// A call of another function of the same plugin, which continues the work after this call has returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FollowUpCall {
    /// The name or id of the function.
    pub tool: String,
    /// The arguments: a JSON object as text.
    pub arguments: String,
}

impl ToolResult {
    /// Creates a result with text for the model.
    #[must_use]
    pub fn text(for_llm: impl Into<String>) -> Self {
        Self {
            for_llm: for_llm.into(),
            ..Self::default()
        }
    }

    /// Creates a result with a value. The model reads the value as JSON, but a string without quotes.
    #[must_use]
    pub fn value(value: Value) -> Self {
        let for_llm = match &value {
            Value::String(text) => text.clone(),
            // `Value::to_string` is slower, because it writes through a formatter.
            value => serde_json::to_string(value).unwrap_or_default(),
        };
        Self {
            for_llm,
            value: Some(value),
            ..Self::default()
        }
    }

    /// Creates a result from a Rust value, which stays available to the process with [`downcast`](Self::downcast). The
    /// model reads the value as JSON, but a string without quotes. Entities in the value are the providers of the result.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`](crate::ErrorKind::Internal) if the value cannot be serialised as JSON.
    pub fn of<T: Serialize + Send + Sync + 'static>(output: Arc<T>) -> Result<Self, Error> {
        let (value, providers) = serialize_output(&*output)?;
        Ok(Self {
            providers,
            output: Some(output),
            ..Self::value(value)
        })
    }

    /// Creates a result with the same text for the model and the user.
    #[must_use]
    pub fn user(text: impl Into<String>) -> Self {
        let text = text.into();
        Self {
            for_user: Some(text.clone()),
            for_llm: text,
            ..Self::default()
        }
    }

    /// Creates a result with text for the model only.
    #[must_use]
    pub fn silent(for_llm: impl Into<String>) -> Self {
        Self {
            audience: Audience::Model,
            ..Self::text(for_llm)
        }
    }

    /// Creates the result of a tool that ran and failed.
    #[must_use]
    pub fn error(message: impl Into<String>) -> Self {
        Self {
            status: ToolStatus::Error,
            ..Self::text(message)
        }
    }

    /// Creates the result of a call that started a background task.
    #[must_use]
    pub fn background(for_llm: impl Into<String>) -> Self {
        Self {
            status: ToolStatus::Pending,
            ..Self::text(for_llm)
        }
    }

    /// Adds an artifact.
    #[must_use]
    pub fn with_artifact(mut self, artifact: Artifact) -> Self {
        self.artifacts.push(artifact);
        self
    }

    /// Adds a live object whose methods can become tools.
    #[must_use]
    pub fn with_provider(mut self, provider: Arc<dyn ToolProvider>) -> Self {
        self.providers.push(provider);
        self
    }

    /// Sets the text for the user.
    #[must_use]
    pub fn with_user_text(mut self, text: impl Into<String>) -> Self {
        self.for_user = Some(text.into());
        self
    }

    /// Makes the run end with this result as its answer, unless the result is an error.
    #[must_use]
    pub fn as_answer(mut self) -> Self {
        self.disposition = Disposition::ReturnDirect;
        self
    }

    /// Sets the signal to the run.
    #[must_use]
    pub fn with_signal(mut self, signal: Signal) -> Self {
        self.signal = Some(signal);
        self
    }

    /// Sets the cause of a failure, for the log.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.source = Some(Arc::from(source.into()));
        self
    }

    /// Changes the value of the result. If the text for the model is the JSON form of the value, the text changes too. If the
    /// result has no value but its text is JSON, only the text changes.
    ///
    /// `change` returns whether it changed the value. If it returns `false`, the text stays identical byte for byte.
    pub fn rewrite_value(&mut self, change: impl FnOnce(&mut Value) -> bool) {
        let (mut value, is_json_text) = match &self.value {
            Some(value) => {
                let text = value.to_string();
                let is_json_text =
                    text == self.for_llm || parse_json(&self.for_llm).is_ok_and(|parsed| parsed == *value);
                (value.clone(), is_json_text)
            }
            None => match parse_json(&self.for_llm) {
                Ok(value) => (value, true),
                Err(_) => return,
            },
        };
        if !change(&mut value) {
            return;
        }
        if is_json_text {
            self.for_llm = value.to_string();
        }
        if self.value.is_some() {
            self.value = Some(value);
        }
    }

    /// Returns the Rust value that the tool returned, if it is of this type. Code in the same process can use it instead of the
    /// JSON that the model reads.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use toolwit_core::ToolResult;
    ///
    /// let result = ToolResult::of(Arc::new(vec![1, 2]))?;
    /// assert_eq!(result.for_llm, "[1,2]");
    /// assert_eq!(result.downcast::<Vec<i32>>().as_deref(), Some(&vec![1, 2]));
    /// assert!(result.downcast::<String>().is_none());
    /// # Ok::<(), toolwit_core::Error>(())
    /// ```
    #[must_use]
    pub fn downcast<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        self.output.clone()?.downcast().ok()
    }

    /// Returns whether the tool ran and failed.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.status == ToolStatus::Error
    }

    /// Returns whether a background task delivers the result later.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        self.status == ToolStatus::Pending
    }

    /// Returns whether the user reads nothing of the result.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        self.audience == Audience::Model
    }

    /// Returns whether the run ends with this result as its answer.
    #[must_use]
    pub fn is_final(&self) -> bool {
        self.disposition == Disposition::ReturnDirect && !self.is_error()
    }

    /// Returns the text that the user reads. Returns `None` for a silent result, and for a result without a text for the user.
    #[must_use]
    pub fn user_text(&self) -> Option<&str> {
        self.for_user.as_deref().filter(|_| !self.is_silent())
    }

    /// Returns the text for the model. If that text is empty and the result has a [cause](Self::source), returns the text of the
    /// cause.
    #[must_use]
    pub fn content(&self) -> String {
        match &self.source {
            Some(source) if self.for_llm.is_empty() => source.to_string(),
            _ => self.for_llm.clone(),
        }
    }
}

impl fmt::Debug for ToolResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolResult")
            .field("for_llm", &self.for_llm)
            .field("status", &self.status)
            .field("providers", &self.providers.len())
            .finish_non_exhaustive()
    }
}
