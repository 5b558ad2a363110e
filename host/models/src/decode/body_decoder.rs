//! A decoder of response bodies: a JSON document, or a stream of events.

use serde_json::{Deserializer, Value};

use super::event_decoder::{EventDecoder, OversizedEvent};
use crate::http::AttemptFailure;
use toolwit_core::text::json_part_count;

/// The data of the event that ends a stream of the OpenAI API.
const END_MARK: &str = "[DONE]";

/// Maximum number of values and names in a body of JSON or in an event. Parsed values take up to a hundred times the memory of
/// their text. A usual response has a few thousand values.
const VALUES_MAX: usize = 256 << 10;

/// A part of a body.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum BodyPart {
    /// The only JSON document of the body.
    Document(Value),
    /// One event of a stream.
    Event(Value),
    /// The mark that ends a stream.
    End,
}

/// Decodes the body of a response, which arrives in pieces of any size.
///
/// The first character after white space decides whether it is JSON or a stream of events. The content type does not: servers
/// send either with the type of the other, and an error in place of a stream is usually JSON. Several JSON documents, and the
/// elements of an array, count as the events of a stream.
#[derive(Debug)]
pub(crate) struct BodyDecoder {
    format: BodyFormat,
    /// The number of bytes of the body that have arrived.
    bytes_read: usize,
    bytes_max: usize,
}

#[derive(Debug)]
enum BodyFormat {
    /// Only white space has arrived.
    Unknown,
    Json(Vec<u8>),
    Events(EventDecoder),
}

impl BodyDecoder {
    /// Creates a decoder with a maximum size of a body of JSON, and of each event.
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self {
            format: BodyFormat::Unknown,
            bytes_read: 0,
            bytes_max,
        }
    }

    /// Decodes a piece and returns the parts that it completes. A body of JSON has no parts before its end.
    ///
    /// # Errors
    /// The body or an event exceeds its maximum size, or an event has too many values or begins like a JSON object and is
    /// invalid.
    pub(crate) fn push(&mut self, mut piece: &[u8]) -> Result<Vec<BodyPart>, AttemptFailure> {
        self.bytes_read += piece.len();
        if matches!(self.format, BodyFormat::Unknown) {
            piece = piece.trim_ascii_start();
            match piece.first() {
                None => {}
                Some(b'{' | b'[') => self.format = BodyFormat::Json(Vec::new()),
                Some(_) => self.format = BodyFormat::Events(EventDecoder::new(self.bytes_max)),
            }
        }
        let mut events = Vec::new();
        match &mut self.format {
            BodyFormat::Events(decoder) => decoder
                .push(piece, &mut events)
                .map_err(|OversizedEvent| oversized("an event of the stream", self.bytes_max))?,
            _ if self.bytes_read > self.bytes_max => return Err(oversized("it", self.bytes_max)),
            BodyFormat::Json(document) => document.extend_from_slice(piece),
            BodyFormat::Unknown => {}
        }
        event_parts(&events)
    }

    /// Decodes the end of the body and returns the parts that it completes.
    ///
    /// # Errors
    /// The body is empty or is invalid JSON, has too many values, or ends with an invalid event.
    pub(crate) fn finish(&mut self, content_type: &str) -> Result<Vec<BodyPart>, AttemptFailure> {
        let mut events = Vec::new();
        match &mut self.format {
            BodyFormat::Unknown => return Err(self.not_a_response(content_type, "it is empty")),
            BodyFormat::Json(document) => {
                check_value_count(document)?;
                return document_parts(document).map_err(|error| self.not_a_response(content_type, &error.to_string()));
            }
            BodyFormat::Events(decoder) => decoder.finish(&mut events),
        }
        event_parts(&events)
    }

    /// Returns the failure for a body that is not a response of the provider.
    pub(crate) fn not_a_response(&self, content_type: &str, why: &str) -> AttemptFailure {
        let kind = match content_type {
            "" => "of no content type".to_owned(),
            kind => format!("of content type `{kind}`"),
        };
        AttemptFailure::malformed(format!("{} bytes {kind}: {why}", self.bytes_read))
    }
}

