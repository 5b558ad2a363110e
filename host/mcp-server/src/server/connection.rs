//! The handler of the requests of one connection.
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

use super::answer_memory::{reserve, reserve_for_call, reserve_for_prompt};
use super::call_log;
use super::content_requests::ContentRequests;
use super::mcp_server::ServerState;
use super::task_call;
use crate::call::CallRecord;
use crate::client::level_of_wire;
use crate::content::{supports_ui, without_ui};
use crate::principal::Principal;
use crate::session::ClientSession;
use crate::wire::{self, Revision};

/// The name of the server in the protocol.
const NAME: &str = "toolwit";

/// The methods whose requests reach [`Connection::on_custom_request`] only if their parameters are invalid. The protocol
/// library (`rmcp`) passes valid requests to the other functions of [`Connection`].
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

/// The method that begins a session. Revision 2026-07-28 does not have this method.
const INITIALIZE: &str = "initialize";

/// The method that sets the lowest severity of the log messages of a session. Each request of revision 2026-07-28
/// carries its own severity.
const SET_LEVEL: &str = "logging/setLevel";

/// The methods that revision 2026-07-28 does not have.
const REMOVED_METHODS: [&str; 4] = [INITIALIZE, SET_LEVEL, "resources/subscribe", "resources/unsubscribe"];

/// Handles the requests of a connection over standard input, of a session over HTTP, or one HTTP request without a
/// session.
pub(crate) struct Connection {
    server: Arc<ServerState>,
    session: OnceCell<Arc<ClientSession>>,
}

impl Connection {
    pub(crate) fn new(server: Arc<ServerState>) -> Self {
        Self {
            server,
            session: OnceCell::new(),
        }
    }

    /// Returns the principal of a request: the principal of its token, or else the local principal.
    fn principal<'r>(&'r self, request: &'r RequestContext<RoleServer>) -> &'r Principal {
        let parts = request.extensions.get::<http::request::Parts>();
        let token_principal = parts.and_then(|parts| parts.extensions.get::<Arc<Principal>>());
        token_principal.map_or(self.server.local_principal(), |principal| principal)
    }

    /// Returns the handler of requests for content, with the principal of a request.
    fn content_requests<'r>(&'r self, request: &'r RequestContext<RoleServer>) -> ContentRequests<'r> {
        ContentRequests {
            content: self.server.content(),
            principal: self.principal(request),
        }
    }

    /// Returns the session of the connection. The session begins with the first request that needs it.
    async fn session(&self, request: &RequestContext<RoleServer>) -> Result<&Arc<ClientSession>, ErrorData> {
        let principal = self.principal(request);
        let begin = || async {
            // This future runs once. It is boxed, because it would otherwise enlarge the future of every request.
            let session = Box::pin(ClientSession::begin(principal.clone(), self.server.stateless())).await;
            let session = session.map(Arc::new).map_err(|error| wire::internal_error(&error))?;
            self.server.listeners().add_session(&session, request.peer.clone());
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
        // Versions after `newest` have no sessions, and therefore no `initialize`.
        let is_supported = self.supported_protocol_versions().contains(&requested) && requested <= newest;
        let negotiated = if is_supported { requested } else { newest };
        let mut client_info = request;
        client_info.protocol_version = negotiated.clone();
        context.peer.set_peer_info(client_info);
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
            Revision::Session => {
                let session = self.session(&context).await?;
                session.list(cursor.as_deref(), self.server.stateless()).await?
            }
            Revision::Stateless => {
                let principal = self.principal(&context);
                self.server.stateless().list(principal, cursor.as_deref()).await?
            }
        };
        if !supports_ui(&context) {
            page.tools = page.tools.into_iter().map(without_ui).collect();
        }
        reserve(&context, page)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        mut context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let (started, record, name) = (Instant::now(), CallRecord::default(), request.name.clone());
        context.extensions.insert(record.clone());
        let principal = self.principal(&context);
        let result = match Revision::of(&context) {
            Revision::Session => {
                let session = self.session(&context).await?;
                let arguments = request.arguments.unwrap_or_default();
                let result = Box::pin(session.call(&request.name, arguments, &context, self.server.stateless())).await;
                result.map(CallToolResponse::from)
            }
            Revision::Stateless => Box::pin(task_call::call(&self.server, principal, request, &context)).await,
        };
        let result = result.and_then(|result| reserve_for_call(&context, result));
        call_log::record(
            self.server.metrics(),
            self.principal(&context),
            &name,
            &record.values(),
            &result,
            started.elapsed(),
        );
        result
    }

    /// Returns the definition of a tool. The protocol library compares the headers of an HTTP request with this
    /// definition. It does not pass the principal of the request, so the tools of the local principal are used for all
    /// principals.
    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.server.stateless().tool(self.server.local_principal(), name)
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        reserve(&context, self.content_requests(&context).prompts(request)?)
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let questions = self.server.stateless().questions();
        let prompt = Box::pin(self.content_requests(&context).prompt(request, &context, questions)).await?;
        reserve_for_prompt(&context, prompt)
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let resources = self.content_requests(&context);
        reserve(&context, resources.resources(request, supports_ui(&context))?)
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        reserve(&context, self.content_requests(&context).templates(request)?)
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let contents = self.content_requests(&context).resource(request.uri).await;
        reserve(&context, contents?).map(ReadResourceResponse::Complete)
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        self.content_requests(&context).complete(&request)
    }

    async fn set_level(
        &self,
        request: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if Revision::of(&context) == Revision::Stateless {
            return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, SET_LEVEL, None));
        }
        let level = level_of_wire(request.level);
        self.session(&context).await?.set_log_min(level);
        Ok(())
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        // A client can subscribe only to a resource that it can read.
        self.content_requests(&context).resource(request.uri.clone()).await?;
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
        let task = self.server.tasks().get(principal, &request.task_id)?;
        reserve(&context, GetTaskResult::new(task))
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let principal = self.principal(&context).name();
        self.server
            .tasks()
            .update(principal, &request.task_id, request.input_responses)
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let principal = self.principal(&context).name();
        self.server.tasks().cancel(principal, &request.task_id)
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.supported_by(&self.get_info().capabilities))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let key = self.server.listeners().add_subscription(context.sink().clone());
        context.cancelled().await;
        self.server.listeners().remove_subscription(key);
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
