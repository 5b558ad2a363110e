//! Parameters of a tool, from which its input schema is built.

use serde_json::{Map, Value, json};

use crate::error::{Error, ErrorKind, Phase};

/// A parameter of a tool: required by default, [optional](Parameter::optional) on request.
///
/// ```
/// use serde_json::json;
/// use toolwit_core::Parameter;
///
/// let schema = Parameter::object_schema([
///     Parameter::string("city", "Where").one_of(["Oslo", "Rome"]),
///     Parameter::integer("days", "How far ahead").optional(),
/// ])?;
/// assert_eq!(schema["required"], json!(["city"]));
/// assert_eq!(schema["properties"]["days"]["type"], "integer");
/// # Ok::<(), toolwit_core::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Parameter {
    /// The name of the argument.
    pub name: String,
    /// The JSON Schema of the argument, with the description.
    pub schema: Value,
    /// Whether each call must pass the argument.
    pub is_required: bool,
}

impl Parameter {
    /// Creates a parameter of type string.
    #[must_use]
    pub fn string(name: impl Into<String>, description: impl Into<String>) -> Self {
        Self::of_type("string", name, description)
    }

    /// Creates a parameter of type integer.
    #[must_use]
    pub fn integer(name: impl Into<String>, description: impl Into<String>) -> Self {
        Self::of_type("integer", name, description)
    }

    /// Creates a parameter of type number.
    #[must_use]
    pub fn number(name: impl Into<String>, description: impl Into<String>) -> Self {
        Self::of_type("number", name, description)
    }

    /// Creates a parameter of type boolean.
    #[must_use]
    pub fn boolean(name: impl Into<String>, description: impl Into<String>) -> Self {
        Self::of_type("boolean", name, description)
    }

    /// Creates a parameter with any JSON Schema.
    #[must_use]
    pub fn new(name: impl Into<String>, schema: Value) -> Self {
        Self {
            name: name.into(),
            schema,
            is_required: true,
        }
    }

    /// Makes the parameter optional.
    #[must_use]
    pub fn optional(mut self) -> Self {
        self.is_required = false;
        self
    }

    /// Restricts the parameter to these values, with the keyword `enum`. Has no effect on a schema that is not a JSON object.
    #[must_use]
    pub fn one_of<V: Into<Value>>(mut self, values: impl IntoIterator<Item = V>) -> Self {
        if let Value::Object(schema) = &mut self.schema {
            schema.insert("enum".to_owned(), values.into_iter().map(Into::into).collect());
        }
        self
    }

    /// Builds the schema of an object with exactly these parameters.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] if two parameters have the same name.
    pub fn object_schema(parameters: impl IntoIterator<Item = Self>) -> Result<Value, Error> {
        let mut properties = Map::new();
        let mut required = Vec::new();
        for parameter in parameters {
            if parameter.is_required {
                required.push(parameter.name.clone());
            }
            if properties.insert(parameter.name.clone(), parameter.schema).is_some() {
                let message = format!("two parameters have the name `{}`", parameter.name);
                return Err(Error::new(ErrorKind::Configuration, Phase::Validate, message));
            }
        }
        Ok(json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        }))
    }

    fn of_type(type_name: &str, name: impl Into<String>, description: impl Into<String>) -> Self {
        Self::new(name, json!({ "type": type_name, "description": description.into() }))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::{Arguments, NativeTool, Tool, ToolContext, ToolResult};

    // accept: 143, accept: 73
    #[tokio::test]
    async fn parameters_can_be_restricted_and_a_tool_can_have_no_parameters() {
        let body = |_: Arguments, _: ToolContext| async { Ok(ToolResult::text("")) };
        let parameters = [
            Parameter::string("unit", "Which").one_of(["C", "F"]),
            Parameter::number("at", "When").optional(),
        ];
        let tool = NativeTool::with_parameters("heat", "Heats.", parameters, body).unwrap();
        let call = |arguments: Value| {
            let arguments = arguments.as_object().unwrap().clone();
            let tool = &tool;
            async move { tool.call(arguments, &ToolContext::new()).await }
        };
        assert!(call(json!({"unit": "C"})).await.is_ok());
        assert!(call(json!({"unit": "F", "at": 1.5})).await.is_ok());
        for bad in [json!({}), json!({"unit": "K"}), json!({"unit": "C", "other": 1})] {
            assert!(call(bad.clone()).await.is_err(), "{bad}");
        }
        let tool_without_parameters = NativeTool::with_parameters("ping", "Answers.", [], body).unwrap();
        assert!(
            tool_without_parameters
                .call(Arguments::new(), &ToolContext::new())
                .await
                .is_ok()
        );
    }

    #[test]
    fn duplicate_parameter_names_are_rejected() {
        let parameters = [Parameter::boolean("a", ""), Parameter::integer("a", "")];
        assert!(
            Parameter::object_schema(parameters)
                .unwrap_err()
                .message
                .contains("`a`")
        );
    }
}
