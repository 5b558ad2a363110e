//! Results of tools, and their errors.

use std::fmt;

use serde::{Serialize, de::DeserializeOwned};

/// The result of a tool, with separate text for the model and the user.
///
/// A function returns it instead of a plain value, alone or in a `Result`.
///
/// ```
/// use toolwit_guest::ToolResult;
///
/// # fn example() -> Result<ToolResult, toolwit_guest::HostError> {
/// let result = ToolResult::new("The order o-17 is placed.")
///     .for_user("Thank you for your order!")
///     .artifact("order", &["o-17"])?;
/// # Ok(result)
/// # }
/// # assert!(!example().unwrap().is_error());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct ToolResult {
    pub(crate) text: String,
    pub(crate) for_user: Option<String>,
    pub(crate) silent: bool,
    pub(crate) is_error: bool,
    pub(crate) artifacts: Vec<Artifact>,
    pub(crate) background: Option<BackgroundCall>,
}

/// A follow-up call of the same plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BackgroundCall {
    pub(crate) tool: String,
    pub(crate) arguments: String,
}

impl ToolResult {
    /// Creates a result with the text that the model reads.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }

    /// Creates the result of a tool that failed, with the reason.
    pub fn error(reason: impl Into<String>) -> Self {
        Self {
            is_error: true,
            ..Self::new(reason)
        }
    }

    /// Sets the text for the user, if it differs from the model's.
    pub fn for_user(mut self, text: impl Into<String>) -> Self {
        self.for_user = Some(text.into());
        self
    }

    /// Shows nothing to the user.
    pub fn silent(mut self) -> Self {
        self.silent = true;
        self
    }

    /// Adds an object, which is stored as JSON.
    ///
    /// # Errors
    ///
    /// [`HostError::Json`] if the value has no form in JSON.
    pub fn artifact<T: Serialize + ?Sized>(mut self, kind: &str, value: &T) -> Result<Self, HostError> {
        self.artifacts.push(Artifact::new(kind, value)?);
        Ok(self)
    }

    /// Names a tool of this plugin that the host calls next, in the background. Its result is added to the conversation.
    ///
    /// # Errors
    ///
    /// [`HostError::Json`] if the arguments have no form in JSON.
    pub fn then<T: Serialize + ?Sized>(mut self, tool: &str, arguments: &T) -> Result<Self, HostError> {
        self.background = Some(BackgroundCall {
            tool: tool.to_owned(),
            arguments: serde_json::to_string(arguments)?,
        });
        Ok(self)
    }

    /// Returns the text for the model.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Parses the text for the model as JSON.
    ///
    /// # Errors
    ///
    /// [`HostError::Json`] if it is not JSON of this type.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, HostError> {
        Ok(serde_json::from_str(&self.text)?)
    }

    /// Returns whether the tool failed.
    #[must_use]
    pub fn is_error(&self) -> bool {
        self.is_error
    }

    /// Returns the objects in addition to the text.
    #[must_use]
    pub fn artifacts(&self) -> &[Artifact] {
        &self.artifacts
    }
}

/// An object that a tool returns in addition to its text, or that tools share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artifact {
    pub(crate) kind: String,
    pub(crate) json: String,
}

impl Artifact {
    /// Creates an object of a kind, such as `invoice`.
    ///
    /// # Errors
    ///
    /// [`HostError::Json`] if the value has no form in JSON.
    pub fn new<T: Serialize + ?Sized>(kind: &str, value: &T) -> Result<Self, HostError> {
        Ok(Self {
            kind: kind.to_owned(),
            json: serde_json::to_string(value)?,
        })
    }

    /// Returns the kind.
    #[must_use]
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Parses the value.
    ///
    /// # Errors
    ///
    /// [`HostError::Json`] if it is not of this type.
    pub fn value<T: DeserializeOwned>(&self) -> Result<T, HostError> {
        Ok(serde_json::from_str(&self.json)?)
    }
}

/// An error of the exchange of values with the host.
#[derive(Debug)]
#[non_exhaustive]
pub enum HostError {
    /// The value has no form in JSON, or the JSON is of another type.
    Json(serde_json::Error),
    /// The host refused the value: a limit is exceeded, or a grant is missing.
    Refused(String),
}

impl fmt::Display for HostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json(error) => write!(f, "the value cannot be converted to or from JSON: {error}"),
            Self::Refused(reason) => f.write_str(reason),
        }
    }
}

impl std::error::Error for HostError {}

impl From<serde_json::Error> for HostError {
    fn from(error: serde_json::Error) -> Self {
        Self::Json(error)
    }
}

/// The reason why the call of another tool failed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolError {
    /// The arguments do not match the input schema of the tool.
    InvalidArguments(String),
    /// The tool does not exist or is not available.
    Unavailable(String),
    /// The operator has not granted the call.
    Denied(String),
    /// A limit was exceeded: fuel, time, number of calls or nesting depth.
    Limit(String),
    /// The tool returned an error.
    Failed(String),
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidArguments(message)
            | Self::Unavailable(message)
            | Self::Denied(message)
            | Self::Limit(message)
            | Self::Failed(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for ToolError {}
