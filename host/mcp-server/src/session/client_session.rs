//! The session of one client.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::{CallToolResult, ListToolsResult, Tool};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};

use crate::call::{CallOutcome, CallRequest, call};
use crate::content::UiPages;
use crate::principal::Principal;
use crate::stateless::{LiveSession, SessionCall, StatelessRequests};
use crate::wire::{self, Repetition, ResultShape, Revision};
use toolwit::registry::Registry;
use toolwit::tool::LogLevel;
use toolwit::{Arguments, Error};

/// Maximum number of resources to which a session can subscribe.
const SUBSCRIPTIONS_MAX: usize = 1_000;

/// The session of one client: a conversation whose model is on the side of the client.
pub(crate) struct ClientSession {
    principal: Principal,
    live: Arc<LiveSession>,
    packages: SessionPackages,
    /// The URIs of the resources to which the client subscribed.
    subscriptions: Mutex<BTreeSet<String>>,
    /// The lowest severity of the messages that the client receives.
    log_min: Mutex<LogLevel>,
}

/// The packages that provide the tools of a session.
struct SessionPackages(Mutex<Registry>);

impl SessionPackages {
    /// Runs `refresh` if the packages differ from `newest`, and returns whether the list of tools changed. After a
    /// failed or cancelled refresh, the next call of this function tries again.
    async fn refresh_if_changed(
        &self,
        newest: Registry,
        refresh: impl Future<Output = Result<bool, Error>>,
    ) -> Result<bool, Error> {
        if self.current().is_same(&newest) {
            return Ok(false);
        }
        let has_changed = refresh.await?;
        *self.current() = newest;
        Ok(has_changed)
    }

    fn current(&self) -> MutexGuard<'_, Registry> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientSession {
    /// Begins a session with the tools of a principal.
    ///
    /// # Errors
    /// If the session cannot be built.
    pub(crate) async fn begin(principal: Principal, requests: &StatelessRequests) -> Result<Self, Error> {
        let packages = principal.host().registry();
        Ok(Self {
            live: requests.begin_session(&principal).await?,
            packages: SessionPackages(Mutex::new(packages)),
            subscriptions: Mutex::default(),
            log_min: Mutex::new(LogLevel::Info),
            principal,
        })
    }

    /// Returns the principal of the session.
    pub(crate) fn principal(&self) -> &Principal {
        &self.principal
    }

    /// Sets the lowest severity of the messages that the client receives.
    pub(crate) fn set_log_min(&self, level: LogLevel) {
        *self.log_min.lock().unwrap_or_else(PoisonError::into_inner) = level;
    }

