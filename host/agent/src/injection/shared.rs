//! One set of tools for many entities of a type.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;
use serde_json::{Map, Value, json};

use super::current::current_name;
use toolwit_core::{Arguments, Tool, ToolContext, ToolDefinition, ToolError, ToolId, ToolProvider, ToolResult};

/// How many entities of a type one result may hold that get tools of their own; more of them share one set.
pub const ENTITIES_PER_RESULT_MAX: usize = 16;

/// The entities of one type that share their tools, by id.
#[derive(Clone, Default)]
pub struct SharedEntities {
    by_id: Arc<RwLock<HashMap<String, Arc<dyn ToolProvider>>>>,
}

impl SharedEntities {
    pub(super) fn extend(&self, entities: &[Arc<dyn ToolProvider>]) {
        let mut by_id = self.by_id.write().unwrap_or_else(PoisonError::into_inner);
        for entity in entities {
            if let Some(id) = entity.instance_id() {
                match entity.rebinding() {
                    toolwit_core::Rebinding::Keep => drop(by_id.entry(id).or_insert_with(|| entity.clone())),
                    toolwit_core::Rebinding::Latest => drop(by_id.insert(id, entity.clone())),
                }
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        self.by_id.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    fn get(&self, id: &str) -> Option<Arc<dyn ToolProvider>> {
        self.by_id
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(id)
            .cloned()
    }

    /// Makes the tools that take the entity's id, of the methods of one of them.
    pub(super) fn tools(&self, of: &dyn ToolProvider) -> Vec<Arc<dyn Tool>> {
        let method = |tool: Arc<dyn Tool>| {
            let shared = SharedMethod::new(self.clone(), of.prefix(), tool.definition());
            Arc::new(shared) as Arc<dyn Tool>
        };
        of.tools().into_iter().map(method).collect()
    }
}

impl fmt::Debug for SharedEntities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} entities", self.len())
    }
}

impl PartialEq for SharedEntities {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.by_id, &other.by_id)
    }
}

impl Eq for SharedEntities {}

/// A method that takes the id of the entity to act on.
struct SharedMethod {
    definition: ToolDefinition,
    entities: SharedEntities,
    prefix: String,
    parameter: String,
    /// The method, bound to no entity.
    method: ToolId,
}

impl SharedMethod {
    fn new(entities: SharedEntities, prefix: &str, bound: &ToolDefinition) -> Self {
        let method = bound.id.unbound();
        let mut parameter = format!("{prefix}_id");
        let mut schema = Value::clone(&bound.input_schema);
        if let Some(fields) = schema.as_object_mut() {
            let mut own = match fields.remove("properties") {
                Some(Value::Object(own)) => own,
                _ => Map::new(),
            };
            while own.contains_key(&parameter) {
                parameter.insert_str(0, "the_");
            }
            let told = json!({"type": "string", "description": format!("The id of the `{prefix}`.")});
            own.shift_insert(0, parameter.clone(), told);
            let mut required = vec![json!(parameter)];
            if let Some(Value::Array(before)) = fields.remove("required") {
                required.extend(before);
            }
            fields.insert("properties".to_owned(), own.into());
            fields.insert("required".to_owned(), required.into());
        }
        let mut definition = bound.clone();
        definition.id = method.bound_to("any");
        definition.names = vec![current_name(prefix, &method)];
        definition.input_schema = Arc::new(schema);
        Self {
            definition,
            entities,
            prefix: prefix.to_owned(),
            parameter,
            method,
        }
    }
}

#[async_trait]
impl Tool for SharedMethod {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    async fn call(&self, mut arguments: Arguments, context: &ToolContext) -> Result<ToolResult, ToolError> {
        let Some(Value::String(id)) = arguments.remove(&self.parameter) else {
            let message = format!("/{}: it must be the id of a `{}`", self.parameter, self.prefix);
            return Err(ToolError::invalid_arguments(message));
        };
        let entity = self.entities.get(&id);
        let tools = entity.map(|entity| entity.tools()).unwrap_or_default();
        let bound = tools
            .into_iter()
            .find(|tool| tool.definition().id.unbound() == self.method);
        match bound {
            Some(tool) => tool.call(arguments, context).await,
            None => {
                let shown: String = id.chars().take(80).collect();
                let message = format!(
                    "/{}: there is no `{}` with the id `{shown}`",
                    self.parameter, self.prefix
                );
                Err(ToolError::invalid_arguments(message))
            }
        }
    }
}
