//! The text and the calls that are read from the text of a response.

use serde_json::Value;

use toolwit_core::text::json_type;

/// A parsed response.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Reply {
    /// The text for the user.
    pub(super) text: String,
    /// The calls, in order.
    pub(super) calls: Vec<ParsedCall>,
}

/// A call that was read from the text of a response.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ParsedCall {
    pub(super) name: String,
    /// The arguments: the JSON text of an object.
    pub(super) arguments: String,
}

/// The reason why a response is invalid. No call of an invalid response is executed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct InvalidReply(pub(super) String);

impl Reply {
    /// Creates a reply without calls.
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            calls: Vec::new(),
        }
    }
}

impl ParsedCall {
    /// Creates a call. Missing arguments become an empty object. Arguments that are not an object are refused.
    pub(super) fn new(name: impl Into<String>, arguments: Option<&Value>) -> Result<Self, InvalidReply> {
        let name = name.into();
        let arguments = match arguments {
            None | Some(Value::Null) => "{}".to_owned(),
            Some(arguments @ Value::Object(_)) => arguments.to_string(),
            Some(other) => {
                let problem = format!("the arguments of `{name}` are {}, not an object", json_type(other));
                return Err(InvalidReply(problem));
            }
        };
        Ok(Self { name, arguments })
    }

    /// Reads a call from an object with `name` and at most one of `argument_keys`. Any other key is refused.
    pub(super) fn read(call: &Value, argument_keys: &[&str]) -> Result<Self, InvalidReply> {
        let Some(fields) = call.as_object() else {
            return Err(InvalidReply(format!("a call is {}, not an object", json_type(call))));
        };
        let name = fields.get("name").and_then(Value::as_str).unwrap_or_default();
        if name.is_empty() {
            return Err(InvalidReply("a call has no name".to_owned()));
        }
        let mut arguments = None;
        for (key, value) in fields {
            if argument_keys.contains(&key.as_str()) && arguments.is_none() {
                arguments = Some(value);
            } else if key != "name" {
                return Err(InvalidReply(format!(
                    "the call of `{name}` has the unexpected key `{key}`"
                )));
            }
        }
        Self::new(name, arguments)
    }
}
