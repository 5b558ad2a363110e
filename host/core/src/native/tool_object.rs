//! Objects whose methods are tools.

use std::sync::Arc;

use super::tool_method::ToolMethod;
use crate::text::snake_case;
use crate::{Error, ErrorKind, NativeTool, Phase, Rebinding, Tool, ToolId, entity_tool_names, new_serial_group};

/// A type with methods that are tools. The attribute `#[tool]` on an `impl` block implements this trait.
pub trait ToolMethods: Sized + Send + Sync + 'static {
    /// Returns the methods that are tools.
    fn tool_methods() -> Vec<ToolMethod<Self>>;

    /// Returns the prefix of tool names, by default the name of the type in lower case without type parameters.
    #[must_use]
    fn prefix() -> String {
        let path = std::any::type_name::<Self>();
        let path_without_parameters = path.split('<').next().unwrap_or(path);
        snake_case(path_without_parameters.rsplit("::").next().unwrap_or("tool"))
    }

    /// Returns the id of this object, unique in its type. The default is `None`. If this method returns `None` and the type
    /// derives `Entity`, the id of the entity is the property `id` of its JSON.
    fn instance_id(&self) -> Option<String> {
        None
    }

    /// Returns which object the tools of an entity use after a call has returned the same entity again: the first object or the
    /// newest one.
    #[must_use]
    fn rebinding() -> Rebinding {
        Rebinding::Keep
    }

    /// Returns whether the calls of tools of one object may run concurrently. By default they run sequentially, in call order.
    #[must_use]
    fn is_concurrent() -> bool {
        false
    }
}

/// An object whose methods become tools, with a naming rule and a filter for the methods.
///
/// The calls of its tools run sequentially, in call order, unless the object is [concurrent](Self::concurrent). If the objects
/// of a type have ids, several of them can be in one conversation: the tools of the second object then have names with its id,
/// such as `cart_c2_add_item`.
///
/// ```
/// use toolwit_core::{NoArguments, ToolMethod, ToolMethods, ToolObject};
///
/// struct Calculator;
///
/// impl ToolMethods for Calculator {
///     fn tool_methods() -> Vec<ToolMethod<Self>> {
///         vec![ToolMethod::new("zero", "Returns zero.", |_, _: NoArguments, _context| async { Ok::<_, String>(0) })]
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
    id: Option<String>,
    serial_group: Option<u64>,
    methods: Vec<BoundMethod>,
    naming: Box<dyn Fn(&str) -> String + Send + Sync>,
}

/// A method of the wrapped object.
struct BoundMethod {
    name: String,
    bind: Box<BindMethod>,
}

/// A closure that creates the tool of a method, with this id and these candidate names.
type BindMethod = dyn Fn(ToolId, Vec<String>) -> Result<NativeTool, Error> + Send + Sync;

impl ToolObject {
    /// Wraps an object. The tools have the names of the object's methods.
    #[must_use]
    pub fn new<T: ToolMethods>(object: T) -> Self {
        Self::shared(Arc::new(object))
    }

    /// Wraps a shared object.
    #[must_use]
    pub fn shared<T: ToolMethods>(object: Arc<T>) -> Self {
        let methods = T::tool_methods().into_iter().map(|method| {
            let object = object.clone();
            BoundMethod {
                name: method.name().to_owned(),
                bind: Box::new(move |id, names| method.bound_to(object.clone(), id, names)),
            }
        });
        Self {
            prefix: T::prefix(),
            id: object.instance_id(),
            serial_group: (!T::is_concurrent()).then(new_serial_group),
            methods: methods.collect(),
            naming: Box::new(str::to_owned),
        }
    }

    /// Sets the rule that derives the name of a tool from the name of its method.
    #[must_use]
    pub fn with_names(mut self, naming: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        self.naming = Box::new(naming);
        self
    }

    /// Lets the calls of the tools run concurrently, including the calls of one model response. Use this for objects without
    /// mutable state, such as a client of a service.
    #[must_use]
    pub fn concurrent(mut self) -> Self {
        self.serial_group = None;
        self
    }

    /// Keeps only the methods for whose names the filter returns `true`.
    #[must_use]
    pub fn with_filter(mut self, filter: impl Fn(&str) -> bool) -> Self {
        self.methods.retain(|method| filter(&method.name));
        self
    }

    /// Creates the tools.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] if there are no tools, or if the schema of a parameter is invalid.
    pub fn tools(&self) -> Result<Vec<Arc<dyn Tool>>, Error> {
        if self.methods.is_empty() {
            let message = format!(
                "the object with the prefix `{}` has no methods that are tools",
                self.prefix
            );
            let error = Error::new(ErrorKind::Configuration, Phase::Validate, message);
            return Err(error.with_suggestion("write `#[tool]` on its methods, or relax the filter"));
        }
        self.tools_if_any()
    }

    /// Creates the tools; the list may be empty.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] if the schema of a parameter is invalid.
    pub fn tools_if_any(&self) -> Result<Vec<Arc<dyn Tool>>, Error> {
        let tools = self.methods.iter().map(|method| {
            let name = (self.naming)(&method.name);
            let mut id = ToolId::native(&format!("{}.{name}", self.prefix));
            let mut names = vec![name.clone()];
            if let Some(object_id) = &self.id {
                id = id.bound_to(object_id);
                names.extend(entity_tool_names(&self.prefix, object_id, &name));
            }
            let tool = (method.bind)(id, names)?.with_serial_group(self.serial_group);
            Ok(Arc::new(tool) as Arc<dyn Tool>)
        });
        tools.collect()
    }
}

/// Wraps an object without a naming rule or a filter.
impl<T: ToolMethods> From<T> for ToolObject {
    fn from(object: T) -> Self {
        Self::new(object)
    }
}
