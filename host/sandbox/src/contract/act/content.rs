//! The events of a call, as the result of a tool.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::types::{ActError, ContentPart, ToolEvent};
use crate::contract::{cbor, reason};
use toolwit_core::limits::{ARTIFACT_WEIGHT_MAX, ByteCount};
use toolwit_core::text::{json_weight, parse_json, printable};
use toolwit_core::{Artifact, Error, ErrorKind, Phase, ToolResult};

/// The maximum length of a media type in a text, in characters.
const MEDIA_TYPE_CHARS_MAX: usize = 100;

/// The media type of content without one.
const BYTES: &str = "application/octet-stream";

/// The kind of an error about a session that does not exist.
const SESSION_NOT_FOUND: &str = "std:session-not-found";

/// Converts the events of a call. An error event makes the result a failure, which includes the content before the
/// error.
///
/// # Errors
/// The error of ACT if it has a corresponding error kind and no content came before it, and [`ErrorKind::Tool`] for
/// content that does not have the format of its media type.
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

/// The content of a result so far.
#[derive(Default)]
struct CallContent {
    pieces: Vec<Piece>,
    artifacts: Vec<Artifact>,
}

enum Piece {
    Text(String),
    Value(Value),
}

impl CallContent {
    fn add(&mut self, part: ContentPart) -> Result<(), Error> {
        let media_type = part.mime_type.as_deref().unwrap_or(BYTES);
        let essence = media_type
            .split(';')
            .next()
            .unwrap_or_default()
            .trim()
            .to_ascii_lowercase();
        let piece = match essence.as_str() {
            "application/cbor" => {
                Piece::Value(cbor::decode(&part.data).map_err(|error| unreadable(&error.to_string()))?)
            }
            "application/json" => Piece::Value(json(&part.data)?),
            _ if essence.starts_with("text/") => match String::from_utf8(part.data) {
                Ok(text) => Piece::Text(text),
                Err(error) => self.binary(&essence, error.as_bytes()),
            },
            _ => self.binary(&essence, &part.data),
        };
        self.pieces.push(piece);
        Ok(())
    }

    /// Adds bytes as an artifact. Returns a text for the model, which has only the type and the size of the bytes.
    fn binary(&mut self, media_type: &str, data: &[u8]) -> Piece {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "/+-.".contains(c);
        let is_media_type = media_type.len() <= MEDIA_TYPE_CHARS_MAX && media_type.chars().all(is_plain);
        let kind = if is_media_type { media_type } else { BYTES };
        self.artifacts
            .push(Artifact::new(kind, json!({"data": STANDARD.encode(data)})));
        Piece::Text(format!("[{kind}, {}]", ByteCount(data.len() as u64)))
    }

    fn into_result(mut self) -> ToolResult {
        let mut result = match (self.pieces.pop(), self.pieces.is_empty()) {
            (None, _) => ToolResult::value(Value::Null),
            (Some(Piece::Value(value)), true) => ToolResult::value(value),
            (Some(last), _) => {
                self.pieces.push(last);
                ToolResult::text(self.text())
            }
        };
        result.artifacts = self.artifacts;
        result
    }

    fn text(&self) -> String {
        let texts = self.pieces.iter().map(|piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Value(value) => value.to_string(),
        });
        texts.collect::<Vec<_>>().join("\n")
    }

    fn into_failure(mut self, error: ActError) -> Result<ToolResult, Error> {
        let message = reason(&error.message.into_text());
        let kind = match error.kind.as_str() {
            "std:invalid-args" => Some(ErrorKind::InvalidArguments),
            "std:not-found" => Some(ErrorKind::ToolUnavailable),
            "std:capability-denied" => Some(ErrorKind::Denied),
            _ => None,
        };
        if error.kind == SESSION_NOT_FOUND && self.pieces.is_empty() {
            return Err(without_session(&message));
        }
        if let Some(kind) = kind.filter(|_| self.pieces.is_empty()) {
            return Err(Error::new(kind, Phase::Execute, message));
        }
        let kind: String = printable(&error.kind).chars().take(MEDIA_TYPE_CHARS_MAX).collect();
        self.pieces.push(Piece::Text(message.clone()));
        let mut failed = ToolResult::error(self.text());
        failed.value = Some(json!({"kind": kind, "message": message}));
        failed.artifacts = self.artifacts;
        Ok(failed)
    }
}

/// Returns the error of a tool that needs a session, which no call of this host has.
fn without_session(reason: &str) -> Error {
    let message = format!("the tool needs a session of ACT, which this host does not support: {reason}");
    Error::new(ErrorKind::Unsupported, Phase::Execute, message)
        .with_suggestion("use tools that need no session, or run the component in a host of ACT")
}

fn json(data: &[u8]) -> Result<Value, Error> {
    if json_weight(data) > ARTIFACT_WEIGHT_MAX {
        return Err(unreadable("its JSON has too many parts"));
    }
    let text = std::str::from_utf8(data).map_err(|error| unreadable(&format!("it is not text: {error}")))?;
    parse_json(text).map_err(|error| unreadable(&format!("it is not JSON: {error}")))
}

fn unreadable(why: &str) -> Error {
    let message = format!("the tool returned content that cannot be read: {why}");
    Error::new(ErrorKind::Tool, Phase::Execute, message).with_suggestion("report it to the author of the plugin")
}
