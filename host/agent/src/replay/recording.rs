//! A recording: a parsed trace, for a replay.

use std::collections::HashMap;

use serde_json::Value;

use crate::event::{
    CompactedHistory, Event, RecordedApprovalDecision, RecordedOutcome, RecordedStart, TRACE_VERSION, TraceEntry,
};
use crate::model::{ChatResponse, FinishReason, ModelError, TokenUsage};
use crate::outcome::StopReason;
use crate::state::resolved_outcome;
use toolwit_core::{Error, ErrorKind, Phase, ProviderBlock, ToolCall, ToolId};

/// A parsed trace: its events, the responses of the model, and the calls and approval decisions by the ids of the calls.
/// The responses, calls and decisions of nested agents are omitted.
#[derive(Clone, Debug)]
pub struct Recording {
    entries: Vec<TraceEntry>,
    /// The responses in order, including the refusals of requests that exceed the context of the model.
    pub(super) responses: Vec<RecordedResponse>,
    pub(super) calls: HashMap<String, StoredCall>,
    pub(super) decisions: HashMap<String, RecordedApprovalDecision>,
}

/// The error of a trace that cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordingError {
    /// A line is not an event of a trace.
    #[error("line {line}: not an event of a trace: {reason}")]
    Line {
        /// The number of the line, from 1.
        line: usize,
        /// The reason.
        reason: String,
    },
    /// A line has a version of the trace format that is not supported.
    #[error("line {line}: version {version} of the trace format is not supported")]
    Version {
        /// The number of the line, from 1.
        line: usize,
        /// The version.
        version: u32,
    },
    /// The trace has no events.
    #[error("the trace has no events")]
    Empty,
}

impl From<RecordingError> for Error {
    fn from(error: RecordingError) -> Self {
        Self::new(ErrorKind::Configuration, Phase::Registry, error.to_string())
            .with_suggestion("record a run with a `Trace` observer")
    }
}

/// A response of the model, or the refusal of a request that exceeds the context of the model. If the request asked for
/// a summary of the history, `content` is the summary.
#[derive(Clone, Debug, Default)]
pub(super) struct RecordedResponse {
    /// The number of the event that records the response or the refusal.
    pub(super) sequence: u64,
    /// The digest of the answered request; `None` if the trace does not have it.
    pub(super) request: Option<RequestDigest>,
    content: String,
    reasoning: String,
    calls: Vec<ToolCall>,
    blocks: Vec<ProviderBlock>,
    finish: FinishReason,
    usage: TokenUsage,
    /// Whether the provider refused the request. Then there is no response.
    is_refused: bool,
    /// The reason why the run ended before the response was complete. `content` is then the text so far.
    interruption: Option<StopReason>,
}

/// The requests of a trace that have no response so far.
#[derive(Default)]
struct OpenRequests {
    /// The last request, and possibly an earlier request that the provider refused.
    digests: Vec<RequestDigest>,
    /// The text of the interrupted response.
    interrupted_text: String,
}

/// The digest of a request to the model.
#[derive(Clone, Debug)]
pub(super) struct RequestDigest {
    /// The number of the event that announces the request.
    pub(super) sequence: u64,
    pub(super) digest: String,
}

/// A call that started, as a [`Recording`] stores it under the call's id.
#[derive(Clone, Debug)]
pub(super) struct StoredCall {
    /// The number of the event that records the start.
    pub(super) sequence: u64,
    pub(super) tool: ToolId,
    /// The record of the start; `None` if the conversation had no journal.
    pub(super) start: Option<RecordedStart>,
    /// The outcome; `None` if the call did not end, or the conversation had no journal.
    pub(super) outcome: Option<RecordedOutcome>,
}

impl RecordedResponse {
    /// Creates the refusal of a request that exceeds the context of the model.
    fn refused(sequence: u64, request: Option<RequestDigest>) -> Self {
        Self {
            sequence,
            request,
            is_refused: true,
            ..Self::default()
        }
    }

