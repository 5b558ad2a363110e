//! Requests without a session.

use std::sync::Arc;

use rmcp::model::{CacheScope, CallToolRequestParams, CallToolResponse, CallToolResult, ListToolsResult, Tool};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::Value;

use super::annotations::annotated_tools;
use super::catalog::{Catalog, CatalogTool, Target};
use super::catalogs::Catalogs;
use super::handle_method::{EntityKind, HandleMethod, quoted};
use super::handle_table::{Entity, looks_like_handle};
use super::handles_in_json::{ListedTools, entities_in, write_handles};
use super::live_session::{EntityMethod, LiveSession};
use super::live_sessions::LiveSessions;
use super::meta_tools;
use crate::call::{CallOutcome, CallRequest, call};
use crate::client::{InputRound, QuestionBinding, QuestionSealer, level_of_wire};
use crate::principal::Principal;
use crate::tasks::TaskSupport;
use crate::wire::{self, Repetition, ResultShape, Revision};
use toolwit::tool::{LogLevel, ToolId};
use toolwit::{Arguments, ErrorKind, ToolResult};

/// How long a client may cache a list of tools, in milliseconds. If the list changes earlier, a subscription reports the
/// change.
const LIST_TTL_MS: u64 = 60_000;

/// Answers requests without a session.
#[derive(Default)]
pub(crate) struct StatelessRequests {
    pub(super) catalogs: Catalogs,
    pub(super) sessions: LiveSessions,
    questions: QuestionSealer,
}

/// The values that all steps of one call share.
pub(super) struct CallScope<'c> {
    pub(super) catalog: &'c Catalog,
    pub(super) principal: &'c Principal,
    pub(super) request: &'c RequestContext<RoleServer>,
    /// The round of a request without a session.
    pub(super) round: Option<Arc<InputRound>>,
    /// The lowest severity of the messages for the client's log; `None` for no messages.
    pub(super) log_min: Option<LogLevel>,
}

impl StatelessRequests {
    /// Returns a page of the tools of a principal.
    ///
    /// # Errors
    /// If the cursor is invalid.
    pub(crate) async fn list(&self, principal: &Principal, cursor: Option<&str>) -> Result<ListToolsResult, ErrorData> {
        let catalog = self.catalogs.of(principal);
        let page = wire::tool_page(annotated_tools(&catalog, principal).await, cursor)?;
        Ok(page.with_ttl_ms(LIST_TTL_MS).with_cache_scope(CacheScope::Private))
    }

    /// Returns the definition of a tool, listed or not.
    pub(crate) fn tool(&self, principal: &Principal, name: &str) -> Option<Tool> {
        let catalog = self.catalogs.of(principal);
        let tool = catalog.tool(name)?;
        Some(wire::tool(name, &tool.definition, Revision::Stateless))
    }

    /// Returns which calls of a tool become tasks. For an unknown name, no call does.
    pub(crate) fn task_support(&self, principal: &Principal, name: &str) -> TaskSupport {
        let catalog = self.catalogs.of(principal);
        let tool = catalog.tool(name);
        tool.map_or(TaskSupport::Never, |tool| {
            principal.task_support(tool.definition.id.as_str())
        })
    }

    /// Calls a tool. If the user must answer a question first, such as a question for an approval, the result is this
    /// question.
    ///
    /// # Errors
    /// If no tool has the name, the state of a question is invalid, the client lacks a capability, or the server fails.
    pub(crate) async fn call(
        &self,
        principal: &Principal,
        params: CallToolRequestParams,
        request: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = params.arguments.unwrap_or_default();
        let binding = QuestionBinding {
            principal: principal.name(),
            group: principal.group(),
            tool: &params.name,
            arguments: &arguments,
        };
        let (state, responses) = (params.request_state.as_deref(), params.input_responses.as_ref());
        let round = InputRound::begin(&self.questions, &binding, state, responses).map_err(wire::invalid_params)?;
        let (catalog, round) = (self.catalogs.of(principal), Arc::new(round));
        let scope = CallScope {
            catalog: &catalog,
            principal,
            request,
            round: Some(round.clone()),
            log_min: request.meta.log_level().map(level_of_wire),
        };
        let result = self.call_named(&scope, &params.name, arguments.clone()).await?;
        let question = round.input_required_result(&self.questions, &binding)?;
        Ok(question.map_or_else(|| result.into(), CallToolResponse::from))
    }

    /// Returns the sealer of the states of questions. All requests of the server share this sealer.
    pub(crate) fn questions(&self) -> &QuestionSealer {
        &self.questions
    }

