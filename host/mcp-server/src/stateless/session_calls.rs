//! Handles and `call_tool` for clients with sessions.
//!
//! Some clients begin a session for each call, so the methods of an entity are in the list of a session that has ended. The
//! results of sessions therefore also have handles, and `call_tool` calls a method of an entity of any earlier session.

use std::sync::Arc;

use rmcp::model::{CallToolResult, Tool};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::Value;

use super::handle_table::{Entity, HANDLE_RANDOM_CHARS};
use super::handles_in_json::{ListedTools, entities_in, write_handles};
use super::live_session::LiveSession;
use super::meta_tools::{CALL_TOOL, call_tool_in_session, parse_call_arguments};
use super::stateless_requests::{CallScope, StatelessRequests, refused, required_tool};
use crate::principal::Principal;
use crate::wire::{self, ResultShape, Revision};
use toolwit::tool::LogLevel;
use toolwit::{Arguments, Error, ToolDefinition, ToolResult};

/// A call of `call_tool` in a session.
pub(crate) enum SessionCall {
    /// The client calls this tool of its session.
    Own(String, Arguments),
    /// The call is answered.
    Answered(Box<Result<CallToolResult, ErrorData>>),
}

impl StatelessRequests {
    /// Begins the session of a client, which counts towards the limits of live sessions once it has handles.
    ///
    /// # Errors
    /// If the session cannot be built.
    pub(crate) async fn begin_session(&self, principal: &Principal) -> Result<Arc<LiveSession>, Error> {
        LiveSession::begin(principal, None).await.map(Arc::new)
    }

    /// Adds `call_tool` to the tools of a session, if the principal may use methods of entities.
    pub(crate) fn add_call_tool(&self, principal: &Principal, tools: &mut Vec<Tool>) {
        if self.has_entities(principal) && tools.iter().all(|tool| tool.name != CALL_TOOL) {
            tools.push(wire::tool(CALL_TOOL, &call_tool_in_session(), Revision::Session));
        }
    }

    fn has_entities(&self, principal: &Principal) -> bool {
        self.catalogs.of(principal).kinds().next().is_some()
    }

    /// Writes handles into the entities in a result of a session. The names of their tools stay those of the session.
    pub(crate) fn add_handles(&self, session: &Arc<LiveSession>, principal: &Principal, result: &mut ToolResult) {
        let catalog = self.catalogs.of(principal);
        let entities = entities_in(result, &catalog);
        if entities.is_empty() || !self.sessions.count(session) {
            return;
        }
        let handles = self.sessions.handles.issue(session, principal.name(), entities);
        write_handles(result, handles, &catalog, ListedTools::OfSession);
    }

    /// Answers a call of a tool that a session does not have: a call of `call_tool`, or of a method with a handle, which runs in
    /// the session of the handle.
    pub(crate) async fn call_beyond_session(
        &self,
        session: &Arc<LiveSession>,
        principal: &Principal,
        (name, arguments): (&str, Arguments),
        log_min: LogLevel,
        request: &RequestContext<RoleServer>,
    ) -> SessionCall {
        let answered = |answer| SessionCall::Answered(Box::new(answer));
        let is_call_tool = name == CALL_TOOL && self.has_entities(principal);
        let (name, mut arguments) = if is_call_tool {
            match parse_call_arguments(arguments) {
                Ok(name_and_arguments) => name_and_arguments,
                Err(message) => return answered(Ok(refused(message))),
            }
        } else {
            (name.to_owned(), arguments)
        };
        let entity = self.first_entity(principal, &arguments);
        let is_own = entity
            .as_ref()
            .is_none_or(|(_, entity)| Arc::ptr_eq(&entity.session, session));
        let own_tool = session.tools.tool(&name).await.filter(|_| is_own);
        if let Some(tool) = own_tool {
            self.replace_own_handles(session, principal, &tool.definition, &mut arguments);
            return SessionCall::Own(name, arguments);
        }
        if !is_call_tool && entity.is_none() {
            return SessionCall::Own(name, arguments);
        }
        let catalog = self.catalogs.of(principal);
        let scope = CallScope {
            catalog: &catalog,
            principal,
            request,
            round: None,
            log_min: Some(log_min),
        };
        let tool = match (required_tool(&catalog, &name), entity) {
            (Ok(tool), _) => tool,
            (Err(error), Some((parameter, entity))) => {
                // The name can be that of a method that is bound to the entity.
                let Some(tool) = entity.session.tools.tool(&name).await else {
                    return answered(Ok(refused(error.message.into_owned())));
                };
                arguments.shift_remove(&parameter);
                set_id(&tool.definition, &entity, &mut arguments);
                return answered(self.call_of_entity(&scope, &entity, &name, arguments).await);
            }
            (Err(error), None) => return answered(Ok(refused(error.message.into_owned()))),
        };
        // The client knows the schema of a tool that it called by its own name.
        let shape = if is_call_tool {
            ResultShape::Untyped
        } else {
            wire::result_shape(&tool.definition, Revision::Session)
        };
        answered(self.run(&scope, tool, arguments, shape).await)
    }

