//! A tool that records the outcome of its calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use async_trait::async_trait;

use super::CurrentSnapshot;
use crate::catalog::HealthBoost;
use crate::health::{check_outcome, now_ms};
use crate::store::{CheckOutcome, Store, ToolKey};
use toolwit_core::Error;
use toolwit_core::{Arguments, Tool, ToolContext, ToolDefinition, ToolError, ToolResult};

/// The last recorded outcome. A call with the same outcome writes nothing.
const NOTHING: u8 = 0;
const SUCCESS: u8 = 1;
const FAILURE: u8 = 2;

/// Records the outcome of a tool's calls: the first one in a conversation, and each change between success and failure.
pub(super) struct HealthTool {
    tool: Arc<dyn Tool>,
    key: ToolKey,
    store: Arc<dyn Store>,
    current: Arc<CurrentSnapshot>,
    recorded: AtomicU8,
}

impl HealthTool {
    /// Wraps a tool of the component with this digest.
    pub(super) fn new(tool: Arc<dyn Tool>, digest: &str, store: Arc<dyn Store>, current: Arc<CurrentSnapshot>) -> Self {
        Self {
            key: ToolKey::new(digest, tool.definition().id.as_str()),
            tool,
            store,
            current,
            recorded: AtomicU8::new(NOTHING),
        }
    }

    async fn record(&self, error: Option<&Error>) {
        let Some((stage, outcome)) = check_outcome(error) else {
            return;
        };
        let outcome_code = if outcome == CheckOutcome::Success {
            SUCCESS
        } else {
            FAILURE
        };
        if self.recorded.swap(outcome_code, Ordering::Relaxed) == outcome_code {
            return;
        }
        let boost = match outcome {
            CheckOutcome::Success => HealthBoost::Healthy,
            CheckOutcome::Failure(_) => HealthBoost::Broken,
        };
        self.current.set_health(&self.key, boost);
        let (store, key) = (self.store.clone(), self.key.clone());
        let write = move || store.record_check(&key, stage, &outcome, now_ms());
        match tokio::task::spawn_blocking(write).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(
                error = &error as &dyn std::error::Error,
                "the health of a tool could not be recorded"
            ),
            Err(error) => tracing::debug!(%error, "the health of a tool could not be recorded"),
        }
    }
}

#[async_trait]
impl Tool for HealthTool {
    fn definition(&self) -> &ToolDefinition {
        self.tool.definition()
    }

    async fn call(&self, arguments: Arguments, context: &ToolContext) -> Result<ToolResult, ToolError> {
        let answer = self.tool.call(arguments, context).await;
        let error = match &answer {
            Ok(_) => None,
            Err(ToolError::Model(error) | ToolError::Operator(error)) => Some(error),
        };
        self.record(error).await;
        answer
    }

    fn decorated_tool(&self) -> Option<&Arc<dyn Tool>> {
        Some(&self.tool)
    }

    fn serial_group(&self) -> Option<u64> {
        self.tool.serial_group()
    }
}
