//! A decoder of response bodies: JSON documents and streams of events.

use std::borrow::Cow;

use serde_json::{Deserializer, Value, json};

use super::event_decoder::{EventDecoder, EventText, OversizedEvent};
use super::surrogates::without_lone_surrogates;
use crate::http::AttemptFailure;
use toolwit_core::text::json_part_count;

/// The byte order mark in UTF-8. A body may start with it.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// The data of the event that ends a stream of the OpenAI API.
const END_MARK: &str = "[DONE]";

/// The maximum number of values and field names in a JSON body or in an event. Parsed values take up to a hundred times the memory
/// of their text. A usual response has a few thousand values.
const VALUES_MAX: usize = 256 << 10;

/// A part of a response body.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum BodyPart {
    /// A JSON document that is the complete body.
    Document(Value),
    /// One event of a stream.
    Event(Value),
    /// The end mark of a stream.
    End,
}

/// Decodes the body of a response, which arrives in pieces of any size.
///
/// The first character that is not white space determines the format: a JSON body starts with `{` or `[`, and any other body is a
/// stream of server-sent events. The content type is ignored: some servers send JSON with the type of a stream or a stream with
/// the type of JSON. If a JSON body consists of several documents or of an array, each document or element counts as an event.
#[derive(Debug)]
pub(crate) struct BodyDecoder {
    format: BodyFormat,
    /// The number of bytes of the body that have arrived.
    bytes_read: usize,
    /// The maximum size of a JSON body, and of each event of a stream.
    bytes_max: usize,
}

/// The format of a body, as far as it is known.
#[derive(Debug)]
enum BodyFormat {
    /// Only white space, and possibly the start of a byte order mark, has arrived. The bytes are those of the mark.
    Unknown(Vec<u8>),
    /// A JSON body, with its bytes that have arrived.
    Json(Vec<u8>),
    Events(EventDecoder),
}

impl BodyDecoder {
    /// Creates a decoder. `bytes_max` limits a JSON body, and each event of a stream.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self {
            format: BodyFormat::Unknown(Vec::new()),
            bytes_read: 0,
            bytes_max,
        }
    }

    /// Decodes a piece and returns the parts that it completes. A JSON body is decoded only at its end, by
    /// [`finish`](Self::finish).
    ///
    /// # Errors
    /// A JSON body or an event exceeds its maximum size, an event has too many values, or an event starts with `{` and is not
    /// valid JSON.
    pub(crate) fn push(&mut self, piece: &[u8]) -> Result<Vec<BodyPart>, AttemptFailure> {
        self.bytes_read += piece.len();
        let mut piece = Cow::Borrowed(piece);
        if let BodyFormat::Unknown(start) = &mut self.format {
            start.extend_from_slice(&piece);
            let text = start.trim_ascii_start();
            let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text).trim_ascii_start();
            let is_start_of_mark = BYTE_ORDER_MARK.starts_with(text);
            let format = match text.first() {
                Some(b'{' | b'[') => Some(BodyFormat::Json(Vec::new())),
                Some(_) if !is_start_of_mark => Some(BodyFormat::Events(EventDecoder::new(self.bytes_max))),
                // The white space so far is not needed any more. It would otherwise be read again with each piece.
                _ => None,
            };
            let text = text.to_vec();
            match format {
                Some(format) => {
                    self.format = format;
                    piece = Cow::Owned(text);
                }
                None => *start = text,
            }
        }
        let mut events = Vec::new();
        match &mut self.format {
            BodyFormat::Events(decoder) => decoder
                .push(&piece, &mut events)
                .map_err(|OversizedEvent| oversized("an event of the stream", self.bytes_max))?,
            _ if self.bytes_read > self.bytes_max => return Err(oversized("it", self.bytes_max)),
            BodyFormat::Json(document) => document.extend_from_slice(&piece),
            BodyFormat::Unknown(_) => {}
        }
        event_parts(&events)
    }

    /// Returns whether the body so far has nothing but white space, comments and events without content, such as keep-alive
    /// texts.
    pub(crate) fn is_blank(&self) -> bool {
        match &self.format {
            BodyFormat::Unknown(_) => true,
            BodyFormat::Json(_) => false,
            BodyFormat::Events(decoder) => !decoder.has_other_lines(),
        }
    }

    /// Decodes the end of the body and returns the parts that it completes.
    ///
    /// # Errors
    /// The body is invalid JSON, has too many values, or ends with an invalid event.
    pub(crate) fn finish(&mut self, content_type: &str) -> Result<Vec<BodyPart>, AttemptFailure> {
        let mut events = Vec::new();
        match &mut self.format {
            BodyFormat::Unknown(_) => {}
            BodyFormat::Json(document) => {
                check_value_count(document)?;
                let text = String::from_utf8_lossy(document);
                return document_parts(&text).map_err(|error| self.not_a_response(content_type, &error.to_string()));
            }
            BodyFormat::Events(decoder) => decoder.finish(&mut events),
        }
        event_parts(&events)
    }

    /// Returns the failure for a body that is not a response of the provider.
    pub(crate) fn not_a_response(&self, content_type: &str, reason: &str) -> AttemptFailure {
        let type_text = match content_type {
            "" => "without a content type".to_owned(),
            content_type => format!("of content type `{content_type}`"),
        };
        AttemptFailure::malformed(format!("{} bytes {type_text}: {reason}", self.bytes_read))
    }
}

