//! The methods of a Rust type, before they are bound to an object.

use std::future::Future;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::text::id_text;
use crate::{
    Artifact, Error, InputValidator, NativeEntity, NativeTool, Rebinding, ToolContext, ToolDefinition, ToolId,
    ToolMethod, ToolMethods,
};

/// Creates the tool that calls a method of an object, with this id and these candidate names.
type MethodBinder<T> = dyn Fn(Arc<T>, ToolId, Vec<String>) -> Result<NativeTool, Error> + Send + Sync;

/// The methods of a Rust type whose objects are entities.
///
/// The methods are defined once, and [`entity`](Self::entity) binds them to an object. The definitions are available before an
/// object exists. `Chaining` of `toolwit-agent` uses them for tools that act on the most recent object of a type.
///
/// ```
/// use std::sync::Arc;
///
/// use toolwit_core::{EntityMethods, NoArguments, ToolProvider};
///
/// struct Customer { spend: u32 }
///
/// let customers = EntityMethods::<Customer>::new("customer")
///     .method("get_spend", "Gets the average spend.", |customer, _: NoArguments, _context| async move {
///         Ok::<_, String>(customer.spend)
///     })?;
/// let ada = customers.entity("c-1", Arc::new(Customer { spend: 150 }))?;
/// assert_eq!(ada.tools()[0].definition().name(), "customer_c1_get_spend");
/// # Ok::<(), toolwit_core::Error>(())
/// ```
pub struct EntityMethods<T> {
    prefix: String,
    rebinding: Rebinding,
    is_concurrent: bool,
    methods: Vec<Method<T>>,
}

impl<T> Clone for EntityMethods<T> {
    fn clone(&self) -> Self {
        Self {
            prefix: self.prefix.clone(),
            rebinding: self.rebinding,
            is_concurrent: self.is_concurrent,
            methods: self.methods.clone(),
        }
    }
}

struct Method<T> {
    name: String,
    /// The definition of the method's tool, which is not bound to an object.
    definition: ToolDefinition,
    bind: Arc<MethodBinder<T>>,
}

impl<T> Clone for Method<T> {
    fn clone(&self) -> Self {
        Self {
            name: self.name.clone(),
            definition: self.definition.clone(),
            bind: self.bind.clone(),
        }
    }
}

