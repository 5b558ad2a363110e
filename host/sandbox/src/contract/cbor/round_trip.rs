//! The round-trip property of the conversion, which a fuzzer and the property tests check.

use serde_json::{Map, Value};
use toolwit_core::limits::ARGUMENT_PARTS_MAX;

use super::{CborError, DEPTH_MAX, decode, encode};

/// Checks that `decode` refuses the data or returns a value within the limits. Also checks that such a value remains the
/// same if it is encoded and decoded again.
///
/// # Panics
/// If a check fails, which means that the conversion has a bug.
pub(crate) fn check_round_trip(data: &[u8]) {
    let Ok(value) = decode(data) else { return };
    let (depth, parts) = (nesting_depth(&value), count_parts(&value));
    assert!(depth <= DEPTH_MAX, "{depth} levels: {value}");
    // Each part takes at least one byte of CBOR, so a value has at most as many parts as the data has bytes.
    assert!(parts <= ARGUMENT_PARTS_MAX.min(data.len()), "{parts} parts: {value}");
    let fields = Map::from_iter([("value".to_owned(), value)]);
    match decode(&encode(&fields)) {
        Ok(decoded_again) => assert_eq!(decoded_again, Value::Object(fields)),
        // The map around the value adds one level and two parts.
        Err(error) => {
            let is_at_limit = depth == DEPTH_MAX || parts + 2 > ARGUMENT_PARTS_MAX;
            assert_eq!((error, is_at_limit), (CborError::TooLarge, true), "{fields:?}");
        }
    }
}

/// Returns the depth of the deepest value inside a value. The outermost value has depth 0.
fn nesting_depth(value: &Value) -> usize {
    let inner = match value {
        Value::Array(items) => items.iter().map(nesting_depth).max(),
        Value::Object(fields) => fields.values().map(nesting_depth).max(),
        _ => return 0,
    };
    inner.map_or(0, |depth| depth + 1)
}

/// Returns the number of items and keys of a value.
fn count_parts(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(count_parts).sum::<usize>(),
        Value::Object(fields) => 1 + fields.values().map(|field| 1 + count_parts(field)).sum::<usize>(),
        _ => 1,
    }
}