/// Parses the data of events. Data that is neither an object nor the end mark, such as a keep-alive text, is ignored.
fn event_parts(events: &[String]) -> Result<Vec<BodyPart>, AttemptFailure> {
    let mut parts = Vec::new();
    for data in events {
        if data.trim() == END_MARK {
            parts.push(BodyPart::End);
        }
        if !data.trim_start().starts_with('{') {
            continue;
        }
        check_value_count(data.as_bytes())?;
        // Servers that omit the blank line between events send several objects in one.
        for value in Deserializer::from_str(data).into_iter::<Value>() {
            let value = value
                .map_err(|error| AttemptFailure::malformed(format!("an event of the stream is not JSON: {error}")))?;
            parts.push(BodyPart::Event(value));
        }
    }
    Ok(parts)
}

/// Parses a body of JSON: a document, or several documents or an array, which are events.
fn document_parts(text: &[u8]) -> Result<Vec<BodyPart>, serde_json::Error> {
    let mut values: Vec<Value> = Deserializer::from_slice(text).into_iter().collect::<Result<_, _>>()?;
    if let [Value::Array(elements)] = values.as_mut_slice() {
        return Ok(std::mem::take(elements).into_iter().map(BodyPart::Event).collect());
    }
    Ok(match <[Value; 1]>::try_from(values) {
        Ok([document]) => vec![BodyPart::Document(document)],
        Err(values) => values.into_iter().map(BodyPart::Event).collect(),
    })
}

/// Checks the number of values and names before they are parsed.
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
    fn a_response_of_too_many_parts_is_refused_before_it_is_parsed() {
        let document = |items: usize| format!("{{\"x\": [{}]}}", vec!["{}"; items].join(","));
        let decoded = |text: String| {
            let mut decoder = BodyDecoder::new(16 << 20);
            let pushed = decoder.push(text.as_bytes());
            pushed.and_then(|events| Ok((events, decoder.finish("application/json")?)))
        };
        assert!(decoded(document(100_000)).is_ok());
        assert!(decoded(document(VALUES_MAX)).is_err());
        assert!(decoded(format!("data: {}\n\n", document(100_000))).is_ok());
        assert!(decoded(format!("data: {}\n\n", document(VALUES_MAX))).is_err());
        let text = json!({ "x": "{,[".repeat(1 << 20) }).to_string();
        assert!(decoded(text).is_ok(), "text has one part");
    }

    fn decode(body: &str) -> Result<Vec<BodyPart>, AttemptFailure> {
        let mut decoder = BodyDecoder::new(1_000);
        let mut parts = decoder.push(body.as_bytes())?;
        parts.extend(decoder.finish("text/plain")?);
        Ok(parts)
    }

    // attack: F6
    #[test]
    fn documents_arrays_lines_and_events_are_told_apart_by_their_content() {
        let (one, two) = (json!({"a": 1}), json!({"a": 2}));
        let document = |value: &Value| BodyPart::Document(value.clone());
        let event = |value: &Value| BodyPart::Event(value.clone());
        assert_eq!(decode(" \n{\"a\": 1}\n").unwrap(), [document(&one)]);
        let both = [event(&one), event(&two)];
        assert_eq!(decode("[{\"a\": 1}\n,\n{\"a\": 2}]").unwrap(), both);
        assert_eq!(decode("{\"a\": 1}\n{\"a\": 2}\n").unwrap(), both);
        assert_eq!(decode("data: {\"a\": 1}\ndata: {\"a\": 2}").unwrap(), both);
        let stream = "\n: hi\n\ndata: {\"a\": 1}\n\ndata: ping\n\ndata: [DONE]\n\n";
        assert_eq!(decode(stream).unwrap(), [event(&one), BodyPart::End]);
    }

    // attack: F7
    #[test]
    fn an_empty_a_cut_and_an_oversized_body_are_refused() {
        let why = |body: &str| match decode(body).unwrap_err() {
            AttemptFailure::Permanent(error) => error.to_string(),
            other => format!("{other:?}"),
        };
        assert!(why("").contains("0 bytes of content type `text/plain`: it is empty"));
        assert!(why("{\"a\": ").contains("EOF while parsing"));
        assert!(why(&" ".repeat(1_001)).contains("more than 1000 bytes"));
        assert!(why(&format!("{{{}", " ".repeat(1_000))).contains("more than 1000 bytes"));
        assert!(why(&format!("data: {}", "x".repeat(1_000))).contains("more than 1000 bytes"));
        assert!(why("data: {\"a\": \n\n").contains("an event of the stream is not JSON"));
    }
}
