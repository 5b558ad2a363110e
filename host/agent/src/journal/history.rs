//! The history of a conversation as a function of its events.

use super::compaction_plan::{CompactionPlan, compacted, pin_last_prompt};
use crate::event::Event;
use toolwit_core::{Message, ToolCall};

/// Returns the messages of a conversation after these events, without instructions. The calls of the last response that have no answer
/// stay open, unless the run ended. `interrupted` is the answer to calls that were cancelled.
pub(crate) fn messages<'a>(events: impl IntoIterator<Item = &'a Event>, interrupted: &str) -> Vec<Message> {
    let mut history = HistoryReplay {
        messages: Vec::new(),
        calls: Vec::new(),
        open: Vec::new(),
        interrupted,
    };
    for event in events {
        history.apply(event);
    }
    history.messages
}

struct HistoryReplay<'a> {
    messages: Vec<Message>,
    /// All calls so far.
    calls: Vec<ToolCall>,
    open: Vec<ToolCall>,
    interrupted: &'a str,
}

impl HistoryReplay<'_> {
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
                self.open.clone_from(tool_calls);
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
            Event::OpenCallsAnswered { content } => self.close(content),
            Event::HistoryCompacted(event) => {
                let plan = CompactionPlan {
                    older: event.older,
                    pinned: event.pinned.clone(),
                };
                self.messages = compacted(&self.messages, &plan, &event.summary);
            }
            Event::MessagePinned => drop(pin_last_prompt(&mut self.messages)),
            Event::AnsweredByTool { content } => self.append(Message::assistant(content, Vec::new())),
            Event::Finished { .. } => self.close(self.interrupted),
            _ => {}
        }
    }

    fn append(&mut self, message: Message) {
        self.close(self.interrupted);
        self.messages.push(message);
    }

    fn answer(&mut self, id: &str, content: &str, is_error: bool) {
        if let Some(at) = self.open.iter().position(|call| call.id == id) {
            let call = self.open.remove(at);
            self.messages.push(Message::tool(&call, content, is_error));
        }
    }

    fn answer_late(&mut self, id: &str, call: &str, content: &str, is_error: bool) {
        let Some(first) = self.calls.iter().find(|first| first.id == call) else {
            return;
        };
        let again = ToolCall {
            id: id.to_owned(),
            ..first.clone()
        };
        self.append(Message::assistant("", vec![again.clone()]));
        self.messages.push(Message::tool(&again, content, is_error));
    }

    fn close(&mut self, content: &str) {
        for call in std::mem::take(&mut self.open) {
            self.messages.push(Message::tool(&call, content, true));
        }
    }
}
