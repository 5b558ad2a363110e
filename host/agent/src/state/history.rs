//! The messages of a conversation.

use std::collections::HashSet;

use super::call_ids::CallIds;
use crate::journal::{CompactionPlan, compact, pin_last_user_message};
use toolwit_core::{Error, ErrorKind, Phase};
use toolwit_core::{Message, Picture, ProviderBlock, Role, ToolCall};

/// The messages of a conversation. Every call has a unique id, and at most one answer.
///
/// Only the calls of the last response may have no answer. [`History::answer_open_calls`] answers them with an error.
#[derive(Default)]
pub(crate) struct History {
    messages: Vec<Message>,
    /// The unanswered calls of the last response.
    open_calls: Vec<ToolCall>,
    ids: CallIds,
}

impl History {
    /// Continues an earlier history. Unanswered calls are answered as cancelled.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] if two calls have the same id, or an answer does not belong to an unanswered call.
    pub(crate) fn resume(messages: Vec<Message>, ids: CallIds) -> Result<Self, Error> {
        let mut history = Self::with_open_calls(messages, ids)?;
        history.answer_open_calls(&cancelled_call());
        Ok(history)
    }

    /// Continues an earlier history. If only answers follow the last message with calls, its unanswered calls remain
    /// unanswered. All other unanswered calls are answered as cancelled.
    ///
    /// # Errors
    /// As [`resume`](History::resume).
    pub(crate) fn with_open_calls(messages: Vec<Message>, ids: CallIds) -> Result<Self, Error> {
        let mut history = Self::default();
        let mut call_ids = HashSet::new();
        for message in messages {
            match &message.role {
                Role::Tool { tool_call_id, .. } => {
                    let Some(position) = history.open_calls.iter().position(|call| call.id == *tool_call_id) else {
                        return Err(invalid_history(format!(
                            "the answer to `{tool_call_id}` does not belong to an unanswered call"
                        )));
                    };
                    history.open_calls.remove(position);
                }
                Role::Assistant { tool_calls, .. } => {
                    history.answer_open_calls(&cancelled_call());
                    for call in tool_calls {
                        if !call_ids.insert(call.id.clone()) {
                            return Err(invalid_history(format!("two calls have the id `{}`", call.id)));
                        }
                    }
                    history.open_calls.clone_from(tool_calls);
                }
                _ => {
                    history.answer_open_calls(&cancelled_call());
                }
            }
            history.messages.push(message);
        }
        ids.claim_all(&call_ids);
        history.ids = ids;
        Ok(history)
    }

    pub(crate) fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Returns the role and the text of each message, for the digest of a request. The role of a response includes its
    /// calls. The times of the messages are omitted.
    pub(crate) fn roles_and_texts(&self) -> Vec<(&Role, &str)> {
        let messages = self.messages.iter();
        messages.map(|message| (&message.role, message.content())).collect()
    }

    /// Returns whether a message of the history calls a tool.
    pub(crate) fn has_calls(&self) -> bool {
        self.messages.iter().any(|message| !message.tool_calls().is_empty())
    }

    /// Sets the system message. Replaces an earlier system message.
    pub(crate) fn set_system(&mut self, instructions: String) {
        let message = Message::system(instructions);
        match self.messages.first_mut() {
            Some(first) if matches!(first.role, Role::System { .. }) => *first = message,
            _ => self.messages.insert(0, message),
        }
    }

    /// Appends text to the last message if it is a user message.
    pub(crate) fn append_to_prompt(&mut self, text: &str) {
        if let Some(Message {
            role: Role::User { content },
            ..
        }) = self.messages.last_mut()
        {
            content.push_str(text);
        }
    }

    /// Appends a message. Unanswered calls before it are answered as cancelled.
    pub(crate) fn append(&mut self, message: Message) {
        self.answer_open_calls(&cancelled_call());
        self.messages.push(message);
    }

    /// Returns a unique id for a call: the requested one, or a generated id if the requested id is empty, too long or
    /// taken.
    pub(crate) fn claim_id(&self, requested: &str) -> String {
        self.ids.claim(requested)
    }

