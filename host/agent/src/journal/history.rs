//! The history of a conversation as a function of its recorded events.

use std::collections::HashMap;

use super::compaction_plan::{CompactionPlan, compact, pin_last_user_message};
use crate::event::{Event, RecordedArtifact, RecordedOutcome, RecordedPictures, TraceEntry};
use toolwit_core::limits::PICTURES_PER_MESSAGE_MAX;
use toolwit_core::{Artifact, Message, Picture, Role, ToolCall};

/// The text for a result whose picture was too large to be recorded.
const OMITTED_PICTURE: &str = "\n[a picture of this result was too large to be stored with the session]";

/// The mark after a text of the model whose run ended before the response was complete.
const INTERRUPTION_MARK: &str = "[interrupted]";

/// Returns the message for a response that was interrupted after this text.
pub(crate) fn interrupted_answer(text: &str) -> Message {
    Message::assistant(format!("{text}\n\n{INTERRUPTION_MARK}"), Vec::new())
}

/// Returns the messages of a conversation after these entries, with their times and without the system message. A call that had
/// no answer when the next message was appended or the run ended has the error `cancelled_answer` as its answer. If the last run
/// did not end, the unanswered calls of its last response have no answer in the messages.
pub(crate) fn messages<'a>(entries: impl IntoIterator<Item = &'a TraceEntry>, cancelled_answer: &str) -> Vec<Message> {
    let mut history = HistoryBuilder {
        messages: Vec::new(),
        calls: Vec::new(),
        open_calls: Vec::new(),
        pictures: RecordedPictures::default(),
        result_pictures: HashMap::new(),
        cancelled_answer,
    };
    for entry in entries {
        let message_count = history.messages.len();
        history.apply(&entry.event, entry.at_ms);
        let new_messages = history.messages.iter_mut().skip(message_count);
        new_messages.for_each(|message| message.timestamp_ms = entry.at_ms);
    }
    history.messages
}

struct HistoryBuilder<'a> {
    messages: Vec<Message>,
    /// All calls of the model's responses so far.
    calls: Vec<ToolCall>,
    /// The calls of the last response that have no answer.
    open_calls: Vec<ToolCall>,
    /// The pictures in the events so far.
    pictures: RecordedPictures,
    /// The pictures of the results that have not entered the history, by the id of the call, and a text about those whose data
    /// was not recorded.
    result_pictures: HashMap<String, (Vec<Picture>, &'static str)>,
    cancelled_answer: &'a str,
}

impl HistoryBuilder<'_> {
    /// Applies an event with this time. The caller sets the time of the messages that are appended.
    fn apply(&mut self, event: &Event, at_ms: u64) {
        match event {
            Event::TurnStarted {
                prompt: Some(prompt), ..
            } => self.append(Message::user(prompt)),
            Event::PromptExtended { text } => {
                if let Some(Role::User { content }) = self.messages.last_mut().map(|last| &mut last.role) {
                    content.push_str(text);
                }
            }
            Event::PicturesAttached(attached) => {
                let restored = self.pictures.restore(&attached.pictures);
                if let Some(last) = self.messages.last_mut() {
                    last.pictures.extend(restored);
                }
            }
            Event::ToolReturned { id, outcome } => self.record_result_pictures(id, outcome),
            Event::ModelAnswered {
                content,
                tool_calls,
                blocks,
                ..
            } => {
                let message = Message::assistant(content, tool_calls.clone()).with_blocks(blocks.clone());
                self.append(message);
                self.open_calls.clone_from(tool_calls);
                self.calls.extend(tool_calls.iter().cloned());
            }
            Event::ToolFinished {
                id, content, is_error, ..
            } => self.answer(id, content, *is_error),
            Event::CallRefused { id, content, .. } => self.answer(id, content, true),
            Event::CallGuided { id, content, .. } => self.answer(id, content, false),
            Event::LateResult {
                id,
                call,
                is_error,
                content,
                artifacts,
                ..
            } => {
                // The artifacts of late results are not recorded.
                let has_image = artifacts.iter().any(|kind| kind.starts_with("image"));
                let omission = if has_image { OMITTED_PICTURE } else { "" };
                self.answer_late(id, call, &format!("{content}{omission}"), *is_error);
            }
            Event::OpenCallsAnswered { content } => self.close_open_calls(content),
            Event::HistoryCompacted(compacted) => {
                let plan = CompactionPlan {
                    older_count: compacted.older,
                    pinned: compacted.pinned.clone(),
                };
                self.messages = compact(&self.messages, &plan, &compacted.summary);
                // The summary follows the pinned messages.
                if let Some(summary) = self.messages.get_mut(plan.pinned.len()) {
                    summary.timestamp_ms = at_ms;
                }
            }
            Event::MessagePinned => drop(pin_last_user_message(&mut self.messages)),
            Event::AnswerInterrupted { content } => self.append(interrupted_answer(content)),
            Event::AnsweredByTool { content } => self.append(Message::assistant(content, Vec::new())),
            Event::Finished { .. } => self.close_open_calls(self.cancelled_answer),
            _ => {}
        }
    }

    /// Answers the open calls as cancelled, and appends a message.
    fn append(&mut self, message: Message) {
        self.close_open_calls(self.cancelled_answer);
        self.messages.push(message);
    }

    /// Appends the answer to the open call with this id. Does nothing if there is no such call.
    fn answer(&mut self, id: &str, content: &str, is_error: bool) {
        if let Some(position) = self.open_calls.iter().position(|call| call.id == id) {
            let call = self.open_calls.remove(position);
            let (pictures, omission) = self.result_pictures.remove(id).unwrap_or_default();
            let message = Message::tool(&call, format!("{content}{omission}"), is_error);
            self.messages.push(message.with_pictures(pictures));
        }
    }

    /// Stores the pictures of a result until the result enters the history.
    fn record_result_pictures(&mut self, id: &str, outcome: &RecordedOutcome) {
        let is_omitted_image =
            |artifact: &RecordedArtifact| artifact.omitted.is_some() && artifact.kind.starts_with("image");
        let omission = if outcome.artifacts.iter().any(is_omitted_image) {
            OMITTED_PICTURE
        } else {
            ""
        };
        let images = outcome.artifacts.iter().filter_map(|artifact| {
            let artifact = Artifact::new(artifact.kind.clone(), artifact.value.clone());
            Picture::of_artifact(&artifact)?.ok()
        });
        let pictures: Vec<_> = images.take(PICTURES_PER_MESSAGE_MAX).collect();
        if !pictures.is_empty() || !omission.is_empty() {
            pictures.iter().for_each(|picture| self.pictures.add(picture));
            self.result_pictures.insert(id.to_owned(), (pictures, omission));
        }
    }

    /// Appends a copy of a background call under the new `id`, and the late result as the answer to the copy. The background
    /// call itself already has an answer.
    fn answer_late(&mut self, id: &str, background_id: &str, content: &str, is_error: bool) {
        let Some(background_call) = self.calls.iter().find(|call| call.id == background_id) else {
            return;
        };
        let copy = ToolCall {
            id: id.to_owned(),
            ..background_call.clone()
        };
        self.append(Message::assistant("", vec![copy.clone()]));
        self.messages.push(Message::tool(&copy, content, is_error));
    }

    /// Answers the open calls with the error text `content`.
    fn close_open_calls(&mut self, content: &str) {
        for call in std::mem::take(&mut self.open_calls) {
            self.messages.push(Message::tool(&call, content, true));
        }
    }
}
