//! The client's side of a connection: it handles the requests and notifications of the server.

#![expect(
    deprecated,
    reason = "older servers still ask for roots and inferences, and send logs"
)]

use rmcp::ClientHandler;
use rmcp::model::{
    ClientConfig, CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams, ElicitResult, ErrorData,
    ListRootsResult, LoggingMessageNotificationParam, ProgressNotificationParam,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};

use super::input::InputProvider;
use super::notifications::Notifications;
use crate::value::Redaction;

/// The maximum length of a server's log message, in characters.
const LOG_CHARS_MAX: usize = 1_000;

/// Passes the requests of a server to the policy of the client. Records the server's notifications of progress and of
/// changed tools, and logs its log messages.
pub(super) struct Handler {
    pub(super) input: InputProvider,
    pub(super) notifications: Notifications,
    /// The secrets that the server received.
    pub(super) redaction: Redaction,
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        self.input.client_info()
    }

    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        let conversion_error = |error: serde_json::Error| ErrorData::internal_error(error.to_string(), None);
        let parameters = serde_json::to_value(params).map_err(conversion_error)?;
        let result = tokio::select! {
            biased;
            () = context.ct.cancelled() => return Err(cancellation_error()),
            result = self.input.infer(parameters) => result?,
        };
        serde_json::from_value(result).map_err(conversion_error)
    }

    async fn list_roots(&self, _context: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        Ok(self.input.roots())
    }

    async fn create_elicitation(
        &self,
        params: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        tokio::select! {
            biased;
            () = context.ct.cancelled() => Err(cancellation_error()),
            result = self.input.elicit(params) => Ok(result),
        }
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _context: NotificationContext<RoleClient>) {
        self.notifications.deliver_progress(params);
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.notifications.mark_tools_changed();
    }

    async fn on_logging_message(
        &self,
        params: LoggingMessageNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let mut data = params.data;
        // The data is redacted before it becomes JSON text. In JSON text, a secret can be escaped, and the redaction would
        // not find it.
        self.redaction.redact_value(&mut data);
        let text = self.redaction.beginning(&data.to_string(), LOG_CHARS_MAX);
        tracing::debug!(level = ?params.level, message = text, "an MCP server logged a message");
    }
}

/// Returns the error of a request that the server cancelled, or whose connection ended.
fn cancellation_error() -> ErrorData {
    ErrorData::internal_error("the request was cancelled", None)
}
