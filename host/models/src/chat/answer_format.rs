//! The request field that constrains an answer to a schema.

use serde_json::{Value, json};

use crate::schema::strict_schema;

/// The way in which a provider constrains an answer to the schema of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerFormat {
    /// `response_format` with the schema.
    Schema,
    /// `response_format` for JSON of any form. The prompt contains the schema.
    Json,
    /// No field. The prompt contains the schema.
    Prompt,
}

impl AnswerFormat {
    /// Returns the value of `response_format`. If `is_strict` is true, the schema is converted to strict mode. Returns
    /// `None` if this format has no field, or if strict mode cannot express the schema.
    pub(super) fn response_format(self, schema: &Value, is_strict: bool) -> Option<Value> {
        match self {
            Self::Schema => {
                let schema = if is_strict {
                    strict_schema(schema)?
                } else {
                    schema.clone()
                };
                let format = json!({"name": "answer", "schema": schema, "strict": true});
                Some(json!({"type": "json_schema", "json_schema": format}))
            }
            Self::Json => Some(json!({"type": "json_object"})),
            Self::Prompt => None,
        }
    }
}