    /// Returns the response, or an error if the request was refused or the response was interrupted. `emit_text` receives the
    /// text of an interrupted response.
    pub(super) fn to_result(&self, emit_text: impl FnOnce(&str)) -> Result<ChatResponse, ModelError> {
        if let Some(stop) = self.interruption {
            emit_text(&self.content);
            return Err(match stop {
                StopReason::Cancelled => ModelError::Cancelled,
                _ => ModelError::Malformed {
                    message: "the recorded response is not complete".to_owned(),
                },
            });
        }
        if self.is_refused {
            return Err(ModelError::ContextExceeded {
                status: 400,
                message: "the recorded request exceeded the context".to_owned(),
            });
        }
        Ok(ChatResponse {
            reasoning: self.reasoning.clone(),
            blocks: self.blocks.clone(),
            finish: self.finish.clone(),
            usage: self.usage,
            ..ChatResponse::new(self.content.clone(), self.calls.clone())
        })
    }
}

impl Recording {
    /// Parses the lines of a trace.
    ///
    /// # Errors
    /// [`RecordingError`] if a line is not an event or has an unsupported version, or if there are no events.
    pub fn parse(text: &str) -> Result<Self, RecordingError> {
        let mut entries = Vec::new();
        for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let line_number = index + 1;
            let entry: TraceEntry = serde_json::from_str(line).map_err(|error| RecordingError::Line {
                line: line_number,
                reason: error.to_string(),
            })?;
            if entry.version != TRACE_VERSION {
                return Err(RecordingError::Version {
                    line: line_number,
                    version: entry.version,
                });
            }
            entries.push(entry);
        }
        if entries.is_empty() {
            return Err(RecordingError::Empty);
        }
        Ok(Self::from_entries(entries))
    }

    fn from_entries(entries: Vec<TraceEntry>) -> Self {
        let mut recording = Self {
            entries: Vec::new(),
            responses: Vec::new(),
            calls: HashMap::new(),
            decisions: HashMap::new(),
        };
        let mut open_requests = OpenRequests::default();
        for entry in entries.iter().filter(|entry| entry.origin.parent_call.is_none()) {
            recording.index_event(entry, &mut open_requests);
        }
        recording.entries = entries;
        recording
    }

    /// Adds an event to the responses, calls or decisions.
    fn index_event(&mut self, entry: &TraceEntry, open_requests: &mut OpenRequests) {
        let digests = &mut open_requests.digests;
        match &entry.event {
            Event::ModelAsked { request, .. } => {
                digests.push(RequestDigest {
                    sequence: entry.sequence,
                    digest: request.clone(),
                });
            }
            Event::ModelAnswered {
                content,
                reasoning,
                tool_calls,
                requested,
                blocks,
                finish,
                usage,
                ..
            } => {
                // `requested` has the calls as the model wrote them. It is empty if `tool_calls` has the same calls.
                let calls = if requested.is_empty() { tool_calls } else { requested };
                self.responses.push(RecordedResponse {
                    sequence: entry.sequence,
                    request: digests.drain(..).next_back(),
                    content: content.clone(),
                    reasoning: reasoning.clone(),
                    calls: calls.clone(),
                    blocks: blocks.clone(),
                    finish: finish.clone(),
                    usage: *usage,
                    is_refused: false,
                    interruption: None,
                });
            }
            Event::AnswerInterrupted { content } => content.clone_into(&mut open_requests.interrupted_text),
            Event::Finished { stop, .. } => self.add_interruption(entry.sequence, *stop, open_requests),
            Event::HistoryCompacted(event) => self.add_compaction(entry.sequence, event, digests),
            Event::ToolStarted { id, tool, start, .. } => {
                let call = StoredCall {
                    sequence: entry.sequence,
                    tool: tool.clone(),
                    start: start.as_deref().cloned(),
                    outcome: None,
                };
                self.calls.insert(id.clone(), call);
            }
            Event::ToolReturned { id, outcome } => {
                if let Some(call) = self.calls.get_mut(id) {
                    call.outcome = Some((**outcome).clone());
                }
            }
            Event::CallResolved { id, resolution } => {
                if let Some(call) = self.calls.get_mut(id).filter(|call| call.outcome.is_none()) {
                    call.outcome = resolved_outcome(*resolution);
                }
            }
            Event::ApprovalDecided(decided) => {
                self.decisions.insert(decided.id.clone(), (**decided).clone());
            }
            _ => {}
        }
    }

    /// Adds the summary of a compaction, and the refusal of the request before it, if there was one. `digests` are those of the
    /// requests without a response.
    fn add_compaction(&mut self, sequence: u64, event: &CompactedHistory, digests: &mut Vec<RequestDigest>) {
        let summary_request = digests.pop();
        let refused_request = digests.drain(..).next_back();
        if event.is_after_refusal {
            self.responses
                .push(RecordedResponse::refused(sequence, refused_request));
        }
        self.responses.push(RecordedResponse {
            sequence,
            request: summary_request,
            content: event.summary.clone(),
            usage: event.usage,
            ..RecordedResponse::default()
        });
    }

    /// Adds the response to the last request of a run that ended with this reason before the response was complete.
    fn add_interruption(&mut self, sequence: u64, stop: StopReason, open_requests: &mut OpenRequests) {
        let OpenRequests {
            digests,
            interrupted_text,
        } = std::mem::take(open_requests);
        if let Some(request) = digests.into_iter().next_back() {
            self.responses.push(RecordedResponse {
                sequence,
                request: Some(request),
                content: interrupted_text,
                interruption: Some(stop),
                ..RecordedResponse::default()
            });
        }
    }

    /// Returns the events, in order.
    #[must_use]
    pub fn entries(&self) -> &[TraceEntry] {
        &self.entries
    }

    /// Returns the user message of each turn, in order; `None` for a turn that answered late results instead.
    #[must_use]
    pub fn prompts(&self) -> Vec<Option<&str>> {
        self.turns().map(|(prompt, _)| prompt).collect()
    }

    /// Returns the user message and the JSON Schema of the answer for each turn, in order.
    pub(crate) fn turns(&self) -> impl Iterator<Item = (Option<&str>, Option<&Value>)> {
        let conversation_entries = self.entries.iter().filter(|entry| entry.origin.parent_call.is_none());
        conversation_entries.filter_map(|entry| match &entry.event {
            Event::TurnStarted {
                prompt, answer_schema, ..
            } => Some((prompt.as_deref(), answer_schema.as_deref())),
            _ => None,
        })
    }

    /// Returns the time of the first event, in milliseconds since 1970 UTC.
    #[must_use]
    pub fn started_at_ms(&self) -> u64 {
        self.entries.first().map_or(0, |entry| entry.at_ms)
    }

    /// Returns the name of the model, if the trace has it.
    #[must_use]
    pub fn model(&self) -> Option<&str> {
        self.entries.iter().find_map(|entry| match &entry.event {
            Event::TraceStarted { model, .. } => Some(model.as_str()),
            _ => None,
        })
    }

    /// Returns the values of a setting with which the conversation was recorded; empty if it was not set.
    #[must_use]
    pub fn setting(&self, name: &str) -> &[String] {
        let values = self.entries.iter().find_map(|entry| match &entry.event {
            Event::TraceStarted { settings, .. } => settings.get(name),
            _ => None,
        });
        values.map_or(&[], Vec::as_slice)
    }

    /// Returns the calls that started, in order.
    #[must_use]
    pub fn calls(&self) -> Vec<RecordedCall<'_>> {
        let calls = self.calls.iter().map(|(id, call)| RecordedCall {
            sequence: call.sequence,
            id,
            tool: &call.tool,
            start: call.start.as_ref(),
            outcome: call.outcome.as_ref(),
        });
        let mut calls: Vec<_> = calls.collect();
        calls.sort_by_key(|call| call.sequence);
        calls
    }
}

/// A recorded call: its id, its tool, its start and its outcome.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct RecordedCall<'r> {
    /// The number of the event that records the start.
    pub sequence: u64,
    /// The id of the call.
    pub id: &'r str,
    /// The id of the tool.
    pub tool: &'r ToolId,
    /// The record of the start; `None` if the conversation had no journal.
    pub start: Option<&'r RecordedStart>,
    /// The outcome; `None` if the call did not end, or the conversation had no journal.
    pub outcome: Option<&'r RecordedOutcome>,
}
