//! The error type of the library: kind, phase, plugin, tool, message and suggestion.

use std::error::Error as StdError;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::DeniedAccess;

/// The kind of an error, on which programs can branch.
///
/// Serialises in kebab case (`"invalid-arguments"`).
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
    /// The tool exists but cannot be called now, or a call lacks something that it needs, such as a blackboard.
    ToolUnavailable,
    /// The tool ran and failed.
    Tool,
    /// The entity of the tool no longer exists.
    EntityGone,
    /// A provider of tools is invalid: an object or a facade has no tools, or a component's list of dynamic tools is invalid. An
    /// error of the provider of a model is a [`Model`](Self::Model) error.
    InvalidProvider,
    /// The bytes are not a valid component.
    MalformedComponent,
    /// The component needs an import that the host does not offer.
    UnknownImport,
    /// The component uses a feature that the host does not support.
    Unsupported,
    /// A file, directory, stream or connection could not be used.
    Io,
    /// A setting or a configuration file is invalid.
    Configuration,
    /// The guest trapped.
    Trap,
    /// The call consumed all its fuel.
    Fuel,
    /// The call or another operation exceeded its time limit.
    Timeout,
    /// The guest exceeded its memory limit.
    Memory,
    /// The guest exceeded its limit of table elements.
    TableElements,
    /// The guest exceeded its limit of core instances, memories or tables.
    Instances,
    /// The guest's call stack is exhausted.
    Stack,
    /// The result is larger than allowed.
    ResultBytes,
    /// The guest called the host too often.
    HostCalls,
    /// The guest copied too many bytes into the host.
    HostCallBytes,
    /// The guest made too many or too deeply nested calls of tools.
    NestedCalls,
    /// The guest holds too many host resources, or these resources hold too much host memory. Or a blackboard is full.
    Resources,
    /// A file or a download is larger than allowed.
    FileBytes,
    /// The host has no free slot for another instance, call or session. Or an earlier call in the same session is still running.
    Busy,
    /// A call would enter an instance that is already on the call stack.
    Reentrant,
    /// The caller or the user cancelled the call or another operation.
    Cancelled,
    /// The grants, the approval policy, the approver or an interceptor do not allow the call or the access.
    Denied,
    /// A secret or another configured value that a plugin or an MCP server needs is missing.
    MissingKey,
    /// The model, or the connection to it, failed.
    Model,
    /// A run reached a limit of the agent loop.
    LoopLimit,
    /// A plugin could not be built from source.
    Build,
    /// The host has a bug.
    Internal,
}

impl ErrorKind {
    /// Returns whether a limit of a call, a file or the process caused the error. [`LoopLimit`](Self::LoopLimit) does not count.
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

/// The phase in which an error occurred.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Phase {
    /// All preparations for loading plugins and for calls: reading options, configuration files and plugin directories, building
    /// hosts and conversations, and changing files of the host.
    Registry,
    /// Checking and compiling a component, or connecting to a server.
    Load,
    /// Resolving a component's imports against the interfaces of the host.
    Link,
    /// Creating an instance.
    Instantiate,
    /// Validating the name and arguments of a call.
    Validate,
    /// Running the tool.
    Execute,
    /// Searching for tools.
    Search,
    /// Calling the model.
    Model,
    /// Building a plugin from source.
    Build,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// A limit that was exceeded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ExceededLimit {
    /// The name of the limit, such as `memory_bytes_max` or `VALIDATION_STEPS_MAX`. [`all_limits`](crate::limits::all_limits)
    /// describes most limits, some of them under the name of their constant.
    pub limit: &'static str,
    /// The limit. Times are in milliseconds.
    pub max: u64,
    /// The amount that was used or requested. If the host stops counting at the limit, this is only `max` or `max + 1`.
    pub used: u64,
}

impl ExceededLimit {
    /// Creates the description of an exceeded limit.
    #[must_use]
    pub fn new(limit: &'static str, max: u64, used: u64) -> Self {
        Self { limit, max, used }
    }
}

/// The error type of the library.
///
/// It dereferences to its [`ErrorReport`] and serialises as one. The source error is logged, but never serialised.
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub struct Error(Box<ErrorReport>);

