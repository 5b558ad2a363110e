//! Functions and methods that can become tools.

use std::future::Future;
use std::sync::{Arc, OnceLock};

use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::native_tool::{NativeTool, read_input, schema_of, tool_result};
use crate::{
    Arguments, EffectClass, Error, InputValidator, ToolContext, ToolDefinition, ToolError, ToolId, ToolResult,
};

/// The code of a function or method.
type Body<T> =
    dyn Fn(Arc<T>, Arguments, ToolContext) -> BoxFuture<'static, Result<ToolResult, ToolError>> + Send + Sync;

/// A function or method that becomes a tool when it is bound to an object, an id and names.
///
/// The attribute `#[tool]` generates code that creates values of this type. Without the attribute, an application creates them:
///
/// ```
/// use toolwit_core::{NoArguments, ToolMethod};
///
/// let now = ToolMethod::function("now", "Returns the hour.", |_: NoArguments, _context| async { Ok::<_, String>(12) });
/// let tool = now.into_tool()?;
/// # Ok::<(), toolwit_core::Error>(())
/// ```
pub struct ToolMethod<T = ()> {
    name: String,
    description: String,
    category: Option<String>,
    effect: Option<EffectClass>,
    input_schema: Arc<Value>,
    /// The validator of the input schema. All bound tools share it.
    validator: Arc<OnceLock<Arc<InputValidator>>>,
    /// Whether the run ends with the result of the tool as its answer, unless the result is an error.
    is_final: bool,
    body: Arc<Body<T>>,
}

impl<T> Clone for ToolMethod<T> {
    fn clone(&self) -> Self {
        Self {
            name: self.name.clone(),
            description: self.description.clone(),
            category: self.category.clone(),
            effect: self.effect,
            input_schema: self.input_schema.clone(),
            validator: self.validator.clone(),
            is_final: self.is_final,
            body: self.body.clone(),
        }
    }
}

impl ToolMethod {
    /// Wraps a typed function, like [`NativeTool::typed`].
    #[must_use]
    pub fn function<In, Out, E, F, Fut>(name: impl Into<String>, description: impl Into<String>, function: F) -> Self
    where
        In: DeserializeOwned + JsonSchema,
        Out: Serialize + Send + Sync + 'static,
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
        F: Fn(In, ToolContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Out, E>> + Send + 'static,
    {
        Self::new(name, description, move |_, input, context| function(input, context))
    }

    /// Creates a tool with the name of the function.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](crate::ErrorKind::Configuration) if the input schema is not a JSON Schema of type `object`.
    pub fn into_tool(self) -> Result<NativeTool, Error> {
        let names = vec![self.name.clone()];
        self.bound_to(Arc::new(()), ToolId::native(&self.name), names)
    }
}

impl<T: Send + Sync + 'static> ToolMethod<T> {
    /// Wraps a typed method: a function that also receives the object.
    #[must_use]
    pub fn new<In, Out, E, F, Fut>(name: impl Into<String>, description: impl Into<String>, function: F) -> Self
    where
        In: DeserializeOwned + JsonSchema,
        Out: Serialize + Send + Sync + 'static,
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
        F: Fn(Arc<T>, In, ToolContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Out, E>> + Send + 'static,
    {
        let function = Arc::new(function);
        Self {
            name: name.into(),
            description: description.into(),
            category: None,
            effect: None,
            input_schema: Arc::new(schema_of::<In>()),
            validator: Arc::default(),
            is_final: false,
            body: Arc::new(move |object, arguments, context| {
                let function = function.clone();
                Box::pin(async move {
                    let input = read_input(arguments)?;
                    tool_result(function(object, input, context).await)
                })
            }),
        }
    }

    /// Sets the category, by which facades group tools.
    #[must_use]
    pub fn with_category(mut self, category: impl Into<String>) -> Self {
        self.category = Some(category.into());
        self
    }

    /// Declares the effect class. A tool without a declared class is in the class [`EffectClass::Write`].
    #[must_use]
    pub fn with_effect(mut self, class: EffectClass) -> Self {
        self.effect = Some(class);
        self
    }

    /// Makes the run end with the result of this tool as its answer, unless the result is an error.
    #[must_use]
    pub fn return_direct(mut self) -> Self {
        self.is_final = true;
        self
    }

    /// Returns the name of the method.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the description.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Returns the category, by which facades group tools.
    #[must_use]
    pub fn category(&self) -> Option<&str> {
        self.category.as_deref()
    }

    /// Returns the definition of a tool with this id. `names` are its candidate names, the preferred name first.
    #[must_use]
    pub fn definition(&self, id: ToolId, names: Vec<String>) -> ToolDefinition {
        ToolDefinition {
            id,
            names,
            description: self.description.clone(),
            category: self.category.clone(),
            input_schema: self.input_schema.clone(),
            output_schema: None,
            effect: self.effect,
        }
    }

    /// Creates a tool that calls the method on this object. `names` are its candidate names, the preferred name first.
    ///
    /// # Errors
    /// As [`into_tool`](ToolMethod::into_tool).
    pub fn bound_to(&self, object: Arc<T>, id: ToolId, names: Vec<String>) -> Result<NativeTool, Error> {
        let (body, is_final) = (self.body.clone(), self.is_final);
        let definition = self.definition(id, names);
        let validator = self.validator(&definition)?;
        Ok(NativeTool::with_validator(
            definition,
            validator,
            move |arguments, context| {
                let call = body(object.clone(), arguments, context);
                async move {
                    let result = call.await?;
                    Ok(if is_final { result.as_answer() } else { result })
                }
            },
        ))
    }

    /// Returns the validator of the arguments. Compiles the input schema on the first call.
    fn validator(&self, definition: &ToolDefinition) -> Result<Arc<InputValidator>, Error> {
        if let Some(validator) = self.validator.get() {
            return Ok(validator.clone());
        }
        let validator = Arc::new(InputValidator::of(definition)?);
        Ok(self.validator.get_or_init(|| validator).clone())
    }
}