    fn log_min(&self) -> LogLevel {
        *self.log_min.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Subscribes to a resource.
    ///
    /// # Errors
    /// If the session has too many subscriptions.
    pub(crate) fn subscribe(&self, uri: String) -> Result<(), ErrorData> {
        let mut subscriptions = self.subscriptions();
        if subscriptions.len() >= SUBSCRIPTIONS_MAX && !subscriptions.contains(&uri) {
            let message = format!("a session can subscribe to at most {SUBSCRIPTIONS_MAX} resources");
            return Err(ErrorData::invalid_request(message, None));
        }
        subscriptions.insert(uri);
        Ok(())
    }

    /// Ends the subscription to a resource.
    pub(crate) fn unsubscribe(&self, uri: &str) {
        self.subscriptions().remove(uri);
    }

    /// Returns whether the session subscribed to a resource.
    pub(crate) fn is_subscribed(&self, uri: &str) -> bool {
        self.subscriptions().contains(uri)
    }

    fn subscriptions(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.subscriptions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Updates the tools to the newest packages of the host. Returns whether the list of tools changed.
    ///
    /// # Errors
    /// If [`ToolSession::refresh`] fails.
    pub(crate) async fn refresh(&self) -> Result<bool, Error> {
        let newest = self.principal.host().registry();
        let tools = &self.live.tools;
        self.packages.refresh_if_changed(newest, tools.refresh()).await
    }

    /// Returns a page of the list of tools.
    ///
    /// # Errors
    /// If the cursor is invalid.
    pub(crate) async fn list(
        &self,
        cursor: Option<&str>,
        requests: &StatelessRequests,
    ) -> Result<ListToolsResult, ErrorData> {
        if let Err(error) = self.refresh().await {
            tracing::warn!(%error, "the tools of a session cannot be updated");
        }
        let tools = self.live.tools.tools_with_effects().await;
        let ui_pages = UiPages(&self.principal);
        let tools = tools.iter().map(|(tool, effect)| {
            let listed = wire::tool(tool.name.as_str(), &tool.definition, Revision::Session);
            let listed = ui_pages.link(listed, &tool.definition);
            listed.with_annotations(wire::annotations(*effect))
        });
        let mut tools = tools.collect::<Vec<Tool>>();
        requests.add_call_tool(&self.principal, &mut tools);
        wire::tool_page(tools, cursor)
    }

    /// Calls a tool. If the call changes the list of tools, the client is notified before the result is returned.
    ///
    /// # Errors
    /// If no tool has the name.
    pub(crate) async fn call(
        &self,
        name: &str,
        arguments: Arguments,
        request: &RequestContext<RoleServer>,
        requests: &StatelessRequests,
    ) -> Result<CallToolResult, ErrorData> {
        let is_foreign = requests.has_foreign_handle(&self.live, &self.principal, &arguments);
        if let Some(tool) = self.live.tools.tool(name).await.filter(|_| !is_foreign) {
            let mut arguments = arguments;
            requests.replace_own_handles(&self.live, &self.principal, &tool.definition, &mut arguments);
            // The shape is determined before the call, because the call may change the definition of the tool.
            let shape = wire::result_shape(&tool.definition, Revision::Session);
            return self.call_own(name, arguments, shape, request, requests).await;
        }
        let call = (name, arguments);
        let answer = requests.call_beyond_session(&self.live, &self.principal, call, self.log_min(), request);
        match Box::pin(answer).await {
            SessionCall::Own(name, arguments) => {
                self.call_own(&name, arguments, ResultShape::Untyped, request, requests)
                    .await
            }
            SessionCall::Answered(answer) => *answer,
        }
    }

    /// Calls a tool of this session.
    async fn call_own(
        &self,
        name: &str,
        arguments: Arguments,
        shape: ResultShape,
        request: &RequestContext<RoleServer>,
        requests: &StatelessRequests,
    ) -> Result<CallToolResult, ErrorData> {
        let call_request = CallRequest {
            principal: &self.principal,
            request,
            round: None,
            log_min: Some(self.log_min()),
        };
        let CallOutcome { answer, notes } = call(&self.live.tools, name, arguments, call_request).await;
        let mut answer = match answer {
            Ok(answer) => answer,
            Err(error) => return wire::call_error(&error),
        };
        if answer.has_changed_tools && request.peer.notify_tool_list_changed().await.is_err() {
            tracing::debug!("a client cannot be notified of its changed list of tools");
        }
        requests.add_handles(&self.live, &self.principal, &mut answer.result);
        let repetition = Repetition::for_client(request);
        Ok(wire::call_result(&answer.result, shape, notes, repetition))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use toolwit::{ErrorKind, Phase, Toolwit};

    async fn registry() -> Registry {
        Toolwit::builder().build().await.unwrap().registry()
    }

    async fn failure() -> Result<bool, Error> {
        Err(Error::new(ErrorKind::Internal, Phase::Registry, "no list"))
    }

    #[tokio::test]
    async fn a_failed_refresh_is_repeated_and_a_successful_one_is_not() {
        let packages = SessionPackages(Mutex::new(registry().await));
        let newest = registry().await;
        assert!(packages.refresh_if_changed(newest.clone(), failure()).await.is_err());
        let success = async { Ok::<_, Error>(true) };
        assert!(packages.refresh_if_changed(newest.clone(), success).await.unwrap());
        assert!(!packages.refresh_if_changed(newest, failure()).await.unwrap());
    }
}
