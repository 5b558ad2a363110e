//! The requests of one connection.
#![allow(
    deprecated,
    reason = "revision 2026-07-28 deprecates logging and subscriptions of sessions, and clients use them"
)]

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, CompleteRequestParams, CompleteResult, CustomRequest,
    CustomResult, ErrorCode, GetPromptRequestParams, GetPromptResponse, GetTaskParams, GetTaskResult, Implementation,
    InitializeRequestParams, InitializeResult, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult, PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse,
    ServerCapabilities, ServerConfig, SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter, Tool,
    UnsubscribeRequestParams, UpdateTaskParams,
};
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use tokio::sync::OnceCell;

use super::content_requests::ContentRequests;
use super::mcp_server::ServerState;
use super::task_call;
use crate::client::LogLevel;
use crate::content::{supports_ui, without_ui};
use crate::principal::Principal;
use crate::session::ClientSession;
use crate::wire::{self, Revision};

/// The name of the server in the protocol.
const NAME: &str = "toolwit";

/// The methods whose requests reach [`Connection::on_custom_request`] only if their parameters are invalid.
const STANDARD_METHODS: [&str; 16] = [
    "tools/call",
    "tools/list",
    "prompts/get",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
    "completion/complete",
    "tasks/get",
    "tasks/update",
    "tasks/cancel",
    SET_LEVEL,
    INITIALIZE,
    "server/discover",
];

/// The method that begins a session. Revision 2026-07-28 does not have it.
const INITIALIZE: &str = "initialize";

/// The method that sets the lowest severity of the log messages of a session. Each request of revision 2026-07-28
/// carries its own severity.
const SET_LEVEL: &str = "logging/setLevel";

/// The methods that revision 2026-07-28 does not have.
const REMOVED_METHODS: [&str; 4] = [INITIALIZE, SET_LEVEL, "resources/subscribe", "resources/unsubscribe"];

/// The handler of a connection, of a session over HTTP, or of one request without a session.
pub(crate) struct Connection {
    shared: Arc<ServerState>,
    session: OnceCell<Arc<ClientSession>>,
}

impl Connection {
    pub(crate) fn new(shared: Arc<ServerState>) -> Self {
        Self {
            shared,
            session: OnceCell::new(),
        }
    }

    /// Returns the principal of a request.
    fn principal<'r>(&'r self, request: &'r RequestContext<RoleServer>) -> &'r Principal {
        let parts = request.extensions.get::<http::request::Parts>();
        let token_principal = parts.and_then(|parts| parts.extensions.get::<Arc<Principal>>());
        token_principal.map_or(self.shared.local(), |principal| principal)
    }

    /// Returns the prompts and resources for a request.
    fn content<'r>(&'r self, request: &'r RequestContext<RoleServer>) -> ContentRequests<'r> {
        ContentRequests {
            content: self.shared.content(),
            principal: self.principal(request),
        }
    }

    /// Returns the session of the connection. The session begins with the first request that needs it.
    async fn session(&self, request: &RequestContext<RoleServer>) -> Result<&Arc<ClientSession>, ErrorData> {
        let principal = self.principal(request);
        let begin = || async {
            // Boxed, because it runs once and would enlarge the future of every request.
            let begun = Box::pin(ClientSession::begin(principal.clone()));
            let session = begun.await.map(Arc::new);
            let session = session.map_err(|error| wire::internal(&error))?;
            self.shared.listeners().add_session(&session, request.peer.clone());
            Ok::<_, ErrorData>(session)
        };
        let session = self.session.get_or_try_init(begin).await?;
        if session.principal().name() != principal.name() {
            return Err(ErrorData::invalid_request(
                "the session belongs to another client",
                None,
            ));
        }
        Ok(session)
    }
}