/// Parses the data of events. Data that is neither an object nor the end mark, such as a keep-alive text, is ignored. The data
/// of an event with the name `error` becomes an object with this error, unless it is such an object.
fn event_parts(events: &[EventText]) -> Result<Vec<BodyPart>, AttemptFailure> {
    let mut parts = Vec::new();
    for EventText { is_error, data } in events {
        if data.trim() == END_MARK {
            parts.push(BodyPart::End);
            continue;
        }
        if !data.trim_start().starts_with('{') {
            if *is_error {
                parts.push(BodyPart::Event(json!({"error": data.trim()})));
            }
            continue;
        }
        check_value_count(data.as_bytes())?;
        // If a server omits the blank line between events, several objects are the data of one event.
        let values = values_of(data)
            .map_err(|error| AttemptFailure::malformed(format!("an event of the stream is not JSON: {error}")))?;
        let has_error = |value: &Value| value.get("error").is_some_and(|error| !error.is_null());
        parts.extend(values.into_iter().map(|value| {
            if *is_error && !has_error(&value) {
                BodyPart::Event(json!({"error": value}))
            } else {
                BodyPart::Event(value)
            }
        }));
    }
    Ok(parts)
}

/// Parses the JSON values of a text. If the text is not valid JSON because of lone surrogates, they are replaced.
fn values_of(text: &str) -> Result<Vec<Value>, serde_json::Error> {
    let parse = |text: &str| {
        Deserializer::from_str(text)
            .into_iter()
            .collect::<Result<Vec<Value>, _>>()
    };
    parse(text).or_else(|error| match without_lone_surrogates(text) {
        Cow::Owned(text) => parse(&text),
        Cow::Borrowed(_) => Err(error),
    })
}

/// Parses a JSON body. The documents of a body with several documents, and the elements of an array, are events.
fn document_parts(text: &str) -> Result<Vec<BodyPart>, serde_json::Error> {
    let mut values = values_of(text)?;
    if let [Value::Array(elements)] = values.as_mut_slice() {
        return Ok(std::mem::take(elements).into_iter().map(BodyPart::Event).collect());
    }
    Ok(match <[Value; 1]>::try_from(values) {
        Ok([document]) => vec![BodyPart::Document(document)],
        Err(values) => values.into_iter().map(BodyPart::Event).collect(),
    })
}

/// Fails if a JSON text has too many values and names. They are counted without parsing, which would take much memory.
fn check_value_count(text: &[u8]) -> Result<(), AttemptFailure> {
    if json_part_count(text) > VALUES_MAX {
        let message = format!("it has more than {VALUES_MAX} values and names");
        return Err(AttemptFailure::malformed(message));
    }
    Ok(())
}

