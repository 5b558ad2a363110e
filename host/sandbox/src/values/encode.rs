//! Encodes the result values of a component's function as JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Number, Value, json};
use wasmtime::component::{ResourceAny, Val};

use super::types::{Label, ResourceIndex, WitType};

/// The largest absolute value of an integer that is encoded as a JSON number. Larger integers are encoded as decimal text,
/// because many JSON parsers convert numbers to 64-bit floats.
const EXACT_INTEGER_MAX: u64 = 1 << 53;

/// The error for a value that does not have its declared type, or has a handle for which the caller of [`encode`] passed no
/// entity. Both are bugs of the host, because wasmtime checks the types of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a value does not have its declared type, or has a handle without an entity")]
pub(crate) struct EncodeError;

/// A resource handle in a result.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FoundHandle {
    pub(crate) resource: ResourceIndex,
    pub(crate) handle: ResourceAny,
}

/// Collects the handles in a value, in the order in which [`encode`] visits them.
pub(crate) fn find_handles(ty: &WitType, value: &Val, handles: &mut Vec<FoundHandle>) {
    match (ty, value) {
        (WitType::Own(resource) | WitType::Borrow(resource), Val::Resource(handle)) => {
            handles.push(FoundHandle {
                resource: *resource,
                handle: *handle,
            });
        }
        (WitType::List(item), Val::List(values)) if item.holds_resources() => {
            values.iter().for_each(|value| find_handles(item, value, handles));
        }
        (WitType::Tuple(items), Val::Tuple(values)) => {
            items
                .iter()
                .zip(values)
                .for_each(|(item, value)| find_handles(item, value, handles));
        }
        (WitType::Record(fields), Val::Record(values)) => {
            fields
                .iter()
                .zip(values)
                .for_each(|(field, (_, value))| find_handles(&field.ty, value, handles));
        }
        (WitType::Variant(cases), Val::Variant(name, Some(payload))) => {
            let ty = cases
                .iter()
                .find(|case| case.label.wit == *name)
                .and_then(|case| case.ty.as_ref());
            if let Some(ty) = ty {
                find_handles(ty, payload, handles);
            }
        }
        (WitType::Option(inner), Val::Option(Some(value))) => find_handles(inner, value, handles),
        (WitType::Result { ok: Some(ty), .. }, Val::Result(Ok(Some(value))))
        | (WitType::Result { err: Some(ty), .. }, Val::Result(Err(Some(value)))) => find_handles(ty, value, handles),
        _ => {}
    }
}

