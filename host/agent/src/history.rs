//! What was said, always valid to continue.

use std::collections::HashSet;

use toolwit_core::{Error, ErrorKind, Phase};
use toolwit_core::{Message, Role, ToolCall};

/// The longest id of a call that is taken from a model, in bytes; a longer one is replaced.
const CALL_ID_BYTES_MAX: usize = 256;

/// The messages of a conversation, in which every call has an id of its own and exactly one answer.
///
/// Only the calls of the last response may still be open; [`close`](History::close) answers them.
#[derive(Default)]
pub(super) struct History {
    messages: Vec<Message>,
    open: Vec<ToolCall>,
    ids: HashSet<String>,
    numbered: u64,
}

impl History {
    /// Takes over what was said before. Calls that nobody answered are answered as cancelled.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] for an id that two calls have, and for an answer to no call.
    pub(super) fn resume(messages: Vec<Message>) -> Result<Self, Error> {
        let mut history = Self::default();
        for message in messages {
            match &message.role {
                Role::Tool { tool_call_id, .. } => {
                    let Some(at) = history.open.iter().position(|call| call.id == *tool_call_id) else {
                        return Err(broken(format!(
                            "there is an answer to `{tool_call_id}`, which no open call has"
                        )));
                    };
                    history.open.remove(at);
                }
                Role::Assistant { tool_calls, .. } => {
                    history.close(&interrupted());
                    for call in tool_calls {
                        if !history.ids.insert(call.id.clone()) {
                            return Err(broken(format!("two calls have the id `{}`", call.id)));
                        }
                    }
                    history.open.clone_from(tool_calls);
                }
                _ => history.close(&interrupted()),
            }
            history.messages.push(message);
        }
        history.close(&interrupted());
        Ok(history)
    }

    pub(super) fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Puts the application's instructions first, in place of those that are there.
    pub(super) fn instruct(&mut self, instructions: String) {
        let message = Message::system(instructions);
        match self.messages.first_mut() {
            Some(first) if matches!(first.role, Role::System { .. }) => *first = message,
            _ => self.messages.insert(0, message),
        }
    }

    /// Returns what was said up to the answer to a call, or everything when there is no such answer.
    pub(super) fn until_answer(&self, id: &str) -> &[Message] {
        let is_it = |message: &Message| matches!(&message.role, Role::Tool { tool_call_id, .. } if tool_call_id == id);
        match self.messages.iter().position(is_it) {
            Some(at) => &self.messages[..=at],
            None => &self.messages,
        }
    }

    /// Adds to what the person said last.
    pub(super) fn add_to_prompt(&mut self, text: &str) {
        if let Some(Message {
            role: Role::User { content },
            ..
        }) = self.messages.last_mut()
        {
            content.push_str(text);
        }
    }

    /// Adds what the application or the person says.
    pub(super) fn say(&mut self, message: Message) {
        self.close(&interrupted());
        self.messages.push(message);
    }

    /// Gives a call an id that no other of the conversation has: the model's own where it can be.
    pub(super) fn claim_id(&mut self, wanted: &str) -> String {
        let usable = !wanted.is_empty() && wanted.len() <= CALL_ID_BYTES_MAX;
        if usable && self.ids.insert(wanted.to_owned()) {
            return wanted.to_owned();
        }
        loop {
            self.numbered += 1;
            let id = format!("call_{}", self.numbered);
            if self.ids.insert(id.clone()) {
                return id;
            }
        }
    }

    /// Adds what the model said. The calls' ids are claimed before, and each waits for its answer.
    pub(super) fn respond(&mut self, content: String, calls: Vec<ToolCall>) {
        self.close(&interrupted());
        self.open.clone_from(&calls);
        self.messages.push(Message::assistant(content, calls));
    }

    /// Answers a call.
    pub(super) fn answer(&mut self, call: &ToolCall, content: String, is_error: bool) {
        self.open.retain(|open| open.id != call.id);
        self.messages.push(Message::tool(call, content, is_error));
    }

    /// Puts other words in the place of the answer that was given last, before anybody reads it.
    pub(super) fn amend(&mut self, told: &str) {
        if let Some(Message {
            role: Role::Tool { content, .. },
            ..
        }) = self.messages.last_mut()
        {
            told.clone_into(content);
        }
    }

    /// Answers with this error every call that has no answer yet.
    pub(super) fn close(&mut self, error: &Error) {
        for call in std::mem::take(&mut self.open) {
            self.messages.push(Message::tool(&call, told(error), true));
        }
    }
}

/// Writes an error as a model reads it: the report as JSON.
pub(super) fn told(error: &Error) -> String {
    serde_json::to_string(error).unwrap_or_else(|_| error.to_string())
}

/// What a call is answered of which nobody knows how far it came.
pub(super) fn interrupted() -> Error {
    Error::new(
        ErrorKind::Cancelled,
        Phase::Execute,
        "the call was cancelled; it may have taken effect",
    )
}

fn broken(message: String) -> Error {
    Error::new(
        ErrorKind::Configuration,
        Phase::Registry,
        format!("the history cannot be continued: {message}"),
    )
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn call(id: &str) -> ToolCall {
        ToolCall {
            id: id.to_owned(),
            name: "look".to_owned(),
            arguments: "{}".to_owned(),
        }
    }

    // attack: F9
    #[test]
    fn ids_that_are_missing_doubled_or_huge_are_replaced() {
        let mut history = History::default();
        let wanted = ["a", "a", "", "call_2", &"x".repeat(1000)];
        let ids: Vec<_> = wanted.iter().map(|id| history.claim_id(id)).collect();
        assert_eq!(ids, ["a", "call_1", "call_2", "call_3", "call_4"]);
    }

    // accept: 133
    #[test]
    fn a_history_that_broke_off_is_mended_when_it_is_taken_over() {
        let messages = vec![
            Message::user("hi"),
            Message::assistant("", vec![call("a"), call("b")]),
            Message::tool(&call("a"), "fine", false),
            Message::user("still there?"),
            Message::assistant("", vec![call("c")]),
        ];
        let history = History::resume(messages).unwrap();
        let roles: Vec<_> = history
            .messages()
            .iter()
            .map(|m| m.content().contains("may have taken effect"))
            .collect();
        assert_eq!(roles, [false, false, false, true, false, false, true]);
    }

    #[test]
    fn a_history_that_makes_no_sense_is_refused() {
        let stray = vec![Message::tool(&call("a"), "fine", false)];
        assert!(History::resume(stray).is_err());
        let doubled = vec![Message::assistant("", vec![call("a"), call("a")])];
        assert!(History::resume(doubled).is_err());
    }
}