    async fn call_named(
        &self,
        scope: &CallScope<'_>,
        name: &str,
        arguments: Arguments,
    ) -> Result<CallToolResult, ErrorData> {
        let catalog = scope.catalog;
        let tool = required_tool(catalog, name)?;
        match &tool.target {
            Target::Call => {
                let (name, arguments) = match meta_tools::parse_call_arguments(arguments) {
                    Ok(name_and_arguments) => name_and_arguments,
                    Err(message) => return Ok(refused(message)),
                };
                match required_tool(catalog, &name) {
                    // The model reads results, but does not see errors of the protocol.
                    Err(error) => Ok(refused(error.message.into_owned())),
                    Ok(CatalogTool {
                        target: Target::Call, ..
                    }) => Ok(refused("/name: this tool does not call itself".to_owned())),
                    Ok(tool) => self.run(scope, tool, arguments, ResultShape::Untyped).await,
                }
            }
            _ => {
                let shape = wire::result_shape(&tool.definition, Revision::Stateless);
                self.run(scope, tool, arguments, shape).await
            }
        }
    }

    /// Sets the maximum number of live sessions, and the number of groups of principals. The groups share the live sessions
    /// and the opened states of questions equally.
    pub(crate) fn set_group_limits(&self, groups: usize, sessions_max: usize) {
        self.sessions.counter.set_limits(sessions_max, groups);
        self.questions.share_among(groups);
    }

    /// Removes expired sessions and expired states of questions.
    pub(crate) fn expire(&self) {
        self.sessions.expire();
        self.questions.expire();
    }

    pub(super) async fn run(
        &self,
        scope: &CallScope<'_>,
        tool: &CatalogTool,
        arguments: Arguments,
        shape: ResultShape,
    ) -> Result<CallToolResult, ErrorData> {
        let CallScope { catalog, principal, .. } = scope;
        let answer = |result: ToolResult| Ok(wire::call_result(&result, shape, Vec::new(), Repetition::Full));
        match &tool.target {
            Target::Search => answer(meta_tools::search(catalog, principal, &arguments)),
            Target::Facade(names) => answer(meta_tools::describe_facade_tools(catalog, names)),
            Target::Call => answer(ToolResult::error("/name: this tool does not call itself")),
            Target::Tool(id) => self.run_tool(scope, id, arguments, shape).await,
            Target::Method(method) => self.run_method(scope, tool, method, arguments, shape).await,
        }
    }

    /// Calls a tool in the session to which the handles in its arguments belong. Without handles, calls it in the current
    /// session of the principal.
    async fn run_tool(
        &self,
        scope: &CallScope<'_>,
        id: &ToolId,
        mut arguments: Arguments,
        shape: ResultShape,
    ) -> Result<CallToolResult, ErrorData> {
        let session = match self.replace_handles(scope, &mut arguments, None) {
            Ok(Some(entity)) => entity.session,
            Ok(None) => match self.sessions.current(scope.principal, &scope.catalog.packages).await {
                Ok(session) => session,
                Err(error) if error.kind == ErrorKind::Busy => return Ok(refused(error.message.clone())),
                Err(error) => return Err(wire::internal_error(&error)),
            },
            Err(message) => return Ok(refused(message)),
        };
        match session.tools.find_or_restore(id).await {
            Some(tool) => {
                self.call_in_session(scope, &session, tool.name.as_str(), arguments, shape)
                    .await
            }
            None => Ok(refused("the tool is no longer available".to_owned())),
        }
    }

    /// Calls a method of the entity of a handle.
    async fn run_method(
        &self,
        scope: &CallScope<'_>,
        tool: &CatalogTool,
        method: &HandleMethod,
        mut arguments: Arguments,
        shape: ResultShape,
    ) -> Result<CallToolResult, ErrorData> {
        let parameter = &method.parameter;
        let Some(Value::String(handle)) = arguments.remove(parameter) else {
            return Ok(refused(format!(
                "/{parameter}: it must be the handle of a `{}`",
                method.kind.name
            )));
        };
        let entity = match self.sessions.handles.entity(&handle, scope.principal.name()) {
            Some(entity) if entity.kind == method.kind => entity,
            Some(other) => {
                let message = format!("/{parameter}: it is the handle of a `{}`", other.kind.name);
                return Ok(refused(format!(
                    "{message}; the tool needs the handle of a `{}`",
                    method.kind.name
                )));
            }
            None => {
                return Ok(refused(format!(
                    "/{parameter}: {}",
                    unknown_handle_message(scope.catalog, &method.kind)
                )));
            }
        };
        if let Err(message) = self.replace_handles(scope, &mut arguments, Some(&entity)) {
            return Ok(refused(message));
        }
        match entity.session.method(method, &tool.definition, &entity.id).await {
            Some(EntityMethod { tool, id_parameter }) => {
                if let Some(parameter) = id_parameter {
                    arguments.insert(parameter, Value::String(entity.id.clone()));
                }
                self.call_in_session(scope, &entity.session, tool.name.as_str(), arguments, shape)
                    .await
            }
            None => Ok(refused(format!(
                "/{parameter}: {}",
                unknown_handle_message(scope.catalog, &method.kind)
            ))),
        }
    }

