//! A session that holds the live entities of handles.

use std::sync::{Mutex, OnceLock, PoisonError};

use tokio::time::Instant;
use toolwit::agent::{SessionTool, ToolSession};
use toolwit::tool::ToolId;
use toolwit::{Error, ToolDefinition};

use super::handle_method::HandleMethod;
use super::live_session_counter::SessionPermit;
use crate::principal::Principal;

/// A session in which stateless calls run, or the session of a client. The session holds the entities of the handles that its
/// calls returned.
pub(crate) struct LiveSession {
    pub(crate) tools: ToolSession,
    /// The group of the session's principal.
    group: String,
    /// Counts the session towards the limits until the session is dropped. `None` for the session of a client without handles.
    permit: OnceLock<SessionPermit>,
    last_use: Mutex<Instant>,
}

/// The tool of a session that runs a [`HandleMethod`] of an entity.
pub(super) struct EntityMethod {
    pub(super) tool: SessionTool,
    /// The parameter that takes the id of the entity. `None` if the tool is bound to the entity.
    pub(super) id_parameter: Option<String>,
}

impl LiveSession {
    /// Begins a session with the tools of a principal.
    ///
    /// # Errors
    /// If the session cannot be built.
    pub(super) async fn begin(principal: &Principal, permit: Option<SessionPermit>) -> Result<Self, Error> {
        let tools = ToolSession::begin(principal.conversation()).await?;
        Ok(Self {
            tools,
            group: principal.group().to_owned(),
            permit: permit.map_or_else(OnceLock::new, OnceLock::from),
            last_use: Mutex::new(Instant::now()),
        })
    }

    /// Returns the group of the session's principal.
    pub(super) fn group(&self) -> &str {
        &self.group
    }

    /// Returns whether the session counts towards the limits.
    pub(super) fn is_counted(&self) -> bool {
        self.permit.get().is_some()
    }

    /// Counts the session towards the limits.
    pub(super) fn count(&self, permit: SessionPermit) {
        // If another call has counted the session in the meantime, this permit is released.
        drop(self.permit.set(permit));
    }

    /// Returns when the session was last used.
    pub(super) fn last_use(&self) -> Instant {
        *self.last_use.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a use of the session.
    pub(super) fn record_use(&self) {
        *self.last_use.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Returns the tool that runs a method of an entity. The tool is bound to the entity, or several entities share the
    /// tool. Returns `None` if the session has neither tool.
    ///
    /// `definition` is the definition of the method in the catalog. `id` is the id of the entity.
    pub(super) async fn method(
        &self,
        method: &HandleMethod,
        definition: &ToolDefinition,
        id: &str,
    ) -> Option<EntityMethod> {
        let unbound = definition.id.unbound();
        debug_assert_eq!(method.kind.plugin, unbound.owner());
        if let Some(tool) = self.tools.tool_by_id(&unbound.bound_to(id)).await {
            return Some(EntityMethod {
                tool,
                id_parameter: None,
            });
        }
        // A tool of all entities of a type has the first id. A tool of the members of an entity group has the second id.
        let shared_ids: [ToolId; 2] = [unbound.clone(), unbound.bound_by("any")];
        for shared_id in &shared_ids {
            if let Some(tool) = self.tools.tool_by_id(shared_id).await {
                let properties = tool.definition.input_schema["properties"].as_object()?;
                let id_parameter = Some(properties.keys().next()?.clone());
                return Some(EntityMethod { tool, id_parameter });
            }
        }
        None
    }
}
