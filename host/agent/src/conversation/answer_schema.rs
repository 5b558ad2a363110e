//! A JSON Schema for the answer of a model, if the schema does not come from a Rust type.

use std::fmt;

use serde_json::Value;

use toolwit_core::text::parse_json;
use toolwit_core::{Error, ErrorKind, InputValidator, Phase, ToolDefinition, ToolError, ToolId};

/// A compiled JSON Schema for the answer of a model. See [`UserTurn::run_json`](crate::UserTurn::run_json).
///
/// ```
/// use serde_json::json;
/// use toolwit_agent::AnswerSchema;
/// use toolwit_agent::model::ScriptedModel;
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let schema = AnswerSchema::new(json!({
///     "type": "object",
///     "properties": {"celsius": {"type": "number"}},
///     "required": ["celsius"],
/// }))?;
/// let model = ScriptedModel::new().answer(r#"{"celsius": 21}"#);
/// let mut conversation = toolwit_agent::Conversation::builder().model(model).build()?;
/// let answer = conversation.turn("How warm is it?").run_json(&schema).await?;
/// assert_eq!(answer.value["celsius"], 21);
/// # Ok(()) }
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(example()).unwrap();
/// ```
pub struct AnswerSchema {
    schema: Value,
    validator: InputValidator,
}

impl fmt::Debug for AnswerSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnswerSchema")
            .field("schema", &self.schema)
            .finish_non_exhaustive()
    }
}

impl AnswerSchema {
    /// Compiles a schema.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] if `schema` is not a JSON Schema of type `object`, the only type that all providers accept.
    pub fn new(schema: Value) -> Result<Self, Error> {
        let definition = ToolDefinition::new(ToolId::host("answer"), "answer", "", schema.clone());
        let validator = InputValidator::of(&definition).map_err(|error| {
            let message = error.message.replace("the input schema", "the schema of the answer");
            Error::new(ErrorKind::Configuration, Phase::Validate, message)
        })?;
        Ok(Self { schema, validator })
    }

    /// Returns the schema.
    #[must_use]
    pub fn schema(&self) -> &Value {
        &self.schema
    }

    /// Parses an answer and checks that it fits the schema. The error is the reason, as text for the model.
    pub(super) fn parse(&self, answer: &str) -> Result<Value, String> {
        let value = parse_json(answer).map_err(|error| error.to_string())?;
        let Value::Object(fields) = value else {
            return Err("it is not an object".to_owned());
        };
        let valid_fields = self.validator.check(fields).map_err(|error| match error {
            ToolError::Model(error) | ToolError::Operator(error) => error.message.clone(),
        })?;
        Ok(Value::Object(valid_fields))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    // attack: E9
    #[test]
    fn an_answer_of_too_many_parts_is_refused_before_it_is_parsed() {
        let schema = AnswerSchema::new(json!({"type": "object"})).unwrap();
        let answer = |items: usize| format!("{{\"a\": [{}]}}", vec!["{}"; items].join(","));
        assert!(schema.parse(&answer(60_000)).is_ok());
        let error = schema.parse(&answer(70_000)).unwrap_err();
        assert!(error.contains("more than 131072 values"), "{error}");
    }

    #[test]
    fn an_answer_is_checked_and_an_unusable_schema_is_refused() {
        let schema = AnswerSchema::new(json!({
            "type": "object",
            "properties": {"n": {"type": "integer"}},
            "required": ["n"],
        }));
        let schema = schema.unwrap();
        assert_eq!(schema.parse(r#"{"n": 1}"#).unwrap(), json!({"n": 1}));
        for invalid_answer in ["", "[]", r#"{"n": "1"}"#, "{}"] {
            assert!(schema.parse(invalid_answer).is_err(), "{invalid_answer}");
        }
        for schema in [
            json!({"type": "string"}),
            json!(true),
            json!({"type": "object", "properties": 1}),
        ] {
            let error = AnswerSchema::new(schema).unwrap_err();
            assert!(error.message.starts_with("the schema of the answer"), "{error}");
        }
    }
}
