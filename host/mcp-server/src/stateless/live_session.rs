//! A session with the live entities behind handles.

use std::sync::{Mutex, PoisonError};

use tokio::time::Instant;
use toolwit::agent::{SessionTool, ToolSession};
use toolwit::tool::ToolId;
use toolwit::{Error, ToolDefinition};

use super::fixed_method::FixedMethod;
use super::live_session_counter::SessionPermit;
use crate::principal::Principal;

/// A conversation without a model, which holds the entities of handles.
pub(super) struct LiveSession {
    pub(super) tools: ToolSession,
    permit: SessionPermit,
    last_use: Mutex<Instant>,
}

/// The tool of a session that a fixed method calls.
pub(super) struct BoundMethod {
    pub(super) tool: SessionTool,
    /// The parameter for the entity's id, if the tool is shared by the entities of its type.
    pub(super) id_parameter: Option<String>,
}

impl LiveSession {
    /// Begins a session with the tools of a principal.
    ///
    /// # Errors
    /// If the session cannot be built.
    pub(super) async fn begin(principal: &Principal, permit: SessionPermit) -> Result<Self, Error> {
        let tools = ToolSession::begin(principal.conversation()).await?;
        Ok(Self {
            tools,
            permit,
            last_use: Mutex::new(Instant::now()),
        })
    }

    /// Returns the group of the session's principal.
    pub(super) fn group(&self) -> &str {
        self.permit.group()
    }

    /// Returns when the session was last used.
    pub(super) fn last_use(&self) -> Instant {
        *self.last_use.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a use of the session.
    pub(super) fn record_use(&self) {
        *self.last_use.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Returns the tool that calls a method of an entity. The tool is bound to the entity, or shared by the entities of
    /// its type. Returns `None` if the session has neither tool.
    pub(super) async fn method(
        &self,
        method: &FixedMethod,
        definition: &ToolDefinition,
        id: &str,
    ) -> Option<BoundMethod> {
        let unbound = definition.id.unbound();
        debug_assert_eq!(method.kind.plugin, unbound.owner());
        if let Some(tool) = self.tools.tool_by_id(&unbound.bound_to(id)).await {
            return Some(BoundMethod {
                tool,
                id_parameter: None,
            });
        }
        // The ids of the tool that all entities of a type share, and of the tool that the members of a group share.
        let shared: [ToolId; 2] = [unbound.clone(), unbound.bound_by("any")];
        for candidate in &shared {
            if let Some(tool) = self.tools.tool_by_id(candidate).await {
                let properties = tool.definition.input_schema["properties"].as_object()?;
                let id_parameter = Some(properties.keys().next()?.clone());
                return Some(BoundMethod { tool, id_parameter });
            }
        }
        None
    }
}
