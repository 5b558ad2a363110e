//! Objects that a tool returns in addition to its text.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use crate::{Error, ErrorKind, Phase};

/// An object that a tool returns in addition to its text: a file, a record, an image.
///
/// An artifact contains the JSON of the object. It can also carry the live Rust object, for native code of the same process.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Artifact {
    /// The full type name of the object.
    #[serde(rename = "type")]
    pub kind: String,
    /// The JSON of the object.
    pub value: Value,
    /// The live object, if the artifact carries one.
    #[serde(skip)]
    object: Option<LiveObject>,
}

/// A live Rust object. Two values are equal if they share one object.
#[derive(Clone)]
struct LiveObject(Arc<dyn Any + Send + Sync>);

impl PartialEq for LiveObject {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::addr_eq(Arc::as_ptr(&self.0), Arc::as_ptr(&other.0))
    }
}

impl fmt::Debug for LiveObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LiveObject")
    }
}

impl Artifact {
    /// Creates an artifact from the full type name and the JSON of an object.
    #[must_use]
    pub fn new(kind: impl Into<String>, value: Value) -> Self {
        Self {
            kind: kind.into(),
            value,
            object: None,
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

    /// Creates an artifact that carries a live object in addition to the JSON of the object. The type of the artifact is the
    /// full name of `T`.
    ///
    /// # Errors
    /// As [`of`](Self::of).
    pub fn live<T: Serialize + Send + Sync + 'static>(object: Arc<T>) -> Result<Self, Error> {
        Ok(Self::of(&*object)?.with_object(object))
    }

    /// Adds a live object. The model and plugins see the JSON only.
    ///
    /// ```
    /// use std::sync::{Arc, Mutex};
    /// use serde_json::json;
    /// use toolwit_core::Artifact;
    ///
    /// let cart = Arc::new(Mutex::new(vec!["apple"]));
    /// let artifact = Artifact::new("Cart", json!({"id": "c-1"})).with_object(cart.clone());
    /// assert!(artifact.downcast::<Mutex<Vec<&str>>>().is_some_and(|object| Arc::ptr_eq(&object, &cart)));
    /// ```
    #[must_use]
    pub fn with_object<T: Send + Sync + 'static>(mut self, object: Arc<T>) -> Self {
        self.object = Some(LiveObject(object));
        self
    }

    /// Returns the live object, if the artifact carries one of this type.
    #[must_use]
    pub fn downcast<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        self.object.clone()?.0.downcast().ok()
    }

    /// Returns whether the type of the artifact has this full or simple name. The simple name has no type parameters and
    /// begins after the last `::`, `.`, `/` or `#`.
    #[must_use]
    pub fn is_a(&self, kind: &str) -> bool {
        self.kind == kind || simple_name(&self.kind) == kind
    }
}

/// Returns the name of a type without its path and type parameters.
fn simple_name(kind: &str) -> &str {
    let path = kind.split('<').next().unwrap_or(kind);
    path.rsplit([':', '.', '/', '#']).next().unwrap_or(path)
}