/// Encodes a value as JSON. `entities` yields the JSON for each handle, in the order of [`find_handles`].
pub(crate) fn encode(
    ty: &WitType,
    value: Val,
    entities: &mut dyn Iterator<Item = Value>,
) -> Result<Value, EncodeError> {
    Ok(match (ty, value) {
        (WitType::Bool, Val::Bool(value)) => Value::Bool(value),
        (WitType::S8, Val::S8(value)) => json!(value),
        (WitType::U8, Val::U8(value)) => json!(value),
        (WitType::S16, Val::S16(value)) => json!(value),
        (WitType::U16, Val::U16(value)) => json!(value),
        (WitType::S32, Val::S32(value)) => json!(value),
        (WitType::U32, Val::U32(value)) => json!(value),
        (WitType::S64, Val::S64(value)) => encode_long_integer(value.unsigned_abs(), value),
        (WitType::U64, Val::U64(value)) => encode_long_integer(value, value),
        (WitType::F32, Val::Float32(value)) => encode_float32(value),
        (WitType::F64, Val::Float64(value)) => encode_float64(value),
        (WitType::Char, Val::Char(value)) => Value::String(value.to_string()),
        (WitType::String, Val::String(value)) => Value::String(value),
        (WitType::Bytes, Val::List(values)) => encode_bytes(&values)?,
        (WitType::List(item), Val::List(values)) => Value::Array(
            values
                .into_iter()
                .map(|value| encode(item, value, entities))
                .collect::<Result<_, _>>()?,
        ),
        (WitType::Tuple(items), Val::Tuple(values)) => Value::Array(
            items
                .iter()
                .zip(values)
                .map(|(item, value)| encode(item, value, entities))
                .collect::<Result<_, _>>()?,
        ),
        (WitType::Record(fields), Val::Record(values)) => {
            let mut map = Map::with_capacity(fields.len());
            for (field, (_, value)) in fields.iter().zip(values) {
                map.insert(field.label.json.clone(), encode(&field.ty, value, entities)?);
            }
            Value::Object(map)
        }
        (WitType::Variant(cases), Val::Variant(name, payload)) => {
            let case = cases.iter().find(|case| case.label.wit == name).ok_or(EncodeError)?;
            match (&case.ty, payload) {
                (Some(ty), Some(payload)) => json!({ &case.label.json: encode(ty, *payload, entities)? }),
                (None, None) => Value::String(case.label.json.clone()),
                _ => return Err(EncodeError),
            }
        }
        (WitType::Enum(labels), Val::Enum(name)) => Value::String(json_name(labels, &name)?),
        (WitType::Flags(labels), Val::Flags(names)) => Value::Array(
            names
                .iter()
                .map(|name| json_name(labels, name).map(Value::String))
                .collect::<Result<_, _>>()?,
        ),
        (WitType::Option(_), Val::Option(None)) => Value::Null,
        (WitType::Option(inner), Val::Option(Some(value))) => wrap_some(inner, encode(inner, *value, entities)?),
        (WitType::Result { ok, .. }, Val::Result(Ok(payload))) => {
            json!({"ok": encode_payload(ok.as_deref(), payload.map(|payload| *payload), entities)?})
        }
        (WitType::Result { err, .. }, Val::Result(Err(payload))) => {
            json!({"err": encode_payload(err.as_deref(), payload.map(|payload| *payload), entities)?})
        }
        // The caller has already converted the bytes of a stream to text or to a data URL.
        (WitType::Stream(_), Val::String(text)) => Value::String(text),
        (WitType::Stream(item), Val::List(values)) => Value::Array(
            values
                .into_iter()
                .map(|value| encode(item, value, entities))
                .collect::<Result<_, _>>()?,
        ),
        (WitType::Future(None), Val::Tuple(_)) => Value::Null,
        (WitType::Future(Some(payload)), value) => encode(payload, value, entities)?,
        (WitType::Own(_) | WitType::Borrow(_), Val::Resource(_)) => entities.next().ok_or(EncodeError)?,
        _ => return Err(EncodeError),
    })
}

/// Encodes a 64-bit integer: as a number if every JSON parser reads it exactly, otherwise as decimal text.
fn encode_long_integer(magnitude: u64, value: impl Into<Value> + ToString) -> Value {
    if magnitude > EXACT_INTEGER_MAX {
        Value::String(value.to_string())
    } else {
        value.into()
    }
}

/// Encodes the value of an option: as an object with the key `some` if the inner type can itself be `null`, otherwise
/// without a change.
fn wrap_some(inner: &WitType, value: Value) -> Value {
    if inner.encodes_null() {
        json!({"some": value})
    } else {
        value
    }
}

/// Encodes the payload of one case of a `result`. A case without a payload is `null`.
pub(crate) fn encode_payload(
    ty: Option<&WitType>,
    payload: Option<Val>,
    entities: &mut dyn Iterator<Item = Value>,
) -> Result<Value, EncodeError> {
    match (ty, payload) {
        (Some(ty), Some(payload)) => encode(ty, payload, entities),
        (None, None) => Ok(Value::Null),
        _ => Err(EncodeError),
    }
}

/// Returns the JSON name of the label with this WIT name.
fn json_name(labels: &[Label], wit_name: &str) -> Result<String, EncodeError> {
    labels
        .iter()
        .find(|label| label.wit == wit_name)
        .map(|label| label.json.clone())
        .ok_or(EncodeError)
}

fn encode_bytes(values: &[Val]) -> Result<Value, EncodeError> {
    let bytes = values
        .iter()
        .map(|value| match value {
            Val::U8(byte) => Ok(*byte),
            _ => Err(EncodeError),
        })
        .collect::<Result<Vec<_>, _>>()?;
    Ok(Value::String(STANDARD.encode(bytes)))
}

fn encode_float64(value: f64) -> Value {
    match Number::from_f64(value) {
        Some(number) => Value::Number(number),
        None if value.is_nan() => json!("NaN"),
        None if value > 0.0 => json!("Infinity"),
        None => json!("-Infinity"),
    }
}

/// Encodes the shortest number that parses to the same 32-bit float: 0.1, not 0.10000000149011612.
fn encode_float32(value: f32) -> Value {
    match value.to_string().parse::<f64>() {
        Ok(shortest) if value.is_finite() => encode_float64(shortest),
        _ => encode_float64(f64::from(value)),
    }
}
