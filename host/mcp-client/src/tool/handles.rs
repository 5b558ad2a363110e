//! Entities from handles: ids that one tool of a server returns, and that its other tools take as an argument.

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

/// The tools of a server that one caller can currently use. The tools that take a handle become methods of entities.
///
/// The references to the tools are weak, because each tool has a reference to this value.
#[derive(Default)]
pub(crate) struct UsableTools(Mutex<Vec<Weak<dyn Tool>>>);

impl UsableTools {
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

/// A configured handle property that a tool returns, and its positions in the result.
pub(super) struct ReturnedHandle {
    /// The name of the property, such as `order_id`.
    property: String,
    /// Whether the result itself is an object with the property.
    is_at_root: bool,
    /// The names of the lists in the result whose items are objects with the property.
    lists: Vec<String>,
}

impl ReturnedHandle {
    /// Returns the configured handle properties that a tool returns, by its output schema.
    pub(super) fn all_of(definition: &ToolDefinition, configured: &[String]) -> Vec<Self> {
        let candidates = configured.iter().map(|property| Self {
            property: property.clone(),
            is_at_root: has_root_handle(definition, property),
            lists: handle_lists(definition, property),
        });
        candidates
            .filter(|candidate| candidate.is_at_root || !candidate.lists.is_empty())
            .collect()
    }

    /// Adds an entity to a result for each handle in its value, at most [`ENTITIES_WITH_OWN_TOOLS_MAX`]. The model can
    /// pass the other handles as arguments to the tools that take them.
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

    /// Returns the distinct valid handles in the value of a result, at most [`ENTITIES_WITH_OWN_TOOLS_MAX`].
    fn handles_in(&self, value: Option<&Value>) -> Vec<String> {
        let Some(value) = value else { return Vec::new() };
        let root = self.is_at_root.then_some(value).into_iter();
        let lists = self.lists.iter().filter_map(|list| value.get(list)?.as_array());
        let mut handles: Vec<String> = Vec::new();
        for object in root.chain(lists.flatten()) {
            let handle = object.get(&self.property).and_then(Value::as_str);
            let Some(handle) = handle.filter(|handle| is_valid_entity_id(handle)) else {
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

/// Returns whether a handle is valid as the id of an entity. The id becomes a part of the ids of the entity's tools.
fn is_valid_entity_id(handle: &str) -> bool {
    !handle.trim().is_empty()
        && handle.len() <= ENTITY_ID_BYTES_MAX
        && printable(handle) == handle
        && !handle.contains(char::is_control)
}

/// Returns the prefix of the tool names of an entity: `order` for the property `order_id`.
fn entity_prefix(property: &str) -> String {
    let suffixes = ["_id", "_handle", "Id", "Handle"].iter();
    let stem = suffixes
        .filter_map(|suffix| property.strip_suffix(suffix))
        .find(|stem| !stem.is_empty());
    tool_name_part(stem.unwrap_or(property))
}

/// Converts a text to snake case, with only characters that the name of a tool may have.
fn tool_name_part(text: &str) -> String {
    let to_name_char = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    snake_case(&text.chars().map(to_name_char).collect::<String>())
}

/// An object of a server, with its handle as its id.
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

    /// Uses the newest entity. After a change of a tool's definition was accepted, the methods of earlier entities still
    /// have the earlier [`Tool`], which [`UsableTools`] no longer contains.
    fn rebinding(&self) -> Rebinding {
        Rebinding::Latest
    }

    fn namespace(&self) -> &str {
        &self.namespace
    }
}

/// A method of an entity: a tool of the server that accepts only the handle of this entity.
///
/// The handle stays an argument. So guards and approval rules see the same arguments for the method as for the tool.
struct HandleMethod {
    definition: ToolDefinition,
    /// The tool of the server.
    tool: Arc<dyn Tool>,
    usable_tools: Arc<UsableTools>,
    /// The name of the argument that takes the handle.
    property: String,
    handle: String,
}

impl HandleMethod {
    fn new(tool: Arc<dyn Tool>, usable_tools: Arc<UsableTools>, property: &str, handle: &str) -> Self {
        let mut definition = tool.definition().clone();
        let method_name = tool_name_part(definition.name());
        definition.names = entity_tool_names(&entity_prefix(property), handle, &method_name);
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

    fn inner_tool(&self) -> Option<&Arc<dyn Tool>> {
        Some(&self.tool)
    }

    async fn call(&self, arguments: Arguments, context: &ToolContext) -> Result<ToolResult, ToolError> {
        if arguments.get(&self.property).and_then(Value::as_str) != Some(&self.handle) {
            let message = format!("/{}: must be `{}`", self.property, self.handle);
            return Err(ToolError::invalid_arguments(message));
        }
        if !self.usable_tools.contains(&self.tool) {
            let message = "the server no longer lists this tool, or its definition has changed";
            let error = Error::new(ErrorKind::ToolUnavailable, Phase::Execute, message);
            return Err(ToolError::Model(error.with_tool(self.definition.name())));
        }
        self.tool.call(arguments, context).await
    }
}
