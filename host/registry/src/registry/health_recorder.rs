//! A decorator that records the health and the uses of a tool.

use std::error::Error as StdError;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use async_trait::async_trait;
use tokio::runtime::Handle;

use super::CurrentSnapshot;
use crate::catalog::HealthSignal;
use crate::health::{health_check, is_use, now_ms};
use crate::store::{CallRecord, CheckOutcome, CheckStage, Store, ToolKey};
use toolwit_core::Error;
use toolwit_core::{Arguments, Tool, ToolContext, ToolDefinition, ToolError, ToolResult};

// The values of `HealthRecorder::written_health`.
const NOT_WRITTEN: u8 = 0;
const HEALTHY: u8 = 1;
const BROKEN: u8 = 2;

/// A decorator that records the health and the uses of a tool.
///
/// The search index of this process is updated immediately. The store is updated when the health changes, when the
/// number of uses reaches a power of two, and when a decorator with pending uses is dropped.
pub(super) struct HealthRecorder {
    tool: Arc<dyn Tool>,
    key: ToolKey,
    store: Arc<dyn Store>,
    current_snapshot: Arc<CurrentSnapshot>,
    /// The health that was written last: `NOT_WRITTEN`, `HEALTHY` or `BROKEN`. A call with the same health does not
    /// write it again.
    written_health: AtomicU8,
    /// All uses since the decorator was created.
    uses: AtomicU64,
    /// The uses that are not in the store yet.
    pending_uses: AtomicU64,
}

impl HealthRecorder {
    /// Wraps a tool of the component with this digest.
    pub(super) fn new(
        tool: Arc<dyn Tool>,
        digest: &str,
        store: Arc<dyn Store>,
        current_snapshot: Arc<CurrentSnapshot>,
    ) -> Self {
        Self {
            key: ToolKey::new(digest, tool.definition().id.as_str()),
            tool,
            store,
            current_snapshot,
            written_health: AtomicU8::new(NOT_WRITTEN),
            uses: AtomicU64::new(0),
            pending_uses: AtomicU64::new(0),
        }
    }

    /// Records the outcome of a call.
    async fn record(&self, outcome: Result<&ToolResult, &Error>) {
        // A call is a use if the tool itself returned a result or an error.
        let (check, is_use) = (health_check(outcome), is_use(outcome));
        let health = check.as_ref().map(|(_, success_or_failure)| match success_or_failure {
            CheckOutcome::Success => (HealthSignal::Healthy, HEALTHY),
            CheckOutcome::Failure(_) => (HealthSignal::Broken, BROKEN),
        });
        self.current_snapshot
            .record_call(&self.key, health.map(|(signal, _)| signal), is_use);
        let is_health_changed =
            health.is_some_and(|(_, code)| self.written_health.swap(code, Ordering::Relaxed) != code);
        if is_use {
            self.pending_uses.fetch_add(1, Ordering::Relaxed);
        }
        let must_write_uses = is_use && (self.uses.fetch_add(1, Ordering::Relaxed) + 1).is_power_of_two();
        if !is_health_changed && !must_write_uses {
            return;
        }
        let writer = self.writer(check);
        if let Err(error) = tokio::task::spawn_blocking(writer).await {
            tracing::debug!(%error, "a call could not be recorded");
        }
    }

    /// Takes the pending uses, and returns a blocking function that writes them and the check to the store.
    fn writer(&self, check: Option<(CheckStage, CheckOutcome)>) -> impl FnOnce() + Send + 'static {
        let (store, key) = (self.store.clone(), self.key.clone());
        let calls = CallRecord {
            uses: self.pending_uses.swap(0, Ordering::Relaxed),
            check,
            at_ms: now_ms(),
        };
        move || {
            if let Err(error) = store.record_calls(&key, &calls) {
                tracing::debug!(error = &error as &dyn StdError, "a call could not be recorded");
            }
        }
    }
}

/// Writes the pending uses.
impl Drop for HealthRecorder {
    fn drop(&mut self) {
        if self.pending_uses.load(Ordering::Relaxed) == 0 {
            return;
        }
        let writer = self.writer(None);
        match Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(writer)),
            Err(_) => writer(),
        }
    }
}

#[async_trait]
impl Tool for HealthRecorder {
    fn definition(&self) -> &ToolDefinition {
        self.tool.definition()
    }

    async fn call(&self, arguments: Arguments, context: &ToolContext) -> Result<ToolResult, ToolError> {
        let result = self.tool.call(arguments, context).await;
        let outcome = result.as_ref().map_err(|error| match error {
            ToolError::Model(error) | ToolError::Operator(error) => error,
        });
        self.record(outcome).await;
        result
    }

    fn inner_tool(&self) -> Option<&Arc<dyn Tool>> {
        Some(&self.tool)
    }

    fn serial_group(&self) -> Option<u64> {
        self.tool.serial_group()
    }

    fn serial_group_for(&self, arguments: &Arguments) -> Option<u64> {
        self.tool.serial_group_for(arguments)
    }
}