    /// Appends a response of the model. The ids of its calls must have been [claimed](History::claim_id).
    pub(crate) fn append_response(&mut self, content: String, calls: Vec<ToolCall>, blocks: Vec<ProviderBlock>) {
        self.answer_open_calls(&cancelled_call());
        self.open_calls.clone_from(&calls);
        self.messages
            .push(Message::assistant(content, calls).with_blocks(blocks));
    }

    /// Appends the answer to a call.
    pub(crate) fn answer(&mut self, call: &ToolCall, content: String, is_error: bool) {
        self.open_calls.retain(|open_call| open_call.id != call.id);
        self.messages.push(Message::tool(call, content, is_error));
    }

    /// Replaces the text of the last message if it is the answer to a call.
    pub(crate) fn replace_last_answer(&mut self, text: &str) {
        if let Some(Message {
            role: Role::Tool { content, .. },
            ..
        }) = self.messages.last_mut()
        {
            text.clone_into(content);
        }
    }

    /// Adds pictures to the last message if it is a user message or the answer to a call.
    pub(crate) fn attach_pictures(&mut self, pictures: Vec<Picture>) {
        if let Some(last) = self.messages.last_mut()
            && matches!(last.role, Role::User { .. } | Role::Tool { .. })
        {
            last.pictures.extend(pictures);
        }
    }

    /// Replaces the older messages of the plan by a summary, except for the pinned ones.
    pub(crate) fn compact(&mut self, plan: &CompactionPlan, summary: &str) {
        self.answer_open_calls(&cancelled_call());
        self.messages = compact(&self.messages, plan, summary);
    }

    /// Pins the last message that the user wrote, so that a compaction keeps it. Returns its text, or `None` if the user
    /// wrote no message.
    pub(crate) fn pin_last_user_message(&mut self) -> Option<&str> {
        pin_last_user_message(&mut self.messages)
    }

    /// Removes all messages, for a conversation without a model.
    pub(crate) fn clear(&mut self) {
        self.messages.clear();
        self.open_calls.clear();
    }

    /// Answers every unanswered call with an error. Returns whether a call was unanswered.
    pub(crate) fn answer_open_calls(&mut self, error: &Error) -> bool {
        let open_calls = std::mem::take(&mut self.open_calls);
        for call in &open_calls {
            self.messages.push(Message::tool(call, error_text(error), true));
        }
        !open_calls.is_empty()
    }
}

/// Returns the JSON of an error. The model reads errors in this form.
pub(crate) fn error_text(error: &Error) -> String {
    serde_json::to_string(error).unwrap_or_else(|_| error.to_string())
}

/// Returns the error for a call that was cancelled and that may have taken effect before.
pub(crate) fn cancelled_call() -> Error {
    Error::new(
        ErrorKind::Cancelled,
        Phase::Execute,
        "the call was cancelled; it may have taken effect",
    )
}

fn invalid_history(message: String) -> Error {
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
    fn missing_duplicate_and_oversized_ids_are_replaced() {
        let history = History::default();
        let requested_ids = ["a", "a", "", "call_2", &"x".repeat(1000)];
        let ids: Vec<_> = requested_ids.iter().map(|id| history.claim_id(id)).collect();
        assert_eq!(ids, ["a", "call_1", "call_2", "call_3", "call_4"]);
    }

    // accept: 133
    #[test]
    fn unanswered_calls_of_a_resumed_history_are_answered_as_cancelled() {
        let messages = vec![
            Message::user("hi"),
            Message::assistant("", vec![call("a"), call("b")]),
            Message::tool(&call("a"), "fine", false),
            Message::user("still there?"),
            Message::assistant("", vec![call("c")]),
        ];
        let history = History::resume(messages, CallIds::default()).unwrap();
        let is_cancelled: Vec<_> = history
            .messages()
            .iter()
            .map(|message| message.content().contains("may have taken effect"))
            .collect();
        assert_eq!(is_cancelled, [false, false, false, true, false, false, true]);
    }

    #[test]
    fn stray_answers_and_duplicate_ids_are_refused() {
        let stray = vec![Message::tool(&call("a"), "fine", false)];
        assert!(History::resume(stray, CallIds::default()).is_err());
        let duplicate = vec![Message::assistant("", vec![call("a"), call("a")])];
        assert!(History::resume(duplicate, CallIds::default()).is_err());
    }
}
