//! Functions and methods that can become tools.

use std::future::Future;
use std::sync::Arc;

use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::native_tool::{NativeTool, read_input, schema_of, tool_result};
use crate::{Arguments, Error, ToolContext, ToolDefinition, ToolError, ToolId, ToolResult};

type Body<T> =
    dyn Fn(Arc<T>, Arguments, ToolContext) -> BoxFuture<'static, Result<ToolResult, ToolError>> + Send + Sync;

/// One function or method on its way to be a tool: all but the object, the identity and the names under which it is known.
///
/// The attribute `#[tool]` makes them; by hand it goes like this:
///
/// ```
/// use toolwit_core::{NoArguments, ToolMethod};
///
/// let now = ToolMethod::function("now", "Tells the hour.", |_: NoArguments, _context| async { Ok::<_, String>(12) });
/// let tool = now.into_tool()?;
/// # Ok::<(), toolwit_core::Error>(())
/// ```
pub struct ToolMethod<T = ()> {
    name: String,
    description: String,
    category: Option<String>,
    input_schema: Value,
    return_direct: bool,
    body: Arc<Body<T>>,
}

impl<T> Clone for ToolMethod<T> {
    fn clone(&self) -> Self {
        Self {
            name: self.name.clone(),
            description: self.description.clone(),
            category: self.category.clone(),
            input_schema: self.input_schema.clone(),
            return_direct: self.return_direct,
            body: self.body.clone(),
        }
    }
}

impl ToolMethod {
    /// Takes a function from a type to a type, as [`NativeTool::typed`] does.
    #[must_use]
    pub fn function<In, Out, E, F, Fut>(name: impl Into<String>, description: impl Into<String>, function: F) -> Self
    where
        In: DeserializeOwned + JsonSchema,
        Out: Serialize + Send + 'static,
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
        F: Fn(In, ToolContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Out, E>> + Send + 'static,
    {
        Self::new(name, description, move |_, input, context| function(input, context))
    }

    /// Makes the tool under the function's own name.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] when the schema of a parameter's type is not valid.
    pub fn into_tool(self) -> Result<NativeTool, Error> {
        let names = vec![self.name.clone()];
        self.bound_to(Arc::new(()), ToolId::native(&self.name), names)
    }
}

impl<T: Send + Sync + 'static> ToolMethod<T> {
    /// Takes a function of an object and a type to a type.
    #[must_use]
    pub fn new<In, Out, E, F, Fut>(name: impl Into<String>, description: impl Into<String>, function: F) -> Self
    where
        In: DeserializeOwned + JsonSchema,
        Out: Serialize + Send + 'static,
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
        F: Fn(Arc<T>, In, ToolContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Out, E>> + Send + 'static,
    {
        let function = Arc::new(function);
        Self {
            name: name.into(),
            description: description.into(),
            category: None,
            input_schema: schema_of::<In>(),
            return_direct: false,
            body: Arc::new(move |object, arguments, context| {
                let function = function.clone();
                Box::pin(async move {
                    let input = read_input(arguments)?;
                    tool_result(function(object, input, context).await)
                })
            }),
        }
    }

    /// Names the category under which a facade shows it.
    #[must_use]
    pub fn with_category(mut self, category: impl Into<String>) -> Self {
        self.category = Some(category.into());
        self
    }

    /// Makes its result the run's answer, unless it fails.
    #[must_use]
    pub fn return_direct(mut self) -> Self {
        self.return_direct = true;
        self
    }

    /// Returns the method's own name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns what it does.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Returns the category.
    #[must_use]
    pub fn category(&self) -> Option<&str> {
        self.category.as_deref()
    }

    /// Describes the tool under an identity and names of the caller's choice, the best name first.
    #[must_use]
    pub fn definition(&self, id: ToolId, names: Vec<String>) -> ToolDefinition {
        let mut definition = ToolDefinition::new(id, "", self.description.clone(), self.input_schema.clone());
        definition.names = names;
        definition.category = self.category.clone();
        definition
    }

    /// Makes the tool of an object, under an identity and names of the caller's choice, the best name first.
    ///
    /// # Errors
    /// As [`into_tool`](ToolMethod::into_tool).
    pub fn bound_to(&self, object: Arc<T>, id: ToolId, names: Vec<String>) -> Result<NativeTool, Error> {
        let (body, direct) = (self.body.clone(), self.return_direct);
        NativeTool::from_definition(self.definition(id, names), move |arguments, context| {
            let answer = body(object.clone(), arguments, context);
            async move {
                let result = answer.await?;
                Ok(if direct { result.as_answer() } else { result })
            }
        })
    }
}
