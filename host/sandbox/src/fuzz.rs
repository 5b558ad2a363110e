//! The entry point of the fuzzers to the private mapping between WIT and JSON. Not part of the public API.

use serde_json::{Map, Value};

use crate::values::decode::{NoHandles, decode_arguments};
use crate::values::encode::encode;
use crate::values::types::{Case, Field, Label, WitType};
use toolwit_core::text::parse_json;

/// The maximum depth of a type that is generated from a fuzzer's bytes.
const DEPTH_MAX: u32 = 6;

/// Generates a type from the first bytes and parses JSON from the rest. A value that decodes must encode, and the result must
/// decode and encode to itself.
///
/// # Panics
/// If a step fails, which means that the fuzzer has found a bug.
#[allow(clippy::panic, reason = "a panic is how a fuzz target reports a finding")]
pub fn values(data: &[u8]) {
    let mut data = data.iter().copied();
    let ty = wit_type(&mut data, 0);
    let Ok(text) = String::from_utf8(data.collect()) else {
        return;
    };
    let Ok(value) = parse_json(&text) else { return };
    let field = Field {
        label: Label::new("value"),
        ty,
    };
    let Some(first) = round_trip(&field, value) else { return };
    match round_trip(&field, first.clone()) {
        Some(second) if second == first => {}
        second => panic!("{first} was re-encoded as {second:?} for {:?}", field.ty),
    }
}

/// Decodes JSON and encodes the value again. `None` if the JSON is refused.
fn round_trip(field: &Field, value: Value) -> Option<Value> {
    let arguments = Map::from_iter([("value".to_owned(), value)]);
    let params = std::slice::from_ref(field);
    let decoded = decode_arguments(params, &arguments, &mut NoHandles).ok()?;
    encode(&field.ty, decoded.into_iter().next()?, &mut std::iter::empty()).ok()
}

fn wit_type(data: &mut impl Iterator<Item = u8>, depth: u32) -> WitType {
    let byte = data.next().unwrap_or_default();
    let many = usize::from(byte >> 5) + 1;
    let is_scalar = depth >= DEPTH_MAX;
    let mut inner = || Box::new(wit_type(data, depth + 1));
    match byte % if is_scalar { 14 } else { 22 } {
        0 => WitType::Bool,
        1 => WitType::S8,
        2 => WitType::U8,
        3 => WitType::S16,
        4 => WitType::U16,
        5 => WitType::S32,
        6 => WitType::U32,
        7 => WitType::S64,
        8 => WitType::U64,
        9 => WitType::F32,
        10 => WitType::F64,
        11 => WitType::Char,
        12 => WitType::String,
        13 => WitType::Bytes,
        14 => WitType::List(inner()),
        15 => WitType::Option(inner()),
        16 => WitType::Tuple((0..many).map(|_| *inner()).collect()),
        17 => WitType::Record(
            (0..many)
                .map(|at| Field {
                    label: label(at),
                    ty: *inner(),
                })
                .collect(),
        ),
        18 => {
            let payload = |at: usize| at.is_multiple_of(2).then(|| *inner());
            let payloads: Vec<_> = (0..many).map(payload).collect();
            let cases = payloads.into_iter().enumerate();
            WitType::Variant(cases.map(|(at, ty)| Case { label: label(at), ty }).collect())
        }
        19 => WitType::Enum((0..many).map(label).collect()),
        20 => WitType::Flags((0..many).map(label).collect()),
        _ => WitType::Result {
            ok: Some(inner()),
            err: None,
        },
    }
}

fn label(at: usize) -> Label {
    Label::new(&format!("item-{at}"))
}
