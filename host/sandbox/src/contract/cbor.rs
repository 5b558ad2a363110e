//! Conversion of CBOR to JSON, and of JSON to CBOR.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ciborium_ll::{Decoder, Encoder, Header, simple};
use serde_json::{Map, Number, Value};

use toolwit_core::limits::ARGUMENT_PARTS_MAX;

mod round_trip;

pub(crate) use round_trip::check_round_trip;

/// The maximum nesting depth of a value.
const DEPTH_MAX: usize = 64;

/// The size of the buffer through which strings are copied, in bytes.
const BUFFER_BYTES: usize = 4 << 10;

/// The reason why CBOR cannot be converted to JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CborError {
    #[error("it is not valid CBOR")]
    Invalid,
    #[error("a key of its CBOR is a list or a map")]
    CompositeKey,
    #[error("its CBOR nests deeper than {DEPTH_MAX}, or has more than {ARGUMENT_PARTS_MAX} parts")]
    TooLarge,
}

impl<T> From<ciborium_ll::Error<T>> for CborError {
    fn from(_: ciborium_ll::Error<T>) -> Self {
        Self::Invalid
    }
}

/// Decodes exactly one CBOR item to JSON.
///
/// Byte strings become base64. A tag is dropped and its content remains. Keys that are numbers, booleans or null become
/// their JSON text. Infinities and NaN become null.
///
/// # Errors
/// [`CborError`]. A map with a duplicate key and bytes after the item are invalid.
pub(crate) fn decode(bytes: &[u8]) -> Result<Value, CborError> {
    let mut reader = Reader {
        decoder: Decoder::from(bytes),
        parts: 0,
    };
    let value = reader.read_item(0)?;
    if reader.decoder.offset() == bytes.len() {
        Ok(value)
    } else {
        Err(CborError::Invalid)
    }
}

struct Reader<'a> {
    decoder: Decoder<&'a [u8]>,
    /// The number of items, map keys and tags that were read, at most [`ARGUMENT_PARTS_MAX`]. A part can be a single
    /// byte of CBOR, but takes tens of bytes in memory.
    parts: usize,
}

impl Reader<'_> {
    /// Reads one item.
    fn read_item(&mut self, depth: usize) -> Result<Value, CborError> {
        let header = self.decoder.pull()?;
        self.read_item_after(header, depth)
    }

    /// Reads the rest of an item whose header has been read.
    fn read_item_after(&mut self, header: Header, depth: usize) -> Result<Value, CborError> {
        self.parts += 1;
        if depth > DEPTH_MAX || self.parts > ARGUMENT_PARTS_MAX {
            return Err(CborError::TooLarge);
        }
        Ok(match header {
            Header::Positive(number) => number.into(),
            Header::Negative(number) => negative_integer(number),
            Header::Float(number) => Number::from_f64(number).map_or(Value::Null, Value::Number),
            Header::Simple(simple::TRUE) => true.into(),
            Header::Simple(simple::FALSE) => false.into(),
            Header::Simple(simple::NULL | simple::UNDEFINED) => Value::Null,
            Header::Tag(_) => self.read_item(depth + 1)?,
            Header::Bytes(length) => STANDARD.encode(self.read_bytes(length)?).into(),
            Header::Text(length) => self.read_text(length)?.into(),
            Header::Array(length) => self.read_array(length, depth)?,
            Header::Map(length) => self.read_map(length, depth)?,
            Header::Simple(_) | Header::Break => return Err(CborError::Invalid),
        })
    }

    fn read_array(&mut self, length: Option<usize>, depth: usize) -> Result<Value, CborError> {
        let mut items = Vec::new();
        // The length is untrusted: no memory is reserved for it.
        while let Some(header) = self.next_header(length, items.len())? {
            items.push(self.read_item_after(header, depth + 1)?);
        }
        Ok(Value::Array(items))
    }

    fn read_map(&mut self, length: Option<usize>, depth: usize) -> Result<Value, CborError> {
        let (mut fields, mut count) = (Map::new(), 0);
        while let Some(header) = self.next_header(length, count)? {
            let key = match self.read_item_after(header, depth + 1)? {
                Value::String(text) => text,
                // If such a key became JSON text, each level of nested keys would escape the quotes inside it, and could
                // so double the length of the text.
                Value::Array(_) | Value::Object(_) => return Err(CborError::CompositeKey),
                scalar => scalar.to_string(),
            };
            if fields.insert(key, self.read_item(depth + 1)?).is_some() {
                return Err(CborError::Invalid);
            }
            count += 1;
        }
        Ok(Value::Object(fields))
    }

    /// Returns the header of the next item of an array, or of the next key of a map. Returns `None` at the end.
    fn next_header(&mut self, length: Option<usize>, count: usize) -> Result<Option<Header>, CborError> {
        match length {
            Some(length) if count >= length => Ok(None),
            Some(_) => Ok(Some(self.decoder.pull()?)),
            None => Ok(Some(self.decoder.pull()?).filter(|header| *header != Header::Break)),
        }
    }

    fn read_bytes(&mut self, length: Option<usize>) -> Result<Vec<u8>, CborError> {
        let (mut bytes, mut buffer) = (Vec::new(), [0; BUFFER_BYTES]);
        let mut segments = self.decoder.bytes(length);
        while let Some(mut segment) = segments.pull()? {
            while let Some(read) = segment.pull(&mut buffer)? {
                bytes.extend_from_slice(read);
            }
        }
        Ok(bytes)
    }

    fn read_text(&mut self, length: Option<usize>) -> Result<String, CborError> {
        let (mut text, mut buffer) = (String::new(), [0; BUFFER_BYTES]);
        let mut segments = self.decoder.text(length);
        while let Some(mut segment) = segments.pull()? {
            while let Some(read) = segment.pull(&mut buffer)? {
                text.push_str(read);
            }
        }
        Ok(text)
    }
}

