//! Entities written in Rust.

use std::any::Any;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{
    Error, NativeTool, Rebinding, Tool, ToolContext, ToolId, ToolMethods, ToolProvider, entity_tool_names,
    new_serial_group,
};

use crate::text::snake_case;

/// Number of candidate names such as `cart_2_count` for a method of an object without an id. If all these names are taken, the
/// tool set assigns a name with a hash.
const NUMBERED_NAME_COUNT: usize = 16;

/// The number of the next entity. Entities without an id differ by their numbers.
static NEXT_NUMBER: AtomicU64 = AtomicU64::new(1);

/// A Rust object whose methods become tools of the conversation when a call returns it.
///
/// The tools share the object, so that a call sees the changes of earlier calls. The calls run sequentially, in call order.
/// Dependencies of the methods, such as a database, are fields of the object.
///
/// A type that derives `Entity` needs no `NativeEntity`: a tool returns the objects themselves.
///
/// ```
/// use std::sync::{Arc, Mutex};
///
/// use serde_json::json;
/// use toolwit_core::{NativeEntity, NoArguments, ToolResult};
///
/// let cart = Arc::new(Mutex::new(vec!["apple"]));
/// let entity = NativeEntity::new("cart", cart)
///     .with_id("c-1")
///     .method("count", "Counts the items.", |cart, _: NoArguments, _context| async move {
///         cart.lock().map(|items| items.len()).map_err(|_| "the cart is broken")
///     })?;
/// let result = ToolResult::value(json!({"type": "cart", "id": "c-1"})).with_provider(Arc::new(entity));
/// # Ok::<(), toolwit_core::Error>(())
/// ```
pub struct NativeEntity<T> {
    prefix: String,
    id: Option<String>,
    /// The number in the tool ids of an entity without an id. It distinguishes these entities.
    number: u64,
    object: Arc<T>,
    rebinding: Rebinding,
    tools: Vec<Arc<dyn Tool>>,
    /// The group in which the calls run sequentially; `None` if they may run concurrently.
    serial_group: Option<u64>,
}

impl<T: Send + Sync + 'static> NativeEntity<T> {
    /// Creates an entity without methods. The names of its tools will start with `prefix`.
    #[must_use]
    pub fn new(prefix: impl Into<String>, object: Arc<T>) -> Self {
        Self {
            prefix: prefix.into(),
            id: None,
            number: NEXT_NUMBER.fetch_add(1, Ordering::Relaxed),
            object,
            rebinding: Rebinding::Keep,
            tools: Vec::new(),
            serial_group: Some(new_serial_group()),
        }
    }

    /// Creates an entity without methods. The names of its tools will start with the type name in lower case, without path and
    /// type parameters.
    #[must_use]
    pub fn of(object: Arc<T>) -> Self {
        let path = std::any::type_name::<T>();
        let path_without_parameters = path.split('<').next().unwrap_or(path);
        let name = path_without_parameters.rsplit("::").next().unwrap_or("tool");
        Self::new(snake_case(name), object)
    }

    /// Sets the id. Call this before [`method`](Self::method), because tool names contain the id.
    #[must_use]
    pub fn with_id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Makes the tools use the newest object when a call returns another object with this id.
    #[must_use]
    pub fn latest_wins(mut self) -> Self {
        self.rebinding = Rebinding::Latest;
        self
    }

    /// Lets the calls of the tools run concurrently, also several calls in one response of the model. Call this before
    /// [`method`](Self::method).
    #[must_use]
    pub fn concurrent(mut self) -> Self {
        self.serial_group = None;
        self
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
        let object = self.object.clone();
        let tool = NativeTool::typed_as(
            self.tool_id(name),
            self.tool_names(name),
            description,
            move |input, context| function(object.clone(), input, context),
        )?;
        self.push(tool);
        Ok(self)
    }

    /// Creates an entity from an object whose type has an `impl` with the attribute `#[tool]`. The attribute and its
    /// options define the prefix, the id, the methods, the rebinding and the concurrency of the entity.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`](crate::ErrorKind::Configuration) if the schema of a parameter is invalid.
    pub fn from_methods(object: Arc<T>) -> Result<Self, Error>
    where
        T: ToolMethods,
    {
        let id = object.instance_id();
        Self::from_methods_with_id(object, id)
    }

    /// Creates an entity as [`from_methods`](Self::from_methods) does, but with this id.
    pub(super) fn from_methods_with_id(object: Arc<T>, id: Option<String>) -> Result<Self, Error>
    where
        T: ToolMethods,
    {
        let mut entity = Self::new(T::prefix(), object.clone());
        entity.id = id;
        entity.rebinding = T::rebinding();
        if T::is_concurrent() {
            entity = entity.concurrent();
        }
        for method in T::tool_methods() {
            let (id, names) = (entity.tool_id(method.name()), entity.tool_names(method.name()));
            entity.push(method.bound_to(object.clone(), id, names)?);
        }
        Ok(entity)
    }

    /// Returns the id of a method's tool.
    pub(super) fn tool_id(&self, method: &str) -> ToolId {
        let unbound_id = ToolId::native(&format!("{}.{method}", self.prefix));
        match &self.id {
            Some(id) => unbound_id.bound_to(id),
            None => unbound_id.bound_to(&format!("#{}", self.number)),
        }
    }

    /// Adds the tool of a method, in the serial group of the entity.
    pub(super) fn push(&mut self, tool: NativeTool) {
        self.tools.push(Arc::new(tool.with_serial_group(self.serial_group)));
    }

    /// Returns the candidate names of a method's tool. If the entity has no id, the names contain a number from 1 to
    /// [`NUMBERED_NAME_COUNT`]. They do not contain the number of the entity, which differs when another process resumes the
    /// conversation.
    pub(super) fn tool_names(&self, method: &str) -> Vec<String> {
        match &self.id {
            Some(id) => entity_tool_names(&self.prefix, id, method),
            None => (1..=NUMBERED_NAME_COUNT)
                .map(|number| format!("{}_{number}_{method}", self.prefix))
                .collect(),
        }
    }
}

