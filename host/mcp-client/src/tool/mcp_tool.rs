//! A tool of a server, and the connection for its calls.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use futures::future::BoxFuture;
use rmcp::model::{ClientRequest, ServerResult};

use super::content::tool_result;
use super::errors::{failed_call_result, unusable_server_error};
use super::handles::{ReturnedHandle, UsableTools};
use super::meta;
use crate::session::{Connection, ListedTool, RequestError, RequestOptions, ServerSession, SessionPool};
use toolwit_core::limits::MCP_PROGRESS_WALL_MAX;
use toolwit_core::{
    Arguments, Error, ErrorKind, InputValidator, Phase, Tool, ToolContext, ToolDefinition, ToolError, ToolResult,
};

/// The maximum time to list the tools again after a call, if the tools changed during the call.
const RELIST_WALL_MAX: Duration = Duration::from_secs(5);

/// A tool of a server. Each call uses the session of its caller.
pub(crate) struct McpTool {
    pool: Arc<SessionPool>,
    /// The name of the tool at the server.
    name: String,
    definition: ToolDefinition,
    /// Whether the tool can be called only as a task.
    requires_task: bool,
    /// Created at the first call, because it compiles schemas, and most tools of a server are never called.
    argument_validator: OnceLock<Result<InputValidator, Error>>,
    returned_handles: Vec<ReturnedHandle>,
    usable_tools: Arc<UsableTools>,
}

impl McpTool {
    pub(crate) fn new(pool: Arc<SessionPool>, listed: &ListedTool, usable_tools: Arc<UsableTools>) -> Self {
        Self {
            returned_handles: ReturnedHandle::all_of(&listed.definition, &pool.config.handles),
            usable_tools,
            pool,
            name: listed.name.clone(),
            definition: listed.definition.clone(),
            requires_task: listed.requires_task,
            argument_validator: OnceLock::new(),
        }
    }

    fn check_arguments(&self, arguments: Arguments) -> Result<Arguments, ToolError> {
        let validator = self
            .argument_validator
            .get_or_init(|| InputValidator::of_untrusted(&self.definition));
        match validator {
            Ok(validator) => validator.check(arguments),
            Err(error) => Err(ToolError::Operator(error.clone())),
        }
    }
}

#[async_trait]
impl Tool for McpTool {
    fn definition(&self) -> &ToolDefinition {
        &self.definition
    }

    async fn call(&self, arguments: Arguments, context: &ToolContext) -> Result<ToolResult, ToolError> {
        let arguments = self.check_arguments(arguments)?;
        let tool = self.definition.name();
        let (name, requires_task) = (self.name.clone(), self.requires_task);
        let pending_answer = with_connection(&self.pool, tool, context, move |connection, options| {
            let (name, arguments) = (name.clone(), arguments.clone());
            async move {
                if requires_task {
                    connection.call_tool_as_task(&name, arguments, options).await
                } else {
                    connection.call_tool(&name, arguments, options).await
                }
            }
            .boxed()
        });
        let (answer, connection, session) = pending_answer.await?;
        let mut result = match answer {
            Ok(ServerResult::CallToolResult(call_result)) => tool_result(call_result, connection.redaction()),
            // Some servers omit the content of a result without one.
            Ok(ServerResult::EmptyResult(_)) => Ok(ToolResult::text("")),
            Ok(_) => failed_call_result(RequestError::Unexpected, tool),
            Err(error) => failed_call_result(error, tool),
        };
        if connection.have_tools_changed() {
            // The call may have added tools that the model needs next. If the listing takes too long, it continues in
            // the background, and a later turn adds the tools.
            drop(tokio::time::timeout(RELIST_WALL_MAX, session.listing(context)).await);
        }
        if let Ok(result) = &mut result
            && !result.is_error()
        {
            for handle in &self.returned_handles {
                handle.add_entities(result, &self.pool.config.name, &self.usable_tools);
            }
        }
        result
    }
}

/// The answer to a request or the failure of the request, with the connection and the session that sent it.
pub(super) type CallAnswer<T> = (Result<T, RequestError>, Arc<Connection>, Arc<ServerSession>);

/// Connects for a caller if necessary, and sends a request. If the server has ended the session, it did not process the
/// request, so the request is sent once more in a new session.
///
/// # Errors
/// If there is no connection, because the server cannot be used or the caller cancels. The failure of a sent request is
/// in the [`CallAnswer`].
pub(super) async fn with_connection<T>(
    pool: &Arc<SessionPool>,
    tool: &str,
    context: &ToolContext,
    send: impl for<'a> Fn(&'a Connection, &'a RequestOptions<'a>) -> BoxFuture<'a, Result<T, RequestError>> + Send + Sync,
) -> Result<CallAnswer<T>, ToolError> {
    let session = pool.session_of(context);
    let mut is_retry = false;
    loop {
        let connection = tokio::select! {
            biased;
            () = context.cancel_token().cancelled() => {
                let message = "the call was cancelled before it reached the server";
                return Err(ToolError::Model(Error::new(ErrorKind::Cancelled, Phase::Execute, message).with_tool(tool)));
            }
            connection = session.connection(context) => connection.map_err(|error| unusable_server_error(&error, tool))?,
        };
        let options = RequestOptions {
            context,
            meta: meta::request_meta(pool, &connection, context),
            idle_max: pool.config.timeout,
            wall_max: MCP_PROGRESS_WALL_MAX,
        };
        let answer = send(&connection, &options).await;
        match &answer {
            Err(RequestError::SessionLost) if !is_retry => {
                session.drop_connection(&connection);
                is_retry = true;
                continue;
            }
            Err(RequestError::SessionLost | RequestError::Closed(_)) => session.drop_connection(&connection),
            _ => {}
        }
        return Ok((answer, connection, session));
    }
}

/// Sends one request, as the `send` function of [`with_connection`].
pub(super) fn send_request<'a>(
    connection: &'a Connection,
    request: ClientRequest,
    options: &'a RequestOptions<'a>,
) -> BoxFuture<'a, Result<ServerResult, RequestError>> {
    connection.request(request, options).boxed()
}
