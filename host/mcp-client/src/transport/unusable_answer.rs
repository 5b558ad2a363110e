//! Answers of a server that are not messages. They end their request at once, because no other answer will follow.

use std::collections::HashSet;

use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ErrorCode, ErrorData, JsonRpcError, JsonRpcMessage, RequestId,
    ServerJsonRpcMessage,
};
use serde_json::Value;

use super::failure_code::TRANSPORT_FAILED;
use super::message::{self, MessageError, without_byte_order_mark};
use super::nesting::without_deep_values;
use toolwit_core::limits::MCP_MESSAGE_DEPTH_MAX;

/// The requests of one connection that the server has not answered.
#[derive(Debug, Default)]
pub(super) struct UnansweredRequests(HashSet<RequestId>);

impl UnansweredRequests {
    /// Records a message that is sent to the server.
    pub(super) fn record_sent(&mut self, message: &ClientJsonRpcMessage) {
        match message {
            JsonRpcMessage::Request(request) => {
                self.0.insert(request.id.clone());
            }
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.0.remove(id);
                }
            }
            _ => {}
        }
    }

    /// Removes a request whose answer is not awaited.
    pub(super) fn forget(&mut self, id: &RequestId) {
        self.0.remove(id);
    }

    /// Records a message of the server. An error without an id answers the only request without an answer: the server could not
    /// read the id.
    pub(super) fn record_received(&mut self, message: &mut ServerJsonRpcMessage) {
        match message {
            JsonRpcMessage::Response(response) => {
                self.0.remove(&response.id);
            }
            JsonRpcMessage::Error(error) => {
                if error.id.is_none() {
                    error.id = self.only_request();
                }
                if let Some(id) = &error.id {
                    self.0.remove(id);
                }
            }
            _ => {}
        }
    }

    /// Returns the error that answers the request to which a text is an answer. `None` if the text answers no request, such as a
    /// line of a log.
    pub(super) fn answer_to(&mut self, text: &UnusableText) -> Option<ServerJsonRpcMessage> {
        let id = text.answered_request(self.only_request().as_ref());
        let id = id.filter(|id| self.0.remove(id))?;
        Some(unusable_answer(id, &text.error))
    }

    fn only_request(&self) -> Option<RequestId> {
        let mut requests = self.0.iter();
        requests.next().filter(|_| requests.next().is_none()).cloned()
    }
}

/// A text of the server that is not a message.
pub(super) struct UnusableText {
    pub(super) error: MessageError,
    /// The id in the text.
    id: Option<RequestId>,
    /// Whether the text is meant as an answer, and has no id, not even one that no request has.
    is_answer_without_id: bool,
}

impl UnusableText {
    pub(super) fn of(text: &[u8], error: MessageError) -> Self {
        let text = without_byte_order_mark(text);
        // A text of too many parts would take far more memory after it is parsed.
        let parsed = match error {
            MessageError::TooManyParts => None,
            _ => {
                let shallow = without_deep_values(text, MCP_MESSAGE_DEPTH_MAX);
                serde_json::from_slice(shallow.as_deref().unwrap_or(text)).ok()
            }
        };
        match parsed {
            Some(value @ Value::Object(_)) => Self::of_value(&value, error),
            Some(_) => Self::new(None, is_meant_as_message(text), error),
            None => {
                let is_request = member_at_root(text, "method").is_some();
                let id = member_at_root(text, "id").filter(|_| !is_request);
                Self::new(id, !is_request && is_meant_as_message(text), error)
            }
        }
    }

    /// Describes an object that is not a message. A request and a notification of the server answer no request, whatever their
    /// ids are.
    fn of_value(value: &Value, error: MessageError) -> Self {
        let is_answer = value.get("result").is_some() || value.get("error").is_some();
        let id = value.get("id").filter(|_| value.get("method").is_none());
        Self::new(id.cloned(), is_answer && value.get("method").is_none(), error)
    }

    fn new(id: Option<Value>, is_answer: bool, error: MessageError) -> Self {
        Self {
            error,
            is_answer_without_id: id.is_none() && is_answer,
            id: id.and_then(|id| serde_json::from_value(id).ok()),
        }
    }

    /// Returns the request to which the text is an answer: the one with its id, or else the only request without an answer.
    pub(super) fn answered_request(&self, only_request: Option<&RequestId>) -> Option<RequestId> {
        let only_request = || only_request.filter(|_| self.is_answer_without_id).cloned();
        self.id.clone().or_else(only_request)
    }
}

