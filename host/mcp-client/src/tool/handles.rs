//! Handles that one tool of a server returns and others take, as entities.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use async_trait::async_trait;
use serde_json::{Value, json};

use crate::session::{handle_lists, has_root_handle, takes_handle};
use toolwit_core::limits::{ENTITIES_WITH_OWN_TOOLS_MAX, ENTITY_ID_BYTES_MAX};
use toolwit_core::text::{printable, snake_case};
use toolwit_core::{
    Arguments, Error, ErrorKind, Phase, Rebinding, Tool, ToolContext, ToolDefinition, ToolError, ToolProvider,
    ToolResult, entity_tool_names,
};

/// The tools of a server that one caller can currently use. Those that take a handle become methods of entities.
#[derive(Default)]
pub(crate) struct UsableTools(Mutex<Vec<Weak<dyn Tool>>>);

impl UsableTools {
    /// Replaces the tools.
    pub(crate) fn set(&self, tools: &[Arc<dyn Tool>]) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = tools.iter().map(Arc::downgrade).collect();
    }

    fn live_tools(&self) -> Vec<Arc<dyn Tool>> {
        let tools = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tools.iter().filter_map(Weak::upgrade).collect()
    }

    fn contains(&self, tool: &Arc<dyn Tool>) -> bool {
        self.live_tools().iter().any(|live| Arc::ptr_eq(live, tool))
    }
}

/// A configured handle that a tool returns, and its positions in the result.
pub(super) struct ReturnedHandle {
    property: String,
    /// Whether the result itself is an object with the handle.
    is_at_root: bool,
    /// The properties of the result that are lists of objects with the handle.
    lists: Vec<String>,
}

impl ReturnedHandle {
    /// Returns the configured handles that a tool returns.
    pub(super) fn all_of(definition: &ToolDefinition, configured: &[String]) -> Vec<Self> {
        let handles = configured.iter().map(|property| Self {
            property: property.clone(),
            is_at_root: has_root_handle(definition, property),
            lists: handle_lists(definition, property),
        });
        handles
            .filter(|handle| handle.is_at_root || !handle.lists.is_empty())
            .collect()
    }

    /// Adds the entities of this handle to a result, at most [`ENTITIES_WITH_OWN_TOOLS_MAX`]. The model can pass
    /// further handles to the tools that take them.
    pub(super) fn add_entities(&self, result: &mut ToolResult, server: &str, usable_tools: &Arc<UsableTools>) {
        let handles = self.handles_in(result.value.as_ref());
        if handles.is_empty() {
            return;
        }
        let mut method_tools = usable_tools.live_tools();
        method_tools.retain(|tool| takes_handle(tool.definition(), &self.property));
        for handle in handles {
            let bind = |tool: &Arc<dyn Tool>| {
                let method = HandleMethod::new(tool.clone(), usable_tools.clone(), &self.property, &handle);
                Arc::new(method) as Arc<dyn Tool>
            };
            let entity = HandleEntity {
                namespace: format!("mcp:{server}"),
                prefix: entity_prefix(&self.property),
                tools: method_tools.iter().map(bind).collect(),
                handle,
            };
            result.providers.push(Arc::new(entity));
        }
    }

    /// Returns the distinct handles in the value of a result, at most [`ENTITIES_WITH_OWN_TOOLS_MAX`].
    fn handles_in(&self, value: Option<&Value>) -> Vec<String> {
        let Some(value) = value else { return Vec::new() };
        let root = self.is_at_root.then_some(value).into_iter();
        let lists = self.lists.iter().filter_map(|list| value.get(list)?.as_array());
        let mut handles: Vec<String> = Vec::new();
        for object in root.chain(lists.flatten()) {
            let handle = object.get(&self.property).and_then(Value::as_str);
            let Some(handle) = handle.filter(|handle| is_entity_id(handle)) else {
                continue;
            };
            if !handles.iter().any(|earlier| earlier == handle) {
                handles.push(handle.to_owned());
            }
            if handles.len() == ENTITIES_WITH_OWN_TOOLS_MAX {
                break;
            }
        }
        handles
    }
}

/// Returns whether a handle can be the id of an entity, which becomes a part of the ids of its tools.
fn is_entity_id(handle: &str) -> bool {
    !handle.trim().is_empty()
        && handle.len() <= ENTITY_ID_BYTES_MAX
        && printable(handle) == handle
        && !handle.contains(char::is_control)
}

/// Returns the prefix of the tool names of a handle's entities: `order` for `order_id`.
fn entity_prefix(property: &str) -> String {
    let suffixes = ["_id", "_handle", "Id", "Handle"].iter();
    let stem = suffixes
        .filter_map(|suffix| property.strip_suffix(suffix))
        .find(|stem| !stem.is_empty());
    name_part(stem.unwrap_or(property))
}

/// Converts a text to the characters that the name of a tool may have.
fn name_part(text: &str) -> String {
    let to_name_char = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    snake_case(&text.chars().map(to_name_char).collect::<String>())
}

/// An object of a server, identified by its handle.
struct HandleEntity {
    namespace: String,
    prefix: String,
    handle: String,
    tools: Vec<Arc<dyn Tool>>,
}

impl ToolProvider for HandleEntity {
    fn prefix(&self) -> &str {
        &self.prefix
    }

    fn instance_id(&self) -> Option<String> {
        Some(self.handle.clone())
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.tools.clone()
    }

    /// Uses the newest entity, because a tool becomes another object when a change of its definition is accepted.
    fn rebinding(&self) -> Rebinding {
        Rebinding::Latest
    }

    fn namespace(&self) -> &str {
        &self.namespace
    }
}

/// A method of an entity: a tool of the server that accepts only the handle of this entity.
///
/// The handle stays an argument, so that guards and approval rules of the tool see the same arguments as without the
/// entity.
struct HandleMethod {
    definition: ToolDefinition,
    tool: Arc<dyn Tool>,
    usable_tools: Arc<UsableTools>,
    property: String,
    handle: String,
}

impl HandleMethod {
    fn new(tool: Arc<dyn Tool>, usable_tools: Arc<UsableTools>, property: &str, handle: &str) -> Self {
        let mut definition = tool.definition().clone();
        let method = name_part(definition.name());
        definition.names = entity_tool_names(&entity_prefix(property), handle, &method);
        definition.id = definition.id.bound_to(handle);
        let mut schema = Value::clone(&definition.input_schema);
        if let Some(parameter) = schema
            .get_mut("properties")
            .and_then(|properties| properties.get_mut(property))
        {
            *parameter = json!({"type": "string", "enum": [handle]});
        }
        definition.input_schema = Arc::new(schema);
        Self {
            definition,
            tool,
            usable_tools,
            property: property.to_owned(),
            handle: handle.to_owned(),
        }
    }
}

#[async_trait]
impl Tool for HandleMethod {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    fn decorated_tool(&self) -> Option<&Arc<dyn Tool>> {
        Some(&self.tool)
    }

    async fn call(&self, arguments: Arguments, context: &ToolContext) -> Result<ToolResult, ToolError> {
        if arguments.get(&self.property).and_then(Value::as_str) != Some(&self.handle) {
            let message = format!("/{}: must be `{}`", self.property, self.handle);
            return Err(ToolError::invalid_arguments(message));
        }
        if !self.usable_tools.contains(&self.tool) {
            let message = "the server does not offer this tool anymore, or its definition has changed";
            let error = Error::new(ErrorKind::ToolUnavailable, Phase::Execute, message);
            return Err(ToolError::Model(error.with_tool(self.definition.name())));
        }
        self.tool.call(arguments, context).await
    }
}
