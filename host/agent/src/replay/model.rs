//! The model of a replay.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use async_trait::async_trait;

use super::divergence_check::DivergenceCheck;
use super::recording::Recording;
use crate::model::{ChatModel, ChatRequest, ChatResponse, ModelError};

/// The model of a replay. It returns the recorded responses, in order. From the fork on, `answer_after_fork` and
/// `continuation` take precedence, if they are set.
pub(super) struct RecordedModel {
    pub(super) recording: Arc<Recording>,
    pub(super) name: String,
    /// The number of the event at which the replay forks; `None` for a replay without a fork.
    pub(super) fork: Option<u64>,
    /// The text of the first response from the fork on; `None` if the response is not replaced.
    pub(super) answer_after_fork: Option<String>,
    /// The model that responds from the fork on; `None` to use the recorded responses.
    pub(super) continuation: Option<Arc<dyn ChatModel>>,
    /// The index of the next recorded response.
    next_index: AtomicUsize,
    /// Whether `answer_after_fork` was returned.
    is_answer_returned: AtomicBool,
    /// Whether this model was asked for a response at or after the fork.
    pub(super) has_passed_fork: Arc<AtomicBool>,
    pub(super) check: Arc<DivergenceCheck>,
}

impl RecordedModel {
    pub(super) fn new(recording: Arc<Recording>, fork: Option<u64>) -> Self {
        let has_passed_fork: Arc<AtomicBool> = Arc::default();
        Self {
            name: recording.model().unwrap_or("recorded").to_owned(),
            check: Arc::new(DivergenceCheck::new(recording.clone(), fork, has_passed_fork.clone())),
            recording,
            fork,
            answer_after_fork: None,
            continuation: None,
            next_index: AtomicUsize::new(0),
            is_answer_returned: AtomicBool::new(false),
            has_passed_fork,
        }
    }

    /// Returns whether a response comes at or after the fork. `sequence` is the number of the event of the response;
    /// `None` if the trace does not have the response.
    fn is_at_or_after_fork(&self, sequence: Option<u64>) -> bool {
        self.fork
            .is_some_and(|fork| sequence.is_none_or(|sequence| sequence >= fork))
    }
}

#[async_trait]
impl ChatModel for RecordedModel {
    fn name(&self) -> &str {
        &self.name
    }

    fn supports_deferred_tools(&self) -> bool {
        // The recorded responses do not depend on how the tools reach the model.
        true
    }

    async fn chat(&self, request: ChatRequest<'_>) -> Result<ChatResponse, ModelError> {
        let index = self.next_index.fetch_add(1, Ordering::Relaxed);
        let recorded = self.recording.responses.get(index);
        if self.is_at_or_after_fork(recorded.map(|response| response.sequence)) {
            self.has_passed_fork.store(true, Ordering::Relaxed);
            if let Some(answer) = self
                .answer_after_fork
                .as_ref()
                .filter(|_| !self.is_answer_returned.swap(true, Ordering::Relaxed))
            {
                return Ok(ChatResponse::new(answer.clone(), Vec::new()));
            }
            if let Some(model) = &self.continuation {
                return model.chat(request).await;
            }
        }
        self.check
            .check_request(recorded.and_then(|response| response.request.as_ref()), &request);
        if let Some(divergence) = self.check.divergence() {
            return Err(ModelError::Diverged {
                message: divergence.to_string(),
            });
        }
        let Some(response) = recorded else {
            let needed = index.saturating_add(1);
            let message = format!("the replay needs response {needed} of the model, which the trace does not have");
            return Err(ModelError::Diverged { message });
        };
        response.to_result(|text| request.emit_text(text))
    }
}