fn oversized(subject: &str, bytes_max: usize) -> AttemptFailure {
    AttemptFailure::malformed(format!("{subject} has more than {bytes_max} bytes"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    // attack: F11
    #[test]
    fn a_response_with_too_many_values_is_refused() {
        let document = |items: usize| format!("{{\"x\": [{}]}}", vec!["{}"; items].join(","));
        let decode_large = |text: String| {
            let mut decoder = BodyDecoder::new(16 << 20);
            let parts = decoder.push(text.as_bytes());
            parts.and_then(|parts| Ok((parts, decoder.finish("application/json")?)))
        };
        assert!(decode_large(document(100_000)).is_ok());
        assert!(decode_large(document(VALUES_MAX)).is_err());
        assert!(decode_large(format!("data: {}\n\n", document(100_000))).is_ok());
        assert!(decode_large(format!("data: {}\n\n", document(VALUES_MAX))).is_err());
        let text = json!({ "x": "{,[".repeat(1 << 20) }).to_string();
        assert!(decode_large(text).is_ok(), "the marks within a text are not counted");
    }

    fn decode(body: &str) -> Result<Vec<BodyPart>, AttemptFailure> {
        let mut decoder = BodyDecoder::new(1_000);
        let mut parts = decoder.push(body.as_bytes())?;
        parts.extend(decoder.finish("text/plain")?);
        Ok(parts)
    }

    // attack: F6
    #[test]
    fn documents_arrays_lines_and_events_are_distinguished_by_their_content() {
        let (one, two) = (json!({"a": 1}), json!({"a": 2}));
        let document = |value: &Value| BodyPart::Document(value.clone());
        let event = |value: &Value| BodyPart::Event(value.clone());
        assert_eq!(decode(" \n{\"a\": 1}\n").unwrap(), [document(&one)]);
        let both_events = [event(&one), event(&two)];
        assert_eq!(decode("[{\"a\": 1}\n,\n{\"a\": 2}]").unwrap(), both_events);
        assert_eq!(decode("{\"a\": 1}\n{\"a\": 2}\n").unwrap(), both_events);
        assert_eq!(decode("data: {\"a\": 1}\ndata: {\"a\": 2}").unwrap(), both_events);
        let stream = "\n: hi\n\ndata: {\"a\": 1}\n\ndata: ping\n\ndata: [DONE]\n\n";
        assert_eq!(decode(stream).unwrap(), [event(&one), BodyPart::End]);
    }

    #[test]
    fn a_body_is_blank_until_it_has_content_or_lines_of_no_event() {
        let is_blank = |body: &str| {
            let mut decoder = BodyDecoder::new(1_000);
            decoder.push(body.as_bytes()).unwrap();
            decoder.finish("").unwrap();
            decoder.is_blank()
        };
        for body in [
            "",
            " \n",
            "\u{feff}",
            ": hi\n\n",
            "event: ping\ndata: ping\n\n",
            "data: [DONE]\n\n",
        ] {
            assert!(is_blank(body), "{body:?}");
        }
        assert!(!is_blank("<html>Sign in</html>") && !is_blank("{}"));
    }

    #[test]
    fn a_byte_order_mark_invalid_utf_8_and_lone_surrogates_lose_nothing_else() {
        let document = |value: Value| vec![BodyPart::Document(value)];
        let marked = "\u{feff} {\"a\": 1}".as_bytes();
        for cut in 0..marked.len() {
            let mut decoder = BodyDecoder::new(1_000);
            decoder.push(&marked[..cut]).unwrap();
            decoder.push(&marked[cut..]).unwrap();
            assert_eq!(decoder.finish("").unwrap(), document(json!({"a": 1})), "{cut}");
        }
        assert_eq!(
            decode(r#"{"a": "x\ud83d"}"#).unwrap(),
            document(json!({"a": "x\u{fffd}"}))
        );
        let event = decode("data: {\"a\": \"\\udE00y\"}\n\n").unwrap();
        assert_eq!(event, [BodyPart::Event(json!({"a": "\u{fffd}y"}))]);
        let mut decoder = BodyDecoder::new(1_000);
        decoder.push(b"{\"a\": \"\xff\"}").unwrap();
        assert_eq!(decoder.finish("").unwrap(), document(json!({"a": "\u{fffd}"})));
    }

    #[test]
    fn an_event_with_the_name_error_is_an_error() {
        let error = |error: Value| vec![BodyPart::Event(json!({ "error": error }))];
        for body in [
            "event: error\ndata: {\"message\": \"no\"}\n\n",
            "error: {\"message\": \"no\"}\n\n",
            "event: error\ndata: {\"error\": {\"message\": \"no\"}}\n\n",
        ] {
            assert_eq!(decode(body).unwrap(), error(json!({"message": "no"})), "{body}");
        }
        assert_eq!(decode("event: error\ndata: no\n\n").unwrap(), error(json!("no")));
    }

    // attack: F7
    #[test]
    fn truncated_and_oversized_bodies_are_refused() {
        let reason = |body: &str| match decode(body).unwrap_err() {
            AttemptFailure::Permanent(error) => error.to_string(),
            other => format!("{other:?}"),
        };
        assert!(reason("{\"a\": ").contains("EOF while parsing"));
        assert!(reason(&" ".repeat(1_001)).contains("more than 1000 bytes"));
        assert!(reason(&format!("{{{}", " ".repeat(1_000))).contains("more than 1000 bytes"));
        assert!(reason(&format!("data: {}", "x".repeat(1_000))).contains("more than 1000 bytes"));
        assert!(reason("data: {\"a\": \n\n").contains("an event of the stream is not JSON"));
    }
}
