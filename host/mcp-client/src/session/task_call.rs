//! Calls of tools that run as tasks: the server answers with the id of a task, which the client asks for the result.

use std::time::Duration;

use rmcp::model::{ClientRequest, CustomRequest, ErrorCode, ErrorData, ServerResult};
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::connection::Connection;
use super::request::{RequestError, RequestOptions};
use toolwit_core::ToolContext;

/// The pause between two requests for the status of a task, if the server does not name one.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The shortest and the longest pause that a server can name.
const POLL_INTERVAL_MIN: Duration = Duration::from_millis(50);
const POLL_INTERVAL_MAX: Duration = Duration::from_secs(10);

/// The maximum time for cancelling a task.
const CANCEL_WALL_MAX: Duration = Duration::from_secs(1);

impl Connection {
    /// Calls a tool as a task, and waits for the result of the task. The call and the requests for its result together have the
    /// time limit of one call. If the caller cancels or the time limit is reached, the task is cancelled at the server.
    ///
    /// # Errors
    /// See [`RequestError`].
    pub(crate) async fn call_tool_as_task(
        &self,
        name: &str,
        arguments: Map<String, Value>,
        options: &RequestOptions<'_>,
    ) -> Result<ServerResult, RequestError> {
        let deadline = options.deadline();
        let ttl = u64::try_from(options.total_max().as_millis()).unwrap_or(u64::MAX);
        let parameters = json!({"name": name, "arguments": arguments, "task": {"ttl": ttl}});
        let created = self.custom_request("tools/call", parameters, deadline, options).await?;
        if matches!(created, ServerResult::CallToolResult(_)) {
            return Ok(created);
        }
        let created = serde_json::to_value(created).map_err(|_| RequestError::Unexpected)?;
        let task = created.get("task").unwrap_or(&created);
        let Some(id) = task.get("taskId").and_then(Value::as_str) else {
            return Err(RequestError::Unexpected);
        };
        let interval = task
            .get("pollInterval")
            .and_then(Value::as_u64)
            .map(Duration::from_millis);
        let interval = interval
            .unwrap_or(POLL_INTERVAL)
            .clamp(POLL_INTERVAL_MIN, POLL_INTERVAL_MAX);
        let result = self.task_result(id, task, interval, deadline, options).await;
        // The server has the call: a request for its result that was not processed must not repeat it.
        let result = result.map_err(|error| match error {
            RequestError::SessionLost | RequestError::NotProcessed(_) | RequestError::LoginRequired(..) => {
                RequestError::Failed(error.to_string())
            }
            error => error,
        });
        if matches!(
            result,
            Err(RequestError::Cancelled | RequestError::Timeout(_) | RequestError::Stalled(_))
        ) {
            self.cancel_task(id).await;
        }
        result
    }

    /// Waits until a task ends, and returns its result.
    async fn task_result(
        &self,
        id: &str,
        created: &Value,
        interval: Duration,
        deadline: Instant,
        options: &RequestOptions<'_>,
    ) -> Result<ServerResult, RequestError> {
        let mut status = created.get("status").cloned().unwrap_or_default();
        loop {
            match status.as_str() {
                // With `input_required`, the server asks for input while it answers `tasks/result`.
                Some("completed" | "failed" | "input_required") => {
                    return self
                        .custom_request("tasks/result", json!({"taskId": id}), deadline, options)
                        .await;
                }
                Some("cancelled") => {
                    let message = "the server cancelled the task of the call";
                    return Err(RequestError::Refused(ErrorData::new(ErrorCode(0), message, None)));
                }
                _ => {}
            }
            tokio::select! {
                biased;
                () = options.context.cancel_token().cancelled() => return Err(RequestError::Cancelled),
                () = tokio::time::sleep_until(deadline) => return Err(RequestError::Timeout(options.total_max())),
                () = tokio::time::sleep(interval) => {}
            }
            let task = self
                .custom_request("tasks/get", json!({"taskId": id}), deadline, options)
                .await?;
            let task = serde_json::to_value(task).map_err(|_| RequestError::Unexpected)?;
            status = task.get("status").cloned().ok_or(RequestError::Unexpected)?;
        }
    }

    async fn cancel_task(&self, id: &str) {
        // The context of the caller may be cancelled.
        let context = ToolContext::new();
        let options = RequestOptions {
            context: &context,
            meta: Map::new(),
            idle_max: CANCEL_WALL_MAX,
            wall_max: CANCEL_WALL_MAX,
        };
        let cancelled = self
            .custom_request("tasks/cancel", json!({"taskId": id}), options.deadline(), &options)
            .await;
        if let Err(error) = cancelled {
            tracing::debug!(%error, "a task of an MCP server cannot be cancelled");
        }
    }

    async fn custom_request(
        &self,
        method: &str,
        parameters: Value,
        deadline: Instant,
        options: &RequestOptions<'_>,
    ) -> Result<ServerResult, RequestError> {
        let request = CustomRequest::new(method, Some(parameters));
        self.request_until(deadline, ClientRequest::CustomRequest(request), options)
            .await
    }
}