impl ServerHandler for Connection {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_resources()
            .enable_resources_list_changed()
            .enable_resources_subscribe()
            .enable_completions()
            .enable_logging()
            .enable_tasks()
            .build();
        InitializeResult::new(capabilities)
            .with_protocol_version(ProtocolVersion::V_2025_11_25)
            .with_server_info(Implementation::new(NAME, env!("CARGO_PKG_VERSION")))
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        if Revision::of(&context) == Revision::Stateless {
            return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, INITIALIZE, None));
        }
        if self.session.initialized() {
            return Err(ErrorData::invalid_request("the session is initialized already", None));
        }
        let info = self.get_info();
        let newest = info.protocol_version.clone();
        let requested = request.protocol_version.clone();
        // A later version has no `initialize`. A client that requests such a version gets the newest version that has
        // `initialize`.
        let is_supported = self.supported_protocol_versions().contains(&requested) && requested <= newest;
        let negotiated = if is_supported { requested } else { newest };
        let mut client = request;
        client.protocol_version = negotiated.clone();
        context.peer.set_peer_info(client);
        self.session(&context).await?;
        Ok(info.with_protocol_version(negotiated))
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let cursor = request.and_then(|request| request.cursor);
        let mut page = match Revision::of(&context) {
            Revision::Session => self.session(&context).await?.list(cursor.as_deref()).await?,
            Revision::Stateless => {
                let principal = self.principal(&context);
                self.shared.stateless().list(principal, cursor.as_deref()).await?
            }
        };
        if !supports_ui(&context) {
            page.tools = page.tools.into_iter().map(without_ui).collect();
        }
        Ok(page)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let principal = self.principal(&context);
        let started = Instant::now();
        let result = match Revision::of(&context) {
            Revision::Session => {
                let session = self.session(&context).await?;
                let arguments = request.arguments.unwrap_or_default();
                let outcome = Box::pin(session.call(&request.name, arguments, &context)).await;
                outcome.map(CallToolResponse::from)
            }
            Revision::Stateless => Box::pin(task_call::call(&self.shared, principal, request, &context)).await,
        };
        let outcome = match &result {
            Ok(CallToolResponse::InputRequired(_)) => "input_required",
            Ok(CallToolResponse::Task(_)) => "task",
            Ok(CallToolResponse::Complete(result)) if result.is_error == Some(true) => "error",
            Ok(_) => "ok",
            Err(_) => "refused",
        };
        self.shared
            .metrics()
            .count_call(principal.group(), outcome, started.elapsed());
        result
    }

    /// Returns the definition with which the headers of an HTTP request are compared. The definition of the local
    /// principal is used for all principals.
    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.shared.stateless().tool(self.shared.local(), name)
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        self.content(&context).prompts(request)
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let questions = self.shared.stateless().questions();
        Box::pin(self.content(&context).prompt(request, &context, questions)).await
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        self.content(&context).resources(request, supports_ui(&context))
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        self.content(&context).templates(request)
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let contents = self.content(&context).resource(request.uri).await;
        contents.map(ReadResourceResponse::Complete)
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        self.content(&context).complete(&request)
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if Revision::of(&context) == Revision::Stateless {
            return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, SET_LEVEL, None));
        }
        let level = LogLevel::of_wire(request.level);
        self.session(&context).await?.set_log_min(level);
        Ok(())
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        // A client can subscribe only to a resource that it can read.
        self.content(&context).resource(request.uri.clone()).await?;
        self.session(&context).await?.subscribe(request.uri)
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.session(&context).await?.unsubscribe(&request.uri);
        Ok(())
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        let principal = self.principal(&context).name();
        self.shared
            .tasks()
            .get(principal, &request.task_id)
            .map(GetTaskResult::new)
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let principal = self.principal(&context).name();
        self.shared
            .tasks()
            .update(principal, &request.task_id, request.input_responses)
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let principal = self.principal(&context).name();
        self.shared.tasks().cancel(principal, &request.task_id)
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.supported_by(&self.get_info().capabilities))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let key = self.shared.listeners().add_subscription(context.sink().clone());
        context.cancelled().await;
        self.shared.listeners().remove_subscription(key);
        Ok(())
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let is_removed =
            REMOVED_METHODS.contains(&request.method.as_str()) && Revision::of(&context) == Revision::Stateless;
        if STANDARD_METHODS.contains(&request.method.as_str()) && !is_removed {
            return Err(wire::invalid_params(format!(
                "the parameters of `{}` are invalid",
                request.method
            )));
        }
        Err(ErrorData::new(
            ErrorCode::METHOD_NOT_FOUND,
            Cow::Owned(request.method),
            None,
        ))
    }
}