/// The fields of an [`Error`]: `{"kind", "phase", "plugin", "tool", "agent"?, "message", "suggestion", …}`.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ErrorReport {
    /// The kind.
    pub kind: ErrorKind,
    /// The phase.
    pub phase: Phase,
    /// The plugin, if one is involved.
    pub plugin: Option<String>,
    /// The tool, if one is involved.
    pub tool: Option<String>,
    /// The innermost agent in which the error occurred. `None` if the error did not occur in an agent that a tool runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The message: one sentence, lowercase, without full stop.
    pub message: String,
    /// A suggestion for the reader of the error. The reader may be a model, so the suggestion does not name the grant that
    /// would allow a denied access; `denied` names it for the operator.
    pub suggestion: Option<String>,
    /// The exceeded limit, if the error reports one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<ExceededLimit>,
    /// The error value that the tool returned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// Standard output, standard error and log of the guest until it failed, for the operator. Never serialised.
    #[serde(skip)]
    pub log: Option<Arc<str>>,
    /// The accesses that the host denied before the error, for the operator. The first one is the cause of an error of the kind
    /// [`ErrorKind::Denied`]. Not serialised, since the model reads errors.
    #[serde(skip)]
    pub denied: Vec<DeniedAccess>,
    #[serde(skip)]
    source: Option<Arc<dyn StdError + Send + Sync>>,
}

impl Error {
    /// Creates an error; the `with_` methods add details.
    #[must_use]
    pub fn new(kind: ErrorKind, phase: Phase, message: impl Into<String>) -> Self {
        Self(Box::new(ErrorReport {
            kind,
            phase,
            plugin: None,
            tool: None,
            agent: None,
            message: message.into(),
            suggestion: None,
            limit: None,
            details: None,
            log: None,
            denied: Vec::new(),
            source: None,
        }))
    }

    /// Adds a note to the end of the message, such as what a server wrote last.
    #[must_use]
    pub fn with_note(mut self, note: &str) -> Self {
        self.0.message.push_str("; ");
        self.0.message.push_str(note);
        self
    }

    /// Sets the plugin, unless it is already set.
    #[must_use]
    pub fn with_plugin(mut self, plugin: impl Into<String>) -> Self {
        self.0.plugin.get_or_insert_with(|| plugin.into());
        self
    }

    /// Sets the tool, unless it is already set.
    #[must_use]
    pub fn with_tool(mut self, tool: impl Into<String>) -> Self {
        self.0.tool.get_or_insert_with(|| tool.into());
        self
    }

    /// Sets the agent in which the error occurred, unless it is already set.
    #[must_use]
    pub fn with_agent(mut self, agent: impl Into<String>) -> Self {
        self.0.agent.get_or_insert_with(|| agent.into());
        self
    }

    /// Sets the suggestion, unless it is already set.
    #[must_use]
    pub fn with_suggestion(mut self, suggestion: impl Into<String>) -> Self {
        self.0.suggestion.get_or_insert_with(|| suggestion.into());
        self
    }

    /// Sets the exceeded limit.
    #[must_use]
    pub fn with_limit(mut self, limit: ExceededLimit) -> Self {
        self.0.limit = Some(limit);
        self
    }

    /// Replaces the suggestion. Use it in a caller that knows more about the cause than the code that failed.
    #[must_use]
    pub fn override_suggestion(mut self, suggestion: impl Into<String>) -> Self {
        self.0.suggestion = Some(suggestion.into());
        self
    }

    /// Sets the error value that the tool returned.
    #[must_use]
    pub fn with_details(mut self, details: Value) -> Self {
        self.0.details = Some(details);
        self
    }

    /// Sets the output of the guest until it failed.
    #[must_use]
    pub fn with_log(mut self, log: Option<Arc<str>>) -> Self {
        self.0.log = log;
        self
    }

    /// Sets the accesses that the host denied before the error.
    #[must_use]
    pub fn with_denied(mut self, denied: Vec<DeniedAccess>) -> Self {
        self.0.denied = denied;
        self
    }

    /// Sets the source error, for the log.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.0.source = Some(Arc::from(source.into()));
        self
    }

    /// Redacts the message, the suggestion, the details and the log. Replaces the source error by its redacted text.
    pub fn redacted(mut self, redact_text: &dyn Fn(&str) -> String, redact_value: &dyn Fn(&mut Value)) -> Self {
        self.0.message = redact_text(&self.0.message);
        self.0.suggestion = self.0.suggestion.as_deref().map(redact_text);
        if let Some(details) = &mut self.0.details {
            redact_value(details);
        }
        self.0.log = self.0.log.as_deref().map(|log| redact_text(log).into());
        self.0.source = self.0.source.map(|source| {
            let redacted = redact_text(&source.to_string());
            Arc::from(Box::<dyn StdError + Send + Sync>::from(redacted))
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
        if let Some(agent) = &self.agent {
            write!(f, "agent `{agent}`: ")?;
        }
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
