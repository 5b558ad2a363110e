//! The round-trip property of the conversion, which a fuzzer checks.

use serde_json::{Map, Value};
use toolwit_core::limits::ARGUMENT_PARTS_MAX;

use super::{CborError, DEPTH_MAX, decode, encode};

/// Checks that `decode` refuses the data, or returns a value within the limits that is the same after it is encoded and
/// decoded again.
///
/// # Panics
/// If a step fails, which means that the fuzzer has found a bug.
pub(crate) fn check_round_trip(data: &[u8]) {
    let Ok(value) = decode(data) else { return };
    let (depth, parts) = (depth(&value), parts(&value));
    assert!(depth <= DEPTH_MAX, "{depth} levels: {value}");
    // An item takes one byte at least, so that no input becomes much larger.
    assert!(parts <= ARGUMENT_PARTS_MAX.min(data.len()), "{parts} parts: {value}");
    let fields = Map::from_iter([("value".to_owned(), value)]);
    match decode(&encode(&fields)) {
        Ok(again) => assert_eq!(again, Value::Object(fields)),
        // The map around the value is one more level, with two more parts.
        Err(error) => {
            let is_at_limit = depth == DEPTH_MAX || parts + 2 > ARGUMENT_PARTS_MAX;
            assert_eq!((error, is_at_limit), (CborError::TooLarge, true), "{fields:?}");
        }
    }
}

/// Returns the nesting depth of a value; 0 for a scalar.
fn depth(value: &Value) -> usize {
    let inner = match value {
        Value::Array(items) => items.iter().map(depth).max(),
        Value::Object(fields) => fields.values().map(depth).max(),
        _ => return 0,
    };
    inner.map_or(0, |depth| depth + 1)
}

/// Returns the number of items and keys of a value.
fn parts(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(parts).sum::<usize>(),
        Value::Object(fields) => 1 + fields.values().map(|field| 1 + parts(field)).sum::<usize>(),
        _ => 1,
    }
}