/// Parses a line of a server. Takes ownership of the line to free its memory before the message is deserialized.
///
/// # Errors
/// For a line that is not a message.
pub(super) fn parse_line(line: Vec<u8>) -> Result<ServerJsonRpcMessage, UnusableText> {
    let value = match message::parse_value(&line) {
        Ok(value) => value,
        Err(error) => return Err(UnusableText::of(&line, error)),
    };
    drop(line);
    let (id, is_request) = (value.get("id").cloned(), value.get("method").is_some());
    message::from_value(value).map_err(|error| UnusableText::new(id.filter(|_| !is_request), !is_request, error))
}

/// Returns the error that answers a request whose answer cannot be used.
pub(super) fn unusable_answer(id: RequestId, error: &MessageError) -> ServerJsonRpcMessage {
    let message = format!("the answer of the server cannot be used: {error}");
    let error = ErrorData::new(ErrorCode(TRANSPORT_FAILED), message, None);
    JsonRpcMessage::Error(JsonRpcError::new(Some(id), error))
}

/// Returns whether a text is meant as a message of the protocol, although it cannot be used as one.
fn is_meant_as_message(text: &[u8]) -> bool {
    const MARK: &[u8] = b"\"jsonrpc\"";
    text.windows(MARK.len()).any(|bytes| bytes == MARK)
}

/// Returns the simple value of a member of the outermost object of a text that is not valid JSON.
fn member_at_root(text: &[u8], name: &str) -> Option<Value> {
    let quoted = format!("\"{name}\"");
    let (mut depth, mut index) = (0_usize, 0);
    while let Some(byte) = text.get(index) {
        match byte {
            b'"' => {
                let end = string_end(text, index)?;
                if depth == 1 && text.get(index..end) == Some(quoted.as_bytes()) {
                    let rest = text.get(end..)?.trim_ascii_start();
                    if let Some(value) = rest.strip_prefix(b":") {
                        return simple_value(value.trim_ascii_start());
                    }
                }
                index = end;
                continue;
            }
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        index += 1;
    }
    None
}

/// Returns the position after the string that starts at a position.
fn string_end(text: &[u8], start: usize) -> Option<usize> {
    let mut index = start + 1;
    loop {
        match text.get(index)? {
            b'"' => return Some(index + 1),
            b'\\' => index += 2,
            _ => index += 1,
        }
    }
}

/// Parses the string or the number at the start of a text.
fn simple_value(text: &[u8]) -> Option<Value> {
    let end = match text.first()? {
        b'"' => string_end(text, 0)?,
        _ => text.iter().position(|byte| !byte.is_ascii_digit() && *byte != b'-')?,
    };
    serde_json::from_slice(text.get(..end)?).ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn id(text: &str) -> Option<RequestId> {
        let only_request = RequestId::Number(1);
        let error = MessageError::TooDeep;
        UnusableText::of(text.as_bytes(), error).answered_request(Some(&only_request))
    }

    #[test]
    fn the_id_of_an_answer_is_found_although_it_is_not_json() {
        for text in [
            r#"{"jsonrpc": "2.0", "id": 7, "result": {"n": NaN}}"#,
            r#"{"result": {"id": 3, "text": "\"id\": 5"}, "id": 7, "jsonrpc": "2.0""#,
            "\u{feff}{\"id\": 7}",
            &format!(r#"{{"id": 7, "result": {}"#, "[".repeat(500)),
        ] {
            assert_eq!(id(text), Some(RequestId::Number(7)), "{text}");
        }
        assert_eq!(id(r#"{"id": "a", "result": NaN}"#), Some(RequestId::String("a".into())));
        for text in [
            "",
            "7",
            "[7]",
            r#"{"level": 30, "msg": "listening"}"#,
            r#"{"jsonrpc": "2.0", "params": {}}"#,
            r#"{"jsonrpc": "2.0", "id": 7, "method": "ping", "params": NaN}"#,
            r#"{"jsonrpc": "2.0", "id": 7, "method": "ping"}"#,
            r#"{"jsonrpc": "2.0", "id": null, "result": {}}"#,
            r#"{"jsonrpc": "2.0", "id": 1.5, "result": {}}"#,
        ] {
            assert_eq!(id(text), None, "{text}");
        }
        for text in [
            r#"{"jsonrpc": "2.0", "id": "#,
            r#"  "jsonrpc": "2.0","#,
            r#"{"jsonrpc": "2.0", "result": {"id": 7"#,
        ] {
            assert_eq!(id(text), Some(RequestId::Number(1)), "{text}");
        }
    }
}