/// Returns the negative integer whose CBOR header contains `number`: `-1 - number`.
#[allow(clippy::cast_precision_loss, reason = "`Number` has no integers of this size")]
fn negative_integer(number: u64) -> Value {
    match i64::try_from(number) {
        Ok(number) => (-1 - number).into(),
        Err(_) => Number::from_f64(-1.0 - number as f64).map_or(Value::Null, Value::Number),
    }
}

/// Encodes a JSON object as deterministic CBOR (RFC 8949, section 4.2): each number in its shortest form, and the keys
/// in the order of their encoded bytes.
pub(crate) fn encode(fields: &Map<String, Value>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = Encoder::from(&mut bytes);
    // Writing to a vector does not fail.
    let _: Result<(), std::io::Error> = encode_map(&mut encoder, fields);
    bytes
}

type Writer<'a> = Encoder<&'a mut Vec<u8>>;

fn encode_value(encoder: &mut Writer<'_>, value: &Value) -> Result<(), std::io::Error> {
    match value {
        Value::Null => encoder.push(Header::Simple(simple::NULL)),
        Value::Bool(true) => encoder.push(Header::Simple(simple::TRUE)),
        Value::Bool(false) => encoder.push(Header::Simple(simple::FALSE)),
        Value::Number(number) => encoder.push(number_header(number)),
        Value::String(text) => encoder.text(text, None),
        Value::Array(items) => {
            encoder.push(Header::Array(Some(items.len())))?;
            items.iter().try_for_each(|item| encode_value(encoder, item))
        }
        Value::Object(fields) => encode_map(encoder, fields),
    }
}

fn encode_map(encoder: &mut Writer<'_>, fields: &Map<String, Value>) -> Result<(), std::io::Error> {
    encoder.push(Header::Map(Some(fields.len())))?;
    let mut sorted: Vec<_> = fields.iter().collect();
    // The encoding of a key begins with its length, so a shorter key comes first.
    sorted.sort_by_key(|(key, _)| (key.len(), key.as_str()));
    sorted.into_iter().try_for_each(|(key, value)| {
        encoder.text(key, None)?;
        encode_value(encoder, value)
    })
}

fn number_header(number: &Number) -> Header {
    if let Some(positive) = number.as_u64() {
        Header::Positive(positive)
    } else if let Some(negative) = number.as_i64() {
        Header::Negative((-1 - negative).unsigned_abs())
    } else {
        Header::Float(number.as_f64().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests;