impl<T: Send + Sync + 'static> EntityMethods<T> {
    /// Creates an empty list of methods. Their tool names start with `prefix`.
    #[must_use]
    pub fn new(prefix: impl Into<String>) -> Self {
        Self {
            prefix: prefix.into(),
            rebinding: Rebinding::Keep,
            is_concurrent: false,
            methods: Vec::new(),
        }
    }

    /// Makes the tools use the newest object when a call returns another object with the same id.
    #[must_use]
    pub fn latest_wins(mut self) -> Self {
        self.rebinding = Rebinding::Latest;
        self
    }

    /// Lets calls on one object run concurrently, also the calls of one response.
    #[must_use]
    pub fn concurrent(mut self) -> Self {
        self.is_concurrent = true;
        self
    }

    /// Creates the list of the methods of a type whose `impl` has the attribute `#[tool]`. The options `prefix`, `latest` and
    /// `concurrent` of the attribute apply to the entities that this list creates.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](crate::ErrorKind::Configuration) if the schema of a parameter is invalid.
    pub fn from_tool_methods() -> Result<Self, Error>
    where
        T: ToolMethods,
    {
        let mut methods = Self::new(T::prefix());
        methods.rebinding = T::rebinding();
        methods.is_concurrent = T::is_concurrent();
        for method in T::tool_methods() {
            let definition = methods.definition_of(&method);
            InputValidator::of(&definition)?;
            methods.methods.push(Method {
                name: method.name().to_owned(),
                definition,
                bind: Arc::new(move |object, id, names| method.bound_to(object, id, names)),
            });
        }
        Ok(methods)
    }

    /// Returns the definition of a method that is not bound to an object.
    fn definition_of(&self, method: &ToolMethod<T>) -> ToolDefinition {
        let (id, name) = self.identity(method.name());
        method.definition(id, vec![name])
    }

    /// Returns the id and the name of a method that is not bound to an object.
    fn identity(&self, method: &str) -> (ToolId, String) {
        let id = ToolId::native(&format!("{}.{method}", self.prefix));
        (id, format!("{}_{method}", self.prefix))
    }

    /// Adds a method. The function receives the object, the arguments and the context of the call.
    ///
    /// # Errors
    /// As [`NativeTool::typed`].
    pub fn method<In, Out, E, F, Fut>(
        mut self,
        name: &str,
        description: impl Into<String>,
        function: F,
    ) -> Result<Self, Error>
    where
        In: DeserializeOwned + JsonSchema,
        Out: Serialize + Send + Sync + 'static,
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
        F: Fn(Arc<T>, In, ToolContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Out, E>> + Send + 'static,
    {
        let description = description.into();
        let (id, tool_name) = self.identity(name);
        let definition = ToolDefinition::typed::<In>(id, tool_name, description.clone());
        InputValidator::of(&definition)?;
        let function = Arc::new(function);
        let bind = move |object: Arc<T>, id, names| {
            let function = function.clone();
            NativeTool::typed_as(id, names, description.clone(), move |input: In, context| {
                function(object.clone(), input, context)
            })
        };
        self.methods.push(Method {
            name: name.to_owned(),
            definition,
            bind: Arc::new(bind),
        });
        Ok(self)
    }

    /// Returns the prefix of tool names.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Returns the definitions of the methods, which are not bound to an object: their ids and names contain no object id.
    #[must_use]
    pub fn definitions(&self) -> Vec<ToolDefinition> {
        self.methods.iter().map(|method| method.definition.clone()).collect()
    }

    /// Creates an entity with this id from an object, and binds the methods to the object.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](crate::ErrorKind::Configuration) if the schema of a parameter is invalid. This error is not
    /// expected, because the schemas were validated when the methods were added.
    pub fn entity(&self, id: impl Into<String>, object: Arc<T>) -> Result<NativeEntity<T>, Error> {
        self.bind(Some(id.into()), object)
    }

    /// Creates an entity from the live object of an artifact. The id of the entity is the `id` in the artifact's JSON, if it
    /// has one. Returns `None` if the artifact carries no object of type `T`.
    #[must_use]
    pub fn of_artifact(&self, artifact: &Artifact) -> Option<NativeEntity<T>> {
        let id = artifact.value.get("id").and_then(id_text);
        self.bind(id, artifact.downcast()?).ok()
    }

    fn bind(&self, id: Option<String>, object: Arc<T>) -> Result<NativeEntity<T>, Error> {
        let mut entity = NativeEntity::new(&self.prefix, object.clone());
        if let Some(id) = id {
            entity = entity.with_id(id);
        }
        if self.rebinding == Rebinding::Latest {
            entity = entity.latest_wins();
        }
        if self.is_concurrent {
            entity = entity.concurrent();
        }
        for method in &self.methods {
            let (id, names) = (entity.tool_id(&method.name), entity.tool_names(&method.name));
            entity.push((method.bind)(object.clone(), id, names)?);
        }
        Ok(entity)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::{NoArguments, ToolProvider};

    struct Cart;

    impl ToolMethods for Cart {
        fn tool_methods() -> Vec<ToolMethod<Self>> {
            vec![ToolMethod::new(
                "count",
                "Counts the items.",
                |_, _: NoArguments, _context| async { Ok::<_, String>(0) },
            )]
        }

        fn rebinding() -> Rebinding {
            Rebinding::Latest
        }

        fn is_concurrent() -> bool {
            true
        }
    }

    #[test]
    fn entities_have_the_options_of_their_type() {
        let cart = EntityMethods::<Cart>::from_tool_methods().unwrap();
        let cart = cart.entity("c-1", Arc::new(Cart)).unwrap();
        assert_eq!(cart.rebinding(), Rebinding::Latest);
        assert_eq!(cart.tools()[0].serial_group(), None);

        let count = |_, _: NoArguments, _context| async { Ok::<_, String>(0) };
        let cart = EntityMethods::<Cart>::new("cart").method("count", "Counts the items.", count);
        let cart = cart.unwrap().entity("c-1", Arc::new(Cart)).unwrap();
        assert_eq!(cart.rebinding(), Rebinding::Keep, "the default");
        assert!(
            cart.tools()[0].serial_group().is_some(),
            "calls run sequentially by default"
        );
    }
}
