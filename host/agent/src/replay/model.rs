//! The model of a replay.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use async_trait::async_trait;

use super::divergence_check::DivergenceCheck;
use super::recording::Recording;
use crate::model::{ChatModel, ChatRequest, ChatResponse, ModelError};

/// The model of a replay. It returns the recorded responses, in order. From the fork on, another answer and another model take
/// precedence.
pub(super) struct RecordedModel {
    pub(super) recording: Arc<Recording>,
    pub(super) name: String,
    /// The number of the event from which on the other answer and the other model take precedence.
    pub(super) fork: Option<u64>,
    /// The other answer: the text of the first response after the fork.
    pub(super) answer: Option<String>,
    /// The other model, which responds after the fork.
    pub(super) continuation: Option<Arc<dyn ChatModel>>,
    /// The index of the next recorded response.
    next_index: AtomicUsize,
    is_answer_used: AtomicBool,
    /// Whether the fork was passed.
    pub(super) is_live: Arc<AtomicBool>,
    pub(super) check: Arc<DivergenceCheck>,
}

impl RecordedModel {
    pub(super) fn new(recording: Arc<Recording>, fork: Option<u64>) -> Self {
        let is_live: Arc<AtomicBool> = Arc::default();
        Self {
            name: recording.model().unwrap_or("recorded").to_owned(),
            check: Arc::new(DivergenceCheck::new(recording.clone(), fork, is_live.clone())),
            recording,
            fork,
            answer: None,
            continuation: None,
            next_index: AtomicUsize::new(0),
            is_answer_used: AtomicBool::new(false),
            is_live,
        }
    }

    /// Returns whether a response comes at the fork or after it. `sequence` is the number of its event; `None` if the trace
    /// does not have the response.
    fn is_past_fork(&self, sequence: Option<u64>) -> bool {
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
        // Recorded responses do not depend on the delivery.
        true
    }

    async fn chat(&self, request: ChatRequest<'_>) -> Result<ChatResponse, ModelError> {
        let number = self.next_index.fetch_add(1, Ordering::Relaxed);
        let recorded = self.recording.answers.get(number);
        if self.is_past_fork(recorded.map(|answer| answer.sequence)) {
            self.is_live.store(true, Ordering::Relaxed);
            if let Some(answer) = self
                .answer
                .as_ref()
                .filter(|_| !self.is_answer_used.swap(true, Ordering::Relaxed))
            {
                return Ok(ChatResponse::new(answer.clone(), Vec::new()));
            }
            if let Some(model) = &self.continuation {
                return model.chat(request).await;
            }
        }
        self.check
            .check_request(recorded.and_then(|answer| answer.request.as_ref()), &request);
        if let Some(divergence) = self.check.divergence() {
            return Err(ModelError::Diverged {
                message: divergence.to_string(),
            });
        }
        let Some(answer) = recorded else {
            let responses = self.recording.answers.len();
            let message = format!("the trace has {responses} responses of the model, and the replay needs another one");
            return Err(ModelError::Diverged { message });
        };
        answer.response()
    }
}
