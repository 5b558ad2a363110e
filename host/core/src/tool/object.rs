//! Rust objects whose methods are tools.

use std::future::Future;
use std::sync::Arc;

use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::context::ToolContext;
use super::contract::{Arguments, Tool};
use super::definition::ToolDefinition;
use super::error::ToolError;
use super::id::ToolId;
use super::native::{NativeTool, answer, read_input, schema_of};
use super::result::ToolResult;
use crate::error::{Error, ErrorKind, Phase};
use crate::text::snake_case;

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
                    answer(function(object, input, context).await)
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

/// A type some of whose methods are tools. The attribute `#[tool]` on an `impl` block writes it.
pub trait ToolMethods: Sized + Send + Sync + 'static {
    /// Returns the methods that are tools.
    fn tool_methods() -> Vec<ToolMethod<Self>>;

    /// Returns the type's name in tool names: by default its own in lower case, without what it is generic over.
    #[must_use]
    fn prefix() -> String {
        let path = std::any::type_name::<Self>();
        let plain = path.split('<').next().unwrap_or(path);
        snake_case(plain.rsplit("::").next().unwrap_or("tool"))
    }

    /// Tells this object from others of its type; none by default.
    fn instance_id(&self) -> Option<String> {
        None
    }
}

/// An object that is given as tools, with a rule for their names and a filter over its methods.
///
/// ```
/// use toolwit_core::{NoArguments, ToolMethod, ToolMethods, ToolObject};
///
/// struct Calculator;
///
/// impl ToolMethods for Calculator {
///     fn tool_methods() -> Vec<ToolMethod<Self>> {
///         vec![ToolMethod::new("zero", "Gives zero.", |_, _: NoArguments, _context| async { Ok::<_, String>(0) })]
///     }
/// }
///
/// let tools = ToolObject::new(Calculator)
///     .with_names(|method| format!("calc_{method}"))
///     .with_filter(|method| method != "explode")
///     .tools()?;
/// assert_eq!(tools[0].definition().name(), "calc_zero");
/// # Ok::<(), toolwit_core::Error>(())
/// ```
pub struct ToolObject {
    prefix: String,
    methods: Vec<Bound>,
    naming: Box<dyn Fn(&str) -> String + Send + Sync>,
}

/// A method of the object.
struct Bound {
    name: String,
    make: Box<Make>,
}

type Make = dyn Fn(ToolId, Vec<String>) -> Result<NativeTool, Error> + Send + Sync;

impl ToolObject {
    /// Takes an object. Its tools have the names of its methods.
    #[must_use]
    pub fn new<T: ToolMethods>(object: T) -> Self {
        Self::shared(Arc::new(object))
    }

    /// Takes an object that others hold too.
    #[must_use]
    pub fn shared<T: ToolMethods>(object: Arc<T>) -> Self {
        let methods = T::tool_methods().into_iter().map(|method| {
            let object = object.clone();
            Bound {
                name: method.name.clone(),
                make: Box::new(move |id, names| method.bound_to(object.clone(), id, names)),
            }
        });
        Self {
            prefix: T::prefix(),
            methods: methods.collect(),
            naming: Box::new(str::to_owned),
        }
    }

    /// Names each tool by its method.
    #[must_use]
    pub fn with_names(mut self, naming: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        self.naming = Box::new(naming);
        self
    }

    /// Takes only the methods whose names pass.
    #[must_use]
    pub fn with_filter(mut self, filter: impl Fn(&str) -> bool) -> Self {
        self.methods.retain(|method| filter(&method.name));
        self
    }

    /// Makes the tools.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] when there are none, or when the schema of a parameter's type is not valid.
    pub fn tools(&self) -> Result<Vec<Arc<dyn Tool>>, Error> {
        if self.methods.is_empty() {
            let message = format!("the object of type `{}` has no methods that are tools", self.prefix);
            let error = Error::new(ErrorKind::Configuration, Phase::Validate, message);
            return Err(error.with_suggestion("write `#[tool]` on its methods, or let the filter pass some"));
        }
        self.tools_if_any()
    }

    /// Makes the tools, perhaps none. Each has the category of its method, by which a facade sorts them.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] when the schema of a parameter's type is not valid.
    pub fn tools_if_any(&self) -> Result<Vec<Arc<dyn Tool>>, Error> {
        let made = self.methods.iter().map(|method| {
            let name = (self.naming)(&method.name);
            let id = ToolId::native(&format!("{}.{name}", self.prefix));
            Ok(Arc::new((method.make)(id, vec![name])?) as Arc<dyn Tool>)
        });
        made.collect()
    }
}

/// An object is given as it is.
impl<T: ToolMethods> From<T> for ToolObject {
    fn from(object: T) -> Self {
        Self::new(object)
    }
}

#[cfg(test)]
mod tests;
