//! Objects that a tool returns in addition to its text.

use serde::Serialize;
use serde_json::Value;

use crate::{Error, ErrorKind, Phase};

/// An object that a tool hands over beside its text: a file, a record, a picture.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Artifact {
    /// What kind of object it is: a type's name.
    #[serde(rename = "type")]
    pub kind: String,
    /// The object.
    pub value: Value,
}

impl Artifact {
    /// Makes an artifact of the named type.
    #[must_use]
    pub fn new(kind: impl Into<String>, value: Value) -> Self {
        Self {
            kind: kind.into(),
            value,
        }
    }

    /// Makes an artifact of a Rust value; its type is the full name of `T`.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] when the value is no JSON, such as a map whose keys are no text.
    pub fn of<T: Serialize>(value: &T) -> Result<Self, Error> {
        let kind = std::any::type_name::<T>();
        let value = serde_json::to_value(value).map_err(|error| {
            let message = format!("a `{kind}` cannot be written as JSON");
            Error::new(ErrorKind::Configuration, Phase::Execute, message).with_source(error)
        })?;
        Ok(Self::new(kind, value))
    }

    /// Tells whether it is of a type, by its full name or by its simple one: the part after the last `::`, `.`, `/` or `#`.
    #[must_use]
    pub fn is_a(&self, kind: &str) -> bool {
        self.kind == kind || simple_name(&self.kind) == kind
    }
}

/// Returns a type's name without the path before it; what it is generic over stays out too.
fn simple_name(kind: &str) -> &str {
    let plain = kind.split('<').next().unwrap_or(kind);
    plain.rsplit([':', '.', '/', '#']).next().unwrap_or(plain)
}
