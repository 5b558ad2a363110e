//! The one error that leaves the crate: what failed, in which phase, where, and what to do about it.

use std::error::Error as StdError;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What went wrong, as a closed word that programs can branch on.
///
/// Serialised in kebab case (`"invalid-arguments"`); text is never parsed to find this out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ErrorKind {
    /// The arguments do not fit the tool's input schema.
    InvalidArguments,
    /// No tool has this name.
    UnknownTool,
    /// Several tools have this name.
    AmbiguousTool,
    /// The tool is known but may not be called now.
    ToolUnavailable,
    /// The tool ran and answered with its own error.
    Tool,
    /// The entity behind the tool is gone.
    EntityGone,
    /// What a guest returned cannot become tools.
    InvalidProvider,
    /// The bytes are no usable component.
    MalformedComponent,
    /// The component needs an import that the host does not offer.
    UnknownImport,
    /// The component uses a feature that the host does not support.
    Unsupported,
    /// A file or directory could not be read or written.
    Io,
    /// A setting or a file of settings is wrong.
    Configuration,
    /// The guest trapped.
    Trap,
    /// The call burnt all its fuel.
    Fuel,
    /// The call ran past its deadline.
    Timeout,
    /// The guest asked for more memory than it may have.
    Memory,
    /// The guest asked for more table elements than it may have.
    TableElements,
    /// The guest asked for more instances, memories or tables than it may have.
    Instances,
    /// The guest's call stack is exhausted.
    Stack,
    /// The result is larger than allowed.
    ResultBytes,
    /// The guest called the host too often.
    HostCalls,
    /// The guest copied too many bytes into the host.
    HostCallBytes,
    /// The guest called tools too often, or too deep inside each other.
    NestedCalls,
    /// The guest holds too many host resources.
    Resources,
    /// A file is larger than allowed.
    FileBytes,
    /// The host has no free slot for another instance.
    Busy,
    /// A call would enter an instance that is already on the call stack.
    Reentrant,
    /// The caller cancelled.
    Cancelled,
    /// A grant does not allow it.
    Denied,
    /// A key or another value that the plugin needs is not there.
    MissingKey,
    /// The model, or the way to it, failed.
    Model,
    /// The loop met one of its limits.
    LoopLimit,
    /// A plugin could not be built from source.
    Build,
    /// The host itself is at fault.
    Internal,
}

impl ErrorKind {
    /// Tells whether a bound stopped the work.
    #[must_use]
    pub fn is_limit(self) -> bool {
        use ErrorKind::*;
        matches!(
            self,
            Fuel | Timeout
                | Memory
                | TableElements
                | Instances
                | Stack
                | ResultBytes
                | HostCalls
                | HostCallBytes
                | NestedCalls
                | Resources
                | FileBytes
                | Busy
        )
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// The stage of the work in which an error arose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Phase {
    /// Reading flags, settings or the plugin directory.
    Registry,
    /// Checking and compiling a component.
    Load,
    /// Matching a component's imports with what the host offers.
    Link,
    /// Making an instance.
    Instantiate,
    /// Checking a call's name and arguments.
    Validate,
    /// Running the tool.
    Execute,
    /// Looking for tools.
    Search,
    /// Asking the model.
    Model,
    /// Building a plugin from source.
    Build,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// How far a bound was exceeded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ExceededLimit {
    /// The bound's name as written in settings, unit last (`memory_bytes_max`).
    pub limit: &'static str,
    /// The bound.
    pub max: u64,
    /// What was used, or asked for, when the bound was met.
    pub used: u64,
}

impl ExceededLimit {
    /// Describes a bound that was met.
    #[must_use]
    pub fn new(limit: &'static str, max: u64, used: u64) -> Self {
        Self { limit, max, used }
    }
}

/// Any failure of the library, told so that a person or a model can act on it.
///
/// It dereferences to its [`ErrorReport`] and serialises as one; the source is logged, never serialised.
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub struct Error(Box<ErrorReport>);

/// What is known about a failure: `{"kind", "phase", "plugin", "tool", "message", "suggestion", …}`.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ErrorReport {
    /// What went wrong.
    pub kind: ErrorKind,
    /// In which stage.
    pub phase: Phase,
    /// The plugin concerned.
    pub plugin: Option<String>,
    /// The tool concerned.
    pub tool: Option<String>,
    /// One sentence: lowercase, no full stop.
    pub message: String,
    /// What a person can do about it.
    pub suggestion: Option<String>,
    /// The bound that was met, for limits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<ExceededLimit>,
    /// The tool's own error value, when it answered with one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    #[serde(skip)]
    source: Option<Arc<dyn StdError + Send + Sync>>,
}

impl Error {
    /// Makes an error; the `with_` methods add what is known.
    #[must_use]
    pub fn new(kind: ErrorKind, phase: Phase, message: impl Into<String>) -> Self {
        Self(Box::new(ErrorReport {
            kind,
            phase,
            plugin: None,
            tool: None,
            message: message.into(),
            suggestion: None,
            limit: None,
            details: None,
            source: None,
        }))
    }

    /// Names the plugin, unless an inner layer already did.
    #[must_use]
    pub fn with_plugin(mut self, plugin: impl Into<String>) -> Self {
        self.0.plugin.get_or_insert_with(|| plugin.into());
        self
    }

    /// Names the tool, unless an inner layer already did.
    #[must_use]
    pub fn with_tool(mut self, tool: impl Into<String>) -> Self {
        self.0.tool.get_or_insert_with(|| tool.into());
        self
    }

    /// Says what can be done, unless an inner layer already did.
    #[must_use]
    pub fn with_suggestion(mut self, suggestion: impl Into<String>) -> Self {
        self.0.suggestion.get_or_insert_with(|| suggestion.into());
        self
    }

    /// Says which bound was met.
    #[must_use]
    pub fn with_limit(mut self, limit: ExceededLimit) -> Self {
        self.0.limit = Some(limit);
        self
    }

    /// Carries the tool's own error value.
    #[must_use]
    pub fn with_details(mut self, details: Value) -> Self {
        self.0.details = Some(details);
        self
    }

    /// Keeps the cause for the log.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.0.source = Some(Arc::from(source.into()));
        self
    }

    /// Rewrites everything that is told, and drops the source, whose text is not ours.
    pub fn redacted(mut self, text: &dyn Fn(&str) -> String, value: &dyn Fn(&mut Value)) -> Self {
        self.0.message = text(&self.0.message);
        self.0.suggestion = self.0.suggestion.as_deref().map(text);
        if let Some(details) = &mut self.0.details {
            value(details);
        }
        self.0.source = self.0.source.map(|source| {
            let told = text(&source.to_string());
            Arc::from(Box::<dyn StdError + Send + Sync>::from(told))
        });
        self
    }
}

impl Deref for Error {
    type Target = ErrorReport;

    fn deref(&self) -> &ErrorReport {
        &self.0
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.plugin, &self.tool) {
            (_, Some(tool)) => write!(f, "{tool}: {}", self.message),
            (Some(plugin), None) => write!(f, "plugin `{plugin}`: {}", self.message),
            (None, None) => f.write_str(&self.message),
        }
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn StdError + 'static))
    }
}
