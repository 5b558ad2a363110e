//! Tools written in Rust: closures over JSON and typed functions.

use std::any::Any;
use std::future::Future;
use std::sync::Arc;

use async_trait::async_trait;
use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    Arguments, EffectClass, Error, InputValidator, Parameter, Signal, Tool, ToolContext, ToolDefinition, ToolError,
    ToolId, ToolResult,
};

/// The text of the result of a function that returns `()`.
const DONE: &str = "done";

/// The code of a tool.
type Body = dyn Fn(Arguments, ToolContext) -> BoxFuture<'static, Result<ToolResult, ToolError>> + Send + Sync;

/// A tool written in Rust.
///
/// Arguments are validated against the schema before the code runs.
///
/// ```
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// use toolwit_core::NativeTool;
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Add {
///     /// The first summand.
///     a: i64,
///     /// The second summand.
///     b: i64,
/// }
///
/// let add = NativeTool::typed("add", "Adds two numbers.", |add: Add, _context| async move {
///     add.a.checked_add(add.b).ok_or("the sum is too large")
/// })?;
/// # Ok::<(), toolwit_core::Error>(())
/// ```
pub struct NativeTool {
    definition: ToolDefinition,
    validator: Arc<InputValidator>,
    body: Box<Body>,
    serial_group: Option<u64>,
}

impl NativeTool {
    /// Creates a tool from a closure over JSON.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](crate::ErrorKind::Configuration) if `input_schema` is not a JSON Schema of type `object`.
    pub fn new<F, Fut>(name: &str, description: impl Into<String>, input_schema: Value, body: F) -> Result<Self, Error>
    where
        F: Fn(Arguments, ToolContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<ToolResult, ToolError>> + Send + 'static,
    {
        Self::from_definition(
            ToolDefinition::new(ToolId::native(name), name, description, input_schema),
            body,
        )
    }

    /// Creates a tool from a closure over JSON, with these parameters.
    ///
    /// ```
    /// use toolwit_core::{NativeTool, Parameter, ToolResult};
    ///
    /// let add = NativeTool::with_parameters(
    ///     "add",
    ///     "Adds two numbers.",
    ///     [Parameter::integer("a", "First number"), Parameter::integer("b", "Second number")],
    ///     |arguments, _context| async move {
    ///         let number = |name: &str| arguments[name].as_i64().unwrap_or_default();
    ///         Ok(ToolResult::value((number("a") + number("b")).into()))
    ///     },
    /// )?;
    /// # Ok::<(), toolwit_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](crate::ErrorKind::Configuration) if two parameters have the same name, or the schema of a
    /// parameter is invalid.
    pub fn with_parameters<F, Fut>(
        name: &str,
        description: impl Into<String>,
        parameters: impl IntoIterator<Item = Parameter>,
        body: F,
    ) -> Result<Self, Error>
    where
        F: Fn(Arguments, ToolContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<ToolResult, ToolError>> + Send + 'static,
    {
        Self::new(name, description, Parameter::object_schema(parameters)?, body)
    }

    /// Creates a tool from a full definition and a closure over JSON.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](crate::ErrorKind::Configuration) if the input schema is not a JSON Schema of type
    /// `object`.
    pub fn from_definition<F, Fut>(definition: ToolDefinition, body: F) -> Result<Self, Error>
    where
        F: Fn(Arguments, ToolContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<ToolResult, ToolError>> + Send + 'static,
    {
        let validator = Arc::new(InputValidator::of(&definition)?);
        Ok(Self::with_validator(definition, validator, body))
    }

    /// Creates a tool from a full definition, the validator of its arguments and a closure over JSON.
    pub(super) fn with_validator<F, Fut>(definition: ToolDefinition, validator: Arc<InputValidator>, body: F) -> Self
    where
        F: Fn(Arguments, ToolContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<ToolResult, ToolError>> + Send + 'static,
    {
        Self {
            definition,
            validator,
            body: Box::new(move |arguments, context| Box::pin(body(arguments, context))),
            serial_group: None,
        }
    }

    /// Makes the calls of this tool and of all tools with this group run sequentially, in call order. With `None`, the calls of
    /// this tool may run concurrently with any other call. See [`new_serial_group`](crate::new_serial_group).
    #[must_use]
    pub fn with_serial_group(mut self, group: Option<u64>) -> Self {
        self.serial_group = group;
        self
    }

    /// Declares the effect class of the tool. Without it, the tool is in the class [`EffectClass::Write`].
    #[must_use]
    pub fn with_effect(mut self, class: EffectClass) -> Self {
        self.definition.effect = Some(class);
        self
    }

    /// Creates a tool from a typed function.
    ///
    /// The input schema is derived from `In`. The model receives `Out` as JSON, except that it receives a string without quotes, and
    /// `()` as the text `done`. The methods of entities in `Out` become tools. The process can read the Rust value of the output with
    /// [`ToolResult::downcast`]. If `Out` is a [`ToolResult`], the tool returns it unchanged.
    ///
    /// If the function fails with a [`ToolError`], the tool returns that error. A [`Signal`] as the error becomes the signal of a
    /// result. Any other error becomes a [`ToolResult::error`].
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](crate::ErrorKind::Configuration) if the schema of `In` is not a JSON Schema of type
    /// `object`.
    pub fn typed<In, Out, E, F, Fut>(name: &str, description: impl Into<String>, function: F) -> Result<Self, Error>
    where
        In: DeserializeOwned + JsonSchema,
        Out: Serialize + Send + Sync + 'static,
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
        F: Fn(In, ToolContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Out, E>> + Send + 'static,
    {
        Self::typed_as(ToolId::native(name), vec![name.to_owned()], description, function)
    }

    /// Creates a tool from a typed function, with an id and candidate names.
    ///
    /// # Errors
    /// As [`typed`](Self::typed).
    pub fn typed_as<In, Out, E, F, Fut>(
        id: ToolId,
        names: Vec<String>,
        description: impl Into<String>,
        function: F,
    ) -> Result<Self, Error>
    where
        In: DeserializeOwned + JsonSchema,
        Out: Serialize + Send + Sync + 'static,
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
        F: Fn(In, ToolContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Out, E>> + Send + 'static,
    {
        let mut definition = ToolDefinition::typed::<In>(id, "", description);
        definition.names = names;
        let function = Arc::new(function);
        Self::from_definition(definition, move |arguments, context| {
            let function = function.clone();
            async move {
                let input = read_input(arguments)?;
                tool_result(function(input, context).await)
            }
        })
    }
}

#[async_trait]
impl Tool for NativeTool {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    async fn call(&self, arguments: Arguments, context: &ToolContext) -> Result<ToolResult, ToolError> {
        let arguments = self.validator.check(arguments)?;
        (self.body)(arguments, context.clone()).await
    }

    fn serial_group(&self) -> Option<u64> {
        self.serial_group
    }
}

/// The input of a typed tool that takes no arguments.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoArguments {}

/// Derives the input schema of a tool from `In`, without `$schema` and `title`. A schema with neither a type nor a reference gets the
/// type `object`.
pub(crate) fn schema_of<In: JsonSchema>() -> Value {
    let mut schema = schemars::schema_for!(In).to_value();
    if let Value::Object(fields) = &mut schema {
        fields.remove("$schema");
        fields.remove("title");
        if fields.get("type").is_none() && !fields.contains_key("$ref") {
            fields.insert("type".to_owned(), json!("object"));
        }
    }
    schema
}

/// Deserialises arguments.
pub(super) fn read_input<In: DeserializeOwned>(arguments: Arguments) -> Result<In, ToolError> {
    serde_json::from_value(Value::Object(arguments)).map_err(|error| ToolError::invalid_arguments(error.to_string()))
}

/// Converts the return value of a function to the result of a call.
pub(super) fn tool_result<Out, E>(outcome: Result<Out, E>) -> Result<ToolResult, ToolError>
where
    Out: Serialize + Send + Sync + 'static,
    E: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let error = match outcome {
        Ok(output) => return success_result(output),
        Err(error) => error.into(),
    };
    let error = match error.downcast::<ToolError>() {
        Ok(error) => return Err(*error),
        Err(error) => error,
    };
    Ok(match error.downcast::<Signal>() {
        Ok(signal) => ToolResult::from(*signal),
        Err(error) => ToolResult::error(error.to_string()).with_source(error),
    })
}

fn success_result<Out: Serialize + Send + Sync + 'static>(output: Out) -> Result<ToolResult, ToolError> {
    let any = &output as &dyn Any;
    if let Some(result) = any.downcast_ref::<ToolResult>() {
        return Ok(result.clone());
    }
    if any.is::<()>() {
        return Ok(ToolResult::text(DONE));
    }
    ToolResult::of(Arc::new(output)).map_err(ToolError::Operator)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde::Deserialize;

    use super::*;
    use crate::ErrorKind;

    #[derive(Deserialize, JsonSchema)]
    struct Greeting {
        /// The person to greet.
        name: String,
        times: Option<u8>,
    }

    fn greet() -> NativeTool {
        NativeTool::typed(
            "greet",
            "Greets.",
            |greeting: Greeting, context: ToolContext| async move {
                match greeting.times.unwrap_or(1) {
                    0 => Err("`times` must be positive".to_owned()),
                    times => Ok(format!(
                        "{} {}{}",
                        context.text("salute").unwrap_or("hi"),
                        greeting.name,
                        "!".repeat(times.into())
                    )),
                }
            },
        )
        .unwrap()
    }

    fn arguments(value: Value) -> Arguments {
        value.as_object().unwrap().clone()
    }

    // accept: 76, accept: 89
    #[tokio::test]
    async fn a_typed_function_becomes_a_tool() {
        let context = ToolContext::new().with("salute", "hello");
        let result = greet()
            .call(arguments(json!({"name": "Ada", "times": 2})), &context)
            .await
            .unwrap();
        assert_eq!(result.for_llm, "hello Ada!!");
        assert!(!result.is_error());
        let result = greet()
            .call(arguments(json!({"name": "Ada", "times": 0})), &context)
            .await
            .unwrap();
        assert!(result.is_error());
        assert_eq!(result.for_llm, "`times` must be positive");
    }

    // accept: 15
    #[tokio::test]
    async fn invalid_arguments_are_rejected_with_their_path() {
        for invalid_arguments in [
            json!({}),
            json!({"name": 3}),
            json!({"name": "Ada", "times": 256}),
            json!({"name": "x", "times": 1.5}),
        ] {
            let error = greet()
                .call(arguments(invalid_arguments.clone()), &ToolContext::new())
                .await
                .unwrap_err();
            assert_eq!(error.report().kind, ErrorKind::InvalidArguments, "{invalid_arguments}");
        }
        let error = greet()
            .call(arguments(json!({"name": 3})), &ToolContext::new())
            .await
            .unwrap_err();
        assert!(error.report().message.starts_with("/name: "), "{error}");
    }

    #[test]
    fn schema_that_is_not_an_object_is_rejected() {
        let tool = NativeTool::new("x", "", json!({"type": "string"}), |_, _| async {
            Ok(ToolResult::text(""))
        });
        assert!(tool.is_err());
    }
}
