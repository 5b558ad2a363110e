//! The history of a conversation as a function of its events.

use super::compaction_plan::{CompactionPlan, compact, pin_last_prompt};
use crate::event::Event;
use toolwit_core::{Message, ToolCall};

/// Returns the messages of a conversation after these events, without the system message. Calls that were cancelled have
/// `cancelled_answer` as their answer. If the last run did not end, the unanswered calls of its last response stay open: they
/// have no answer in the messages.
pub(crate) fn messages<'a>(events: impl IntoIterator<Item = &'a Event>, cancelled_answer: &str) -> Vec<Message> {
    let mut history = HistoryBuilder {
        messages: Vec::new(),
        calls: Vec::new(),
        open_calls: Vec::new(),
        cancelled_answer,
    };
    for event in events {
        history.apply(event);
    }
    history.messages
}

struct HistoryBuilder<'a> {
    messages: Vec<Message>,
    /// All calls of the model's responses so far.
    calls: Vec<ToolCall>,
    /// The calls of the last response that have no answer.
    open_calls: Vec<ToolCall>,
    cancelled_answer: &'a str,
}

impl HistoryBuilder<'_> {
    fn apply(&mut self, event: &Event) {
        match event {
            Event::TurnStarted {
                prompt: Some(prompt), ..
            } => self.append(Message::user(prompt)),
            Event::PromptExtended { text } => {
                if let Some(last) = self.messages.last_mut() {
                    let extended = format!("{}{text}", last.content());
                    *last = Message::user(extended);
                }
            }
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
                ..
            } => self.answer_late(id, call, content, *is_error),
            Event::OpenCallsAnswered { content } => self.close_open_calls(content),
            Event::HistoryCompacted(event) => {
                let plan = CompactionPlan {
                    older_count: event.older,
                    pinned: event.pinned.clone(),
                };
                self.messages = compact(&self.messages, &plan, &event.summary);
            }
            Event::MessagePinned => drop(pin_last_prompt(&mut self.messages)),
            Event::AnsweredByTool { content } => self.append(Message::assistant(content, Vec::new())),
            Event::Finished { .. } => self.close_open_calls(self.cancelled_answer),
            _ => {}
        }
    }

    fn append(&mut self, message: Message) {
        self.close_open_calls(self.cancelled_answer);
        self.messages.push(message);
    }

    fn answer(&mut self, id: &str, content: &str, is_error: bool) {
        if let Some(position) = self.open_calls.iter().position(|call| call.id == id) {
            let call = self.open_calls.remove(position);
            self.messages.push(Message::tool(&call, content, is_error));
        }
    }

    /// Appends the late result of a background call, as the answer to a second call.
    fn answer_late(&mut self, id: &str, background_id: &str, content: &str, is_error: bool) {
        let Some(background) = self.calls.iter().find(|call| call.id == background_id) else {
            return;
        };
        let second = ToolCall {
            id: id.to_owned(),
            ..background.clone()
        };
        self.append(Message::assistant("", vec![second.clone()]));
        self.messages.push(Message::tool(&second, content, is_error));
    }

    /// Answers the open calls with an error.
    fn close_open_calls(&mut self, content: &str) {
        for call in std::mem::take(&mut self.open_calls) {
            self.messages.push(Message::tool(&call, content, true));
        }
    }
}
