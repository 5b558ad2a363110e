//! The session of one client.

use std::sync::{Mutex, PoisonError};

use rmcp::model::{CallToolResult, ListToolsResult, Tool};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};

use crate::call::{Called, call};
use crate::principal::Principal;
use crate::wire::{self, ResultShape, Revision};
use toolwit::agent::ToolSession;
use toolwit::registry::Registry;
use toolwit::{Arguments, Error};

/// A conversation without a model, for one client.
pub(crate) struct ClientSession {
    principal: Principal,
    tools: ToolSession,
    /// The packages whose tools the session has.
    packages: Mutex<Registry>,
}

impl ClientSession {
    /// Begins a session with the tools of a principal.
    ///
    /// # Errors
    /// If the session cannot be built.
    pub(crate) async fn begin(principal: Principal) -> Result<Self, Error> {
        let packages = principal.host().registry();
        Ok(Self {
            tools: ToolSession::begin(principal.conversation()).await?,
            packages: Mutex::new(packages),
            principal,
        })
    }

    /// Returns whose session it is.
    pub(crate) fn principal(&self) -> &Principal {
        &self.principal
    }

    /// Moves to the newest packages. Returns whether the list of tools changed.
    ///
    /// # Errors
    /// As [`ToolSession::refresh`].
    pub(crate) async fn follow(&self) -> Result<bool, Error> {
        let newest = self.principal.host().registry();
        {
            let mut packages = self.packages.lock().unwrap_or_else(PoisonError::into_inner);
            if packages.is_same(&newest) {
                return Ok(false);
            }
            *packages = newest;
        }
        self.tools.refresh().await
    }

    /// Returns a page of the list of tools.
    ///
    /// # Errors
    /// If the cursor is invalid.
    pub(crate) async fn list(&self, cursor: Option<&str>) -> Result<ListToolsResult, ErrorData> {
        if let Err(error) = self.follow().await {
            tracing::warn!(%error, "the tools of a session cannot be updated");
        }
        let tools = self.tools.tools_with_effects().await;
        let tools = tools.iter().map(|(tool, effect)| {
            let listed = wire::tool(tool.name.as_str(), &tool.definition, Revision::Session);
            listed.with_annotations(wire::annotations(*effect))
        });
        wire::page(tools.collect::<Vec<Tool>>(), cursor)
    }

    /// Calls a tool. A change of the list is announced before the result is returned.
    ///
    /// # Errors
    /// If no tool has the name.
    pub(crate) async fn call(
        &self,
        name: &str,
        arguments: Arguments,
        request: &RequestContext<RoleServer>,
    ) -> Result<CallToolResult, ErrorData> {
        // The definition of now: the call may change it.
        let shape = self.tools.tool(name).await.map_or(ResultShape::Untyped, |tool| {
            wire::result_shape(&tool.definition, Revision::Session)
        });
        let Called { answer, notes } = call(&self.tools, name, arguments, &self.principal, request, None).await;
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => return wire::call_error(&error),
        };
        if answer.has_new_tools && request.peer.notify_tool_list_changed().await.is_err() {
            tracing::debug!("a client has no stream for the change of its list");
        }
        Ok(wire::call_result(&answer.result, shape, notes))
    }
}
