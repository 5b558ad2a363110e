//! Conversion of the events of a call to the result of a tool.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::types::{ActError, ContentPart, ToolEvent};
use crate::contract::{cbor, printable_reason};
use toolwit_core::limits::{ARTIFACT_WEIGHT_MAX, ByteCount};
use toolwit_core::text::{json_weight, parse_json, printable};
use toolwit_core::{Artifact, Error, ErrorKind, Phase, ToolResult};

/// The maximum length of a media type or of an error kind, in characters.
const LABEL_CHARS_MAX: usize = 100;

/// The media type of content that has none, or an invalid one.
const DEFAULT_MEDIA_TYPE: &str = "application/octet-stream";

/// The error kind of ACT for a session that does not exist.
const SESSION_NOT_FOUND: &str = "std:session-not-found";

/// Converts the events of a call. An error event makes the result a failed result, which includes the content before
/// the error.
///
/// # Errors
/// [`ErrorKind::Tool`] for JSON or CBOR that is invalid or too large. An error event is also returned as an error if its
/// kind has a corresponding [`ErrorKind`] and no content precedes the event.
pub(crate) fn tool_result(events: Vec<ToolEvent>) -> Result<ToolResult, Error> {
    let mut content = CallContent::default();
    for event in events {
        match event {
            ToolEvent::Content(part) => content.add(part)?,
            ToolEvent::Error(error) => return content.into_failure(error),
        }
    }
    Ok(content.into_result())
}

/// The converted content of the events before the current one.
#[derive(Default)]
struct CallContent {
    pieces: Vec<Piece>,
    artifacts: Vec<Artifact>,
}

/// A piece of the text that the model reads.
enum Piece {
    Text(String),
    Value(Value),
}

impl CallContent {
    fn add(&mut self, part: ContentPart) -> Result<(), Error> {
        let media_type = part.mime_type.as_deref().unwrap_or(DEFAULT_MEDIA_TYPE);
        let essence = media_type
            .split(';')
            .next()
            .unwrap_or_default()
            .trim()
            .to_ascii_lowercase();
        let piece = match essence.as_str() {
            "application/cbor" => {
                Piece::Value(cbor::decode(&part.data).map_err(|error| unreadable_content(&error.to_string()))?)
            }
            "application/json" => Piece::Value(parse_json_content(&part.data)?),
            _ if essence.starts_with("text/") => match String::from_utf8(part.data) {
                Ok(text) => Piece::Text(text),
                Err(error) => self.add_binary(&essence, error.as_bytes()),
            },
            _ => self.add_binary(&essence, &part.data),
        };
        self.pieces.push(piece);
        Ok(())
    }

    /// Adds bytes as an artifact. Returns a text for the model with the media type and the size of the bytes.
    fn add_binary(&mut self, media_type: &str, data: &[u8]) -> Piece {
        let is_media_type_char = |c: char| c.is_ascii_alphanumeric() || "/+-.".contains(c);
        let is_media_type = media_type.len() <= LABEL_CHARS_MAX && media_type.chars().all(is_media_type_char);
        let kind = if is_media_type { media_type } else { DEFAULT_MEDIA_TYPE };
        self.artifacts
            .push(Artifact::new(kind, json!({"data": STANDARD.encode(data)})));
        Piece::Text(format!("[{kind}, {}]", ByteCount(data.len() as u64)))
    }

    /// Returns the result of a call without an error event. A single JSON or CBOR value becomes the value of the result.
    /// Without content, the value is null. Any other content becomes text.
    fn into_result(mut self) -> ToolResult {
        let mut result = match (self.pieces.pop(), self.pieces.is_empty()) {
            (None, _) => ToolResult::value(Value::Null),
            (Some(Piece::Value(value)), true) => ToolResult::value(value),
            (Some(last), _) => {
                self.pieces.push(last);
                ToolResult::text(self.joined_text())
            }
        };
        result.artifacts = self.artifacts;
        result
    }

    fn joined_text(&self) -> String {
        let texts = self.pieces.iter().map(|piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Value(value) => value.to_string(),
        });
        texts.collect::<Vec<_>>().join("\n")
    }

    /// Returns the outcome of a call that ended with an error event: an error if the kind of the event has a
    /// corresponding [`ErrorKind`] and there is no content, and otherwise a failed result.
    fn into_failure(mut self, error: ActError) -> Result<ToolResult, Error> {
        let message = printable_reason(&error.message.into_text());
        let error_kind = match error.kind.as_str() {
            "std:invalid-args" => Some(ErrorKind::InvalidArguments),
            "std:not-found" => Some(ErrorKind::ToolUnavailable),
            "std:capability-denied" => Some(ErrorKind::Denied),
            _ => None,
        };
        if error.kind == SESSION_NOT_FOUND && self.pieces.is_empty() {
            return Err(session_required(&message));
        }
        if let Some(error_kind) = error_kind.filter(|_| self.pieces.is_empty()) {
            return Err(Error::new(error_kind, Phase::Execute, message));
        }
        let kind: String = printable(&error.kind).chars().take(LABEL_CHARS_MAX).collect();
        self.pieces.push(Piece::Text(message.clone()));
        let mut result = ToolResult::error(self.joined_text());
        result.value = Some(json!({"kind": kind, "message": message}));
        result.artifacts = self.artifacts;
        Ok(result)
    }
}

/// Creates the error for a tool that needs an ACT session. This host does not support ACT sessions.
fn session_required(reason: &str) -> Error {
    let message = format!("the tool needs a session of ACT, which this host does not support: {reason}");
    Error::new(ErrorKind::Unsupported, Phase::Execute, message)
        .with_suggestion("use tools that need no session, or run the component in a host of ACT")
}

/// Parses content of the media type `application/json`. Does not parse content whose value would take more than
/// [`ARTIFACT_WEIGHT_MAX`] bytes of memory, which [`json_weight`] estimates from the text.
fn parse_json_content(data: &[u8]) -> Result<Value, Error> {
    if json_weight(data) > ARTIFACT_WEIGHT_MAX {
        let memory_max = ByteCount(ARTIFACT_WEIGHT_MAX as u64);
        return Err(unreadable_content(&format!(
            "by an estimate, its JSON would take more than {memory_max} of memory when it is parsed"
        )));
    }
    let text = std::str::from_utf8(data).map_err(|error| unreadable_content(&format!("it is not UTF-8: {error}")))?;
    parse_json(text).map_err(|error| unreadable_content(&format!("it is not JSON: {error}")))
}

fn unreadable_content(why: &str) -> Error {
    let message = format!("the tool returned content that cannot be read: {why}");
    Error::new(ErrorKind::Tool, Phase::Execute, message).with_suggestion("report it to the author of the plugin")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn json_is_refused_by_its_estimated_memory() {
        let numbers = |count| format!("[{}]", vec!["1"; count].join(","));
        assert!(parse_json_content(numbers(100_000).as_bytes()).unwrap().is_array());
        let long_text = format!("\"{}\"", "a".repeat(ARTIFACT_WEIGHT_MAX));
        for too_large in [numbers(140_000), long_text] {
            let error = parse_json_content(too_large.as_bytes()).unwrap_err();
            let expected = "by an estimate, its JSON would take more than 16 MiB of memory";
            assert!(error.message.contains(expected), "{error}");
        }
    }
}
