//! Tests of the conversion between CBOR and JSON: the examples of the standard, hostile bytes, and properties of
//! generated values.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::json;

use super::*;

fn from_hex(hex: &str) -> Vec<u8> {
    let byte = |start: usize| u8::from_str_radix(&hex[start..start + 2], 16).unwrap();
    (0..hex.len()).step_by(2).map(byte).collect()
}

fn encode_to_hex(value: &Value) -> String {
    let encoded = encode(value.as_object().unwrap());
    encoded.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn encoding_is_deterministic() {
    // The examples of RFC 8949, appendix A, as values of a map.
    for (value, encoded) in [
        (json!(0), "00"),
        (json!(1_000_000), "1a000f4240"),
        (json!(-1), "20"),
        (json!(-1000), "3903e7"),
        (json!(u64::MAX), "1bffffffffffffffff"),
        (json!(i64::MIN), "3b7fffffffffffffff"),
        (json!(1.5), "f93e00"),
        (json!(100_000.5), "fa47c35040"),
        (json!(1.1), "fb3ff199999999999a"),
        (json!([1, [2, 3]]), "8201820203"),
        (json!("\u{fc}"), "62c3bc"),
        (json!([false, true, null]), "83f4f5f6"),
    ] {
        assert_eq!(
            encode_to_hex(&json!({"a": value})),
            format!("a16161{encoded}"),
            "{value}"
        );
    }
    let unordered = json!({"bb": 1, "c": 2, "aa": 3, "": 4});
    assert_eq!(encode_to_hex(&unordered), "a460046163026261610362626201");
}

#[test]
fn an_encoded_value_decodes_to_the_same_value() {
    let value =
        json!({"text": "x".repeat(10_000), "list": [1, -7, 2.5, null, true, {"a": []}], "n": i64::MIN, "m": u64::MAX});
    assert_eq!(decode(&encode(value.as_object().unwrap())).unwrap(), value);
}

#[test]
fn encodings_that_the_host_does_not_write_are_read() {
    for (encoded, value) in [
        ("9f01ff", json!([1])),
        ("bf616101ff", json!({"a": 1})),
        ("7f61616162ff", json!("ab")),
        ("5f41014102ff", json!("AQI=")),
        ("a10102", json!({"1": 2})),
        (
            "c074323031332d30332d32315432303a30343a30305a",
            json!("2013-03-21T20:04:00Z"),
        ),
        ("f7", json!(null)),
        ("f97e00", json!(null)),
        ("1801", json!(1)),
        ("f93c00", json!(1.0)),
    ] {
        assert_eq!(decode(&from_hex(encoded)).unwrap(), value, "{encoded}");
    }
}

// attack: B4
#[test]
fn damaged_and_huge_cbor_is_refused() {
    let deep = "81".repeat(100_000) + "00";
    let many = "9a00ffffff".to_owned() + &"00".repeat(200_000);
    for (encoded, error) in [
        ("", CborError::Invalid),
        ("ff", CborError::Invalid),
        ("61ff", CborError::Invalid),
        ("0000", CborError::Invalid),
        ("9bffffffffffffffff", CborError::Invalid),
        ("7bffffffffffffffff61", CborError::Invalid),
        ("5b7fffffffffffffff", CborError::Invalid),
        ("a2616101616102", CborError::Invalid),
        ("9f01", CborError::Invalid),
        ("bf6161ff", CborError::Invalid),
        ("f8ff", CborError::Invalid),
        (&deep, CborError::TooLarge),
        (&many, CborError::TooLarge),
    ] {
        assert_eq!(decode(&from_hex(encoded)), Err(error), "{encoded:.40}");
    }
}

/// Generates JSON of every kind that arguments can have, nested up to four levels deep.
fn json_value() -> impl Strategy<Value = Value> {
    let scalar = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>()
            .prop_filter("JSON has finite numbers", |number| number.is_finite())
            .prop_map(Value::from),
        ".{0,40}".prop_map(Value::from),
    ];
    scalar.prop_recursive(4, 64, 8, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..8).prop_map(Value::from),
            btree_map(".{0,8}", inner, 0..8).prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// Generates CBOR headers mixed with numbers, texts and random bytes. The result is more often valid CBOR than purely
/// random bytes are.
fn cbor_like_bytes() -> impl Strategy<Value = Vec<u8>> {
    let header =
        (0..8_u8, prop_oneof![0..=23_u8, 24..=31_u8]).prop_map(|(major_type, info)| vec![major_type << 5 | info]);
    let number = any::<u32>().prop_map(|number| number.to_be_bytes().to_vec());
    let text =
        ".{0,20}".prop_map(|text: String| [&[0x78, u8::try_from(text.len()).unwrap()], text.as_bytes()].concat());
    vec(
        prop_oneof![8 => header, 1 => number, 1 => text, 1 => vec(any::<u8>(), 0..8)],
        0..60,
    )
    .prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_encoded_object_decodes_to_the_same_object(fields in btree_map(".{0,12}", json_value(), 0..6)) {
        let fields: Map<String, Value> = fields.into_iter().collect();
        let bytes = encode(&fields);
        prop_assert_eq!(decode(&bytes).unwrap(), Value::Object(fields));
    }

    // attack: B4
    #[test]
    fn bytes_are_refused_or_decode_within_the_limits(bytes in prop_oneof![cbor_like_bytes(), vec(any::<u8>(), 0..200)]) {
        check_round_trip(&bytes);
    }

    // attack: B4
    #[test]
    fn damaged_cbor_is_refused_or_decodes_within_the_limits(
        fields in btree_map(".{0,12}", json_value(), 0..6),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        end in any::<prop::sample::Index>(),
    ) {
        let mut bytes = encode(&fields.into_iter().collect());
        for (index, byte) in changes {
            let position = index.index(bytes.len());
            bytes[position] = byte;
        }
        check_round_trip(&bytes);
        check_round_trip(&bytes[..end.index(bytes.len())]);
    }

    #[test]
    fn nesting_is_refused_beyond_the_limit(depth in 0..200_usize, is_map in any::<bool>()) {
        let level: &[u8] = if is_map { &[0xa1, 0x00] } else { &[0x81] };
        let bytes = [level.repeat(depth), vec![0x00]].concat();
        prop_assert_eq!(decode(&bytes).is_ok(), depth <= DEPTH_MAX);
    }
}

// attack: B4
#[test]
fn keys_that_are_lists_or_maps_are_refused() {
    for depth in [1, 30, 63] {
        // Each map is the key of the map around it, and the innermost key is a quote. If map keys became JSON text, each
        // level would escape the quote again.
        let bytes = [vec![0xa1; depth], vec![0x61, b'"'], vec![0x00; depth]].concat();
        let error = decode(&bytes).err();
        assert_eq!(error, (depth > 1).then_some(CborError::CompositeKey), "{depth}");
    }
    assert_eq!(
        decode(&[0xa1, 0xc1, 0x80, 0x00]),
        Err(CborError::CompositeKey),
        "a tagged list"
    );
}