impl<T: Send + Sync + 'static> ToolProvider for NativeEntity<T> {
    fn prefix(&self) -> &str {
        &self.prefix
    }

    fn instance_id(&self) -> Option<String> {
        self.id.clone()
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.tools.clone()
    }

    fn rebinding(&self) -> Rebinding {
        self.rebinding
    }

    fn object(&self) -> Option<&(dyn Any + Send + Sync)> {
        Some(&*self.object)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::{NoArguments, ToolSet};

    struct ShoppingCart;

    fn with_count_method(entity: NativeEntity<ShoppingCart>) -> NativeEntity<ShoppingCart> {
        entity
            .method("count", "Counts.", |_, _: NoArguments, _| async { Ok::<_, String>(0) })
            .unwrap()
    }

    /// Returns the names that a tool set assigns to the tools of the entities.
    fn assigned_names(entities: &[NativeEntity<ShoppingCart>]) -> Vec<String> {
        let mut set = ToolSet::new();
        entities
            .iter()
            .flat_map(ToolProvider::tools)
            .map(|tool| set.add(tool).name().to_string())
            .collect()
    }

    // accept: 28
    #[test]
    fn prefix_is_the_type_name_by_default() {
        assert_eq!(NativeEntity::of(Arc::new(ShoppingCart)).prefix(), "shoppingcart");
        assert_eq!(
            NativeEntity::of(Arc::new(std::sync::Mutex::new(Some(1)))).prefix(),
            "mutex"
        );
    }

    #[test]
    fn tool_names_of_objects_without_an_id_are_numbered() {
        let entities: Vec<_> = (0..3)
            .map(|_| with_count_method(NativeEntity::new("cart", Arc::new(ShoppingCart))))
            .collect();
        assert_eq!(
            assigned_names(&entities),
            ["cart_1_count", "cart_2_count", "cart_3_count"]
        );
    }

    // accept: 30
    #[test]
    fn tools_of_entities_with_similar_ids_have_different_names() {
        let entities = ["c-1", "c1", "c.1", "c-1"]
            .map(|id| with_count_method(NativeEntity::new("cart", Arc::new(ShoppingCart)).with_id(id)));
        let names = assigned_names(&entities);
        assert_eq!(names[0], "cart_c1_count");
        assert_eq!(names[3], names[0], "the same id is the same entity");
        assert!(names[1] != names[0] && names[2] != names[1], "{names:?}");
    }
}
