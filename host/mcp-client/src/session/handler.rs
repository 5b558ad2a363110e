//! The client's side of a connection: what it does with requests and notifications of the server.

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
use super::notices::Notices;
use toolwit_core::text::printable;

/// The maximum length of a server's log message, in characters.
const LOG_CHARS_MAX: usize = 1_000;

/// Passes the requests of a server to the policy of the client, and its notifications to those who wait for them.
pub(super) struct Handler {
    pub(super) input: InputProvider,
    pub(super) notices: Notices,
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        self.input.client_info()
    }

    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        let invalid = |error: serde_json::Error| ErrorData::internal_error(error.to_string(), None);
        let parameters = serde_json::to_value(params).map_err(invalid)?;
        let result = self.input.infer(parameters).await?;
        serde_json::from_value(result).map_err(invalid)
    }

    async fn list_roots(&self, _context: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        Ok(self.input.roots())
    }

    async fn create_elicitation(
        &self,
        params: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        Ok(self.input.elicit(params).await)
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _context: NotificationContext<RoleClient>) {
        self.notices.progress_made(params);
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.notices.tools_changed();
    }

    async fn on_logging_message(
        &self,
        params: LoggingMessageNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        let text: String = printable(&params.data.to_string())
            .chars()
            .take(LOG_CHARS_MAX)
            .collect();
        tracing::debug!(level = ?params.level, message = text, "an MCP server logged a message");
    }
}