    /// Calls a tool of a session, and issues handles for the entities in its result.
    pub(super) async fn call_in_session(
        &self,
        scope: &CallScope<'_>,
        session: &Arc<LiveSession>,
        name: &str,
        arguments: Arguments,
        shape: ResultShape,
    ) -> Result<CallToolResult, ErrorData> {
        let request = CallRequest {
            principal: scope.principal,
            request: scope.request,
            round: scope.round.clone(),
            log_min: scope.log_min,
        };
        let CallOutcome { answer, notes } = call(&session.tools, name, arguments, request).await;
        let mut result = match answer {
            Ok(answer) => answer.result,
            Err(error) => return wire::call_error(&error),
        };
        let entities = entities_in(&result, scope.catalog);
        if !entities.is_empty() {
            let handles = self.sessions.handles.issue(session, scope.principal.name(), entities);
            write_handles(&mut result, handles, scope.catalog, ListedTools::OfHandle);
        }
        let repetition = Repetition::for_client(scope.request);
        Ok(wire::call_result(&result, shape, notes, repetition))
    }

    /// Replaces the handles in arguments by the ids of their entities. Returns the entity of the last handle, or
    /// `method_entity` if the arguments have no handles. All these entities belong to one session.
    ///
    /// `method_entity` is the entity whose method is called, if the call is a call of a method.
    ///
    /// # Errors
    /// A message for the model, if a handle is unknown or belongs to another session.
    pub(super) fn replace_handles(
        &self,
        scope: &CallScope<'_>,
        arguments: &mut Arguments,
        method_entity: Option<&Entity>,
    ) -> Result<Option<Entity>, String> {
        let mut last_entity = method_entity.cloned();
        for (name, value) in arguments.iter_mut() {
            self.replace_in_value(scope, value, &mut last_entity)
                .map_err(|message| format!("/{name}: {message}"))?;
        }
        Ok(last_entity)
    }

    /// Replaces the handles in a value, and sets `last_entity` to the entity of the last handle.
    fn replace_in_value(
        &self,
        scope: &CallScope<'_>,
        value: &mut Value,
        last_entity: &mut Option<Entity>,
    ) -> Result<(), String> {
        match value {
            Value::String(text) => {
                let Some(entity) = self.sessions.handles.entity(text, scope.principal.name()) else {
                    let kind = scope.catalog.kinds().find(|kind| looks_like_handle(text, &kind.name));
                    return kind.map_or(Ok(()), |kind| Err(unknown_handle_message(scope.catalog, kind)));
                };
                if last_entity
                    .as_ref()
                    .is_some_and(|last| !last.shares_session_with(&entity))
                {
                    return Err(other_session_message(scope.catalog, &entity.kind));
                }
                text.clone_from(&entity.id);
                *last_entity = Some(entity);
                Ok(())
            }
            Value::Array(items) => items
                .iter_mut()
                .try_for_each(|item| self.replace_in_value(scope, item, last_entity)),
            Value::Object(fields) => fields
                .values_mut()
                .try_for_each(|field| self.replace_in_value(scope, field, last_entity)),
            _ => Ok(()),
        }
    }
}

/// Returns the tool with a name.
///
/// # Errors
/// If no tool has this name.
pub(super) fn required_tool<'c>(catalog: &'c Catalog, name: &str) -> Result<&'c CatalogTool, ErrorData> {
    catalog.tool(name).ok_or_else(|| {
        let shown_name: String = name.chars().take(80).collect();
        let nearest = catalog.nearest(name);
        let hint = if nearest.is_empty() {
            String::new()
        } else {
            format!("; did you mean {}?", quoted(&nearest))
        };
        wire::invalid_params(format!("no tool is named `{shown_name}`{hint}"))
    })
}

/// Returns the message for a handle that is unknown or has expired.
fn unknown_handle_message(catalog: &Catalog, kind: &EntityKind) -> String {
    let message = format!("the handle of a `{}` is unknown or has expired", kind.name);
    match catalog.sources(kind) {
        [] => message,
        names => format!("{message}; get a new one with {}", quoted(names)),
    }
}

/// Returns the message for a handle whose entity belongs to another session than the entities before it in the call.
fn other_session_message(catalog: &Catalog, kind: &EntityKind) -> String {
    let message = "the handle cannot be used together with the handles before it".to_owned();
    match catalog.sources(kind) {
        [] => message,
        names => format!("{message}; get all these handles with one call of {}", quoted(names)),
    }
}

/// Returns the result of a call that did not run. The message is for the model.
pub(super) fn refused(message: String) -> CallToolResult {
    wire::call_result(
        &ToolResult::error(message),
        ResultShape::Untyped,
        Vec::new(),
        Repetition::Full,
    )
}
