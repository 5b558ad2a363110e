//! Entities in the JSON results of tools of plugins and servers.

use std::any::Any;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use async_trait::async_trait;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::decorator::Decorator;
use crate::entity::serialize_output;
use crate::{Arguments, Tool, ToolContext, ToolError, ToolMethods, ToolProvider, ToolResult};

/// A decorator that deserialises the JSON result of a tool as a type that derives `Entity`, so that the methods of this type
/// become tools.
///
/// [`ToolExt::returns`](crate::ToolExt::returns) applies the decorator, and describes which results become entities.
pub struct EntityResults<T>(PhantomData<fn() -> T>);

impl<T> EntityResults<T> {
    /// Creates the decorator.
    #[must_use]
    pub fn new() -> Self {
        Self(PhantomData)
    }
}

impl<T> Default for EntityResults<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for EntityResults<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EntityResults<{}>", std::any::type_name::<T>())
    }
}

#[async_trait]
impl<T: ToolMethods + Serialize + DeserializeOwned> Decorator for EntityResults<T> {
    async fn call(
        &self,
        tool: &dyn Tool,
        arguments: Arguments,
        context: &ToolContext,
    ) -> Result<ToolResult, ToolError> {
        let mut result = tool.call(arguments, context).await?;
        if !result.is_error() && !result.is_pending() && result.providers.is_empty() {
            read_entities::<T>(&mut result);
        }
        Ok(result)
    }
}

/// Replaces JSON objects that deserialise as `T` by the JSON of their entities, and adds the entities to the result. The object
/// is the value of the result itself. If the value is a list, the objects are the items of the list. Objects at deeper levels
/// stay unchanged.
fn read_entities<T: ToolMethods + Serialize + DeserializeOwned>(result: &mut ToolResult) {
    let mut entities = FoundEntities::default();
    result.rewrite_value(|value| {
        entities = match value {
            Value::Array(items) => read_list::<T>(items),
            value => read_single_value::<T>(value),
        };
        !entities.providers.is_empty()
    });
    result.providers = entities.providers;
    if entities.output.is_some() {
        result.output = entities.output;
    }
}

/// The entities of a result.
#[derive(Default)]
struct FoundEntities {
    providers: Vec<Arc<dyn ToolProvider>>,
    /// The Rust value of the result: a `T`, or a `Vec<T>` if every item of the list is a `T`.
    output: Option<Arc<dyn Any + Send + Sync>>,
}

fn read_single_value<T: ToolMethods + Serialize + DeserializeOwned>(value: &mut Value) -> FoundEntities {
    match read_object::<T>(value) {
        Some((object, providers)) => FoundEntities {
            providers,
            output: Some(Arc::new(object)),
        },
        None => FoundEntities::default(),
    }
}

fn read_list<T: ToolMethods + Serialize + DeserializeOwned>(items: &mut [Value]) -> FoundEntities {
    let mut providers = Vec::new();
    let mut objects = Vec::new();
    for item in items.iter_mut() {
        if let Some((object, item_providers)) = read_object::<T>(item) {
            objects.push(object);
            providers.extend(item_providers);
        }
    }
    let is_complete = !objects.is_empty() && objects.len() == items.len();
    FoundEntities {
        providers,
        output: is_complete.then(|| Arc::new(objects) as _),
    }
}

/// Replaces a JSON object that deserialises as `T` by the JSON of its entity. Returns the object, and the entities in its JSON:
/// the entity of the object and those in its fields. For other JSON, changes nothing and returns `None`.
fn read_object<T: ToolMethods + Serialize + DeserializeOwned>(
    value: &mut Value,
) -> Option<(T, Vec<Arc<dyn ToolProvider>>)> {
    if !value.is_object() {
        return None;
    }
    let object = T::deserialize(&*value).ok();
    let Some((object, (json, providers))) = object.and_then(|object| {
        let json_and_providers = serialize_output(&object).ok()?;
        Some((object, json_and_providers))
    }) else {
        // The log omits the error of the deserialiser, because the error quotes the value.
        tracing::debug!(entity = T::prefix(), "an object in a result is not the expected entity");
        return None;
    };
    *value = json;
    Some((object, providers))
}

#[cfg(test)]
mod tests;
