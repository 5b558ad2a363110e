//! A plugin's tool, whose success or failure is remembered.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use async_trait::async_trait;

use super::catalog::HealthBoost;
use super::health::{check_outcome, now_ms};
use super::view::Newest;
use crate::store::{CheckOutcome, Store, ToolKey};
use toolwit_core::Error;
use toolwit_core::{Arguments, Tool, ToolContext, ToolDefinition, ToolError, ToolResult};

/// What was last remembered of a tool; calls that change nothing about it cost nothing.
const NOTHING: u8 = 0;
const SUCCESS: u8 = 1;
const FAILURE: u8 = 2;

/// Remembers how the calls of a tool end: each change from working to failing and back, once a conversation.
pub(super) struct HealthTool {
    tool: Arc<dyn Tool>,
    key: ToolKey,
    store: Arc<dyn Store>,
    newest: Arc<Newest>,
    remembered: AtomicU8,
}

impl HealthTool {
    /// Watches a tool of a component with this digest.
    pub(super) fn new(tool: Arc<dyn Tool>, digest: &str, store: Arc<dyn Store>, newest: Arc<Newest>) -> Self {
        Self {
            key: ToolKey::new(digest, tool.definition().id.as_str()),
            tool,
            store,
            newest,
            remembered: AtomicU8::new(NOTHING),
        }
    }

    async fn remember(&self, error: Option<&Error>) {
        let Some((stage, outcome)) = check_outcome(error) else {
            return;
        };
        let now = if outcome == CheckOutcome::Success {
            SUCCESS
        } else {
            FAILURE
        };
        if self.remembered.swap(now, Ordering::Relaxed) == now {
            return;
        }
        let boost = match outcome {
            CheckOutcome::Success => HealthBoost::Healthy,
            CheckOutcome::Failure(_) => HealthBoost::Broken,
        };
        self.newest.note(&self.key, boost);
        let (store, key) = (self.store.clone(), self.key.clone());
        let record = move || store.record_check(&key, stage, &outcome, now_ms());
        match tokio::task::spawn_blocking(record).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(
                error = &error as &dyn std::error::Error,
                "health could not be remembered"
            ),
            Err(error) => tracing::debug!(%error, "health could not be remembered"),
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
        self.remember(error).await;
        answer
    }

    fn decorated_tool(&self) -> Option<&Arc<dyn Tool>> {
        Some(&self.tool)
    }

    fn serial_group(&self) -> Option<u64> {
        self.tool.serial_group()
    }
}