    /// Replaces the handles of a session's own entities in arguments by the ids that its tools take. A method needs no handle if it
    /// is bound to the entity. Other methods take the id under a name of their own.
    pub(crate) fn replace_own_handles(
        &self,
        session: &Arc<LiveSession>,
        principal: &Principal,
        tool: &ToolDefinition,
        arguments: &mut Arguments,
    ) {
        let own_entity = |text: &str| {
            let entity = self.sessions.handles.entity(text, principal.name());
            entity.filter(|entity| Arc::ptr_eq(&entity.session, session))
        };
        let superfluous = arguments.iter().find_map(|(name, value)| {
            let is_known = tool.input_schema["properties"].get(name.as_str()).is_some();
            let text = value.as_str().filter(|text| !is_known && may_be_handle(text))?;
            Some((name.clone(), own_entity(text)?))
        });
        if let Some((name, entity)) = superfluous {
            arguments.shift_remove(&name);
            set_id(tool, &entity, arguments);
        }
        for value in arguments.values_mut() {
            replace_texts(value, &|text| Some(own_entity(text)?.id));
        }
    }

    /// Returns whether the first handle in the arguments is that of an entity in another session.
    pub(crate) fn has_foreign_handle(
        &self,
        session: &Arc<LiveSession>,
        principal: &Principal,
        arguments: &Arguments,
    ) -> bool {
        let entity = self.first_entity(principal, arguments);
        entity.is_some_and(|(_, entity)| !Arc::ptr_eq(&entity.session, session))
    }

    /// Returns the first argument that is a handle, with its entity.
    fn first_entity(&self, principal: &Principal, arguments: &Arguments) -> Option<(String, Entity)> {
        arguments.iter().find_map(|(parameter, value)| {
            let entity = self.sessions.handles.entity(value.as_str()?, principal.name())?;
            Some((parameter.clone(), entity))
        })
    }

    async fn call_of_entity(
        &self,
        scope: &CallScope<'_>,
        entity: &Entity,
        name: &str,
        mut arguments: Arguments,
    ) -> Result<CallToolResult, ErrorData> {
        if let Err(message) = self.replace_handles(scope, &mut arguments, Some(entity)) {
            return Ok(refused(message));
        }
        self.call_in_session(scope, &entity.session, name, arguments, ResultShape::Untyped)
            .await
    }
}

/// Sets the id of an entity for a method that all entities of a type share. Does nothing for a tool that is bound to its entity.
fn set_id(tool: &ToolDefinition, entity: &Entity, arguments: &mut Arguments) {
    let unbound = tool.id.unbound();
    let is_shared = tool.id == unbound || tool.id == unbound.bound_by("any");
    let properties = tool.input_schema["properties"].as_object();
    if let Some(parameter) = properties.and_then(|properties| properties.keys().next())
        && is_shared
        && !arguments.contains_key(parameter)
    {
        arguments.insert(parameter.clone(), Value::String(entity.id.clone()));
    }
}

/// Returns whether a text has the length and the separator of a handle. Most texts do not, and need no search.
fn may_be_handle(text: &str) -> bool {
    let separator = text.len().checked_sub(HANDLE_RANDOM_CHARS + 1);
    separator.is_some_and(|position| text.as_bytes()[position] == b'_')
}

/// Replaces the texts in a value that may be handles.
fn replace_texts(value: &mut Value, replacement: &impl Fn(&str) -> Option<String>) {
    match value {
        Value::String(text) if may_be_handle(text) => {
            if let Some(new_text) = replacement(text) {
                *text = new_text;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| replace_texts(item, replacement)),
        Value::Object(fields) => fields.values_mut().for_each(|field| replace_texts(field, replacement)),
        _ => {}
    }
}
