//! Objects that a tool returns in addition to its text.

use serde::Serialize;
use serde_json::Value;

use crate::{Error, ErrorKind, Phase};

/// An object that a tool returns in addition to its text: a file, a record, an image.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Artifact {
    /// The name of the type of the object.
    #[serde(rename = "type")]
    pub kind: String,
    /// The object.
    pub value: Value,
}

impl Artifact {
    /// Creates an artifact of the named type.
    #[must_use]
    pub fn new(kind: impl Into<String>, value: Value) -> Self {
        Self {
            kind: kind.into(),
            value,
        }
    }

    /// Creates an artifact from a Rust value; its type is the full name of `T`.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] if the value cannot be represented in JSON, such as a map whose keys are not strings.
    pub fn of<T: Serialize>(value: &T) -> Result<Self, Error> {
        let kind = std::any::type_name::<T>();
        let value = serde_json::to_value(value).map_err(|error| {
            let message = format!("a `{kind}` cannot be serialised as JSON");
            Error::new(ErrorKind::Configuration, Phase::Execute, message).with_source(error)
        })?;
        Ok(Self::new(kind, value))
    }

    /// Returns whether the artifact has this type, given by full or simple name: the part after the last `::`, `.`, `/` or `#`.
    #[must_use]
    pub fn is_a(&self, kind: &str) -> bool {
        self.kind == kind || simple_name(&self.kind) == kind
    }
}

/// Returns the name of a type without its path and type parameters.
fn simple_name(kind: &str) -> &str {
    let plain = kind.split('<').next().unwrap_or(kind);
    plain.rsplit([':', '.', '/', '#']).next().unwrap_or(plain)
}
