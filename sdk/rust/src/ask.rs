//! Questions to the person who uses the host: at a terminal, in a chat, or in an MCP client. They need the grant `ask`
//! (`toolwit grant NAME --ask`).
//!
//! ```no_run
//! use toolwit_guest::ask::{Answer, Form};
//!
//! #[derive(serde::Deserialize)]
//! struct Order {
//!     size: String,
//!     gift: bool,
//! }
//!
//! # fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let form = Form::new("order", "Which T-shirt?").choice("size", "Size", &["S", "M", "L"]).boolean("gift", "Gift wrap?");
//! match form.ask::<Order>()? {
//!     Answer::Accepted(order) => println!("{} {}", order.size, order.gift),
//!     Answer::Declined | Answer::Cancelled => println!("no order"),
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Some clients answer by repeating the call: the guest then ends at the question, and the call runs again from its start. Therefore,
//! ask before you change anything. A form must not ask for a password or another secret: the operator grants secrets.

use std::fmt;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::host;

/// A form with fields. All fields are required, except those that [`optional`](Self::optional) adds.
#[derive(Clone, Debug)]
#[must_use = "a form is shown when it is asked"]
pub struct Form {
    key: String,
    message: String,
    properties: Map<String, Value>,
    required: Vec<String>,
}

/// The answer of a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer<T> {
    /// The person filled in the form.
    Accepted(T),
    /// The person refused to answer.
    Declined,
    /// The person closed the form without a decision.
    Cancelled,
}

impl Form {
    /// Creates a form without fields. Accepting it means yes. The key identifies the question in the call: ASCII letters, digits, `-`
    /// and `_`. When a call runs again, it receives the answer to a question under the same key.
    pub fn new(key: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            key: key.into(),
            message: message.into(),
            properties: Map::new(),
            required: Vec::new(),
        }
    }

    /// Adds a required field with a JSON Schema.
    pub fn field(mut self, name: &str, schema: Value) -> Self {
        self.required.push(name.to_owned());
        self.optional(name, schema)
    }

    /// Adds an optional field with a JSON Schema.
    pub fn optional(mut self, name: &str, schema: Value) -> Self {
        self.properties.insert(name.to_owned(), schema);
        self
    }

    /// Adds a field for a text.
    pub fn text(self, name: &str, title: &str) -> Self {
        self.field(name, json!({"type": "string", "title": title}))
    }

    /// Adds a field for an integer.
    pub fn integer(self, name: &str, title: &str) -> Self {
        self.field(name, json!({"type": "integer", "title": title}))
    }

    /// Adds a field for yes or no.
    pub fn boolean(self, name: &str, title: &str) -> Self {
        self.field(name, json!({"type": "boolean", "title": title}))
    }

    /// Adds a field for one of several options.
    pub fn choice(self, name: &str, title: &str, options: &[&str]) -> Self {
        self.field(name, json!({"type": "string", "title": title, "enum": options}))
    }

    /// Shows the form, and waits for the answer.
    ///
    /// # Errors
    ///
    /// [`AskError`] if the form is not valid, questions are not granted, no person can be asked, a limit is exceeded, or the answer
    /// is not a `T`.
    pub fn ask<T: DeserializeOwned>(self) -> Result<Answer<T>, AskError> {
        let Self {
            key,
            message,
            properties,
            required,
        } = self;
        let schema = json!({"type": "object", "properties": properties, "required": required});
        Ok(match host::ask(key, message, schema.to_string())? {
            Answer::Accepted(values) => Answer::Accepted(serde_json::from_str(&values).map_err(AskError::Json)?),
            Answer::Declined => Answer::Declined,
            Answer::Cancelled => Answer::Cancelled,
        })
    }
}

/// The reason why a form was not shown or not answered.
#[derive(Debug)]
#[non_exhaustive]
pub enum AskError {
    /// The form is not valid, or it asks for a secret.
    InvalidForm(String),
    /// Questions are not granted.
    Denied(String),
    /// No person can be asked.
    Unavailable(String),
    /// The call asked too many questions, or the person did not answer in time.
    Limit(String),
    /// The answer is not of the requested type.
    Json(serde_json::Error),
}

impl fmt::Display for AskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidForm(reason) => write!(f, "the form is not valid: {reason}"),
            Self::Denied(reason) | Self::Unavailable(reason) | Self::Limit(reason) => f.write_str(reason),
            Self::Json(error) => write!(f, "the answer is not of the requested type: {error}"),
        }
    }
}

impl std::error::Error for AskError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Json(error) => Some(error),
            _ => None,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_native_test_has_no_person() {
        let error = Form::new("name", "Sure?")
            .text("name", "Your name")
            .ask::<Value>()
            .unwrap_err();
        assert!(matches!(error, AskError::Unavailable(_)), "{error}");
    }
}
