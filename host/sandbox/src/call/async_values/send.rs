//! Writing the streams and futures in the arguments of a call.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use wasmtime::StoreContextMut;
use wasmtime::component::{FutureReader, StreamReader, Val};

use super::item::{Item, with_future_payload, with_scalar};
use crate::link::host::host_state::HostState;
use crate::values::types::{DATA_URL_START, WitType};

/// Replaces the decoded content of each stream and future in an argument by a handle from which the guest reads it.
pub(super) fn insert_handles(
    store: &mut StoreContextMut<'_, HostState>,
    ty: &WitType,
    value: &mut Val,
) -> wasmtime::Result<()> {
    if !ty.holds_streams() {
        return Ok(());
    }
    match (ty, value) {
        (WitType::Stream(item), value) => {
            // `Val::Bool` is a placeholder until the handle replaces it.
            let content = std::mem::replace(value, Val::Bool(false));
            *value = match (item.as_ref(), content) {
                (WitType::U8, Val::String(text)) => stream_from_items(store, decode_bytes(text)?)?,
                (item, Val::List(items)) => with_scalar!(item, stream_from_vals(store, items))?,
                _ => return Err(type_mismatch()),
            };
        }
        (WitType::Future(payload), value) => {
            let payload_value = std::mem::replace(value, Val::Bool(false));
            *value = with_future_payload!(payload.as_deref(), future_from_val(store, payload_value))?;
        }
        (WitType::List(item), Val::List(values)) => {
            for value in values {
                insert_handles(store, item, value)?;
            }
        }
        (WitType::Tuple(types), Val::Tuple(values)) => {
            for (ty, value) in types.iter().zip(values) {
                insert_handles(store, ty, value)?;
            }
        }
        (WitType::Record(fields), Val::Record(values)) => {
            for (field, (_, value)) in fields.iter().zip(values) {
                insert_handles(store, &field.ty, value)?;
            }
        }
        (WitType::Variant(cases), Val::Variant(name, Some(value))) => {
            let case = cases.iter().find(|case| case.label.wit == *name);
            if let Some(ty) = case.and_then(|case| case.ty.as_ref()) {
                insert_handles(store, ty, value)?;
            }
        }
        (WitType::Option(ty), Val::Option(Some(value)))
        | (WitType::Result { ok: Some(ty), .. }, Val::Result(Ok(Some(value))))
        | (WitType::Result { err: Some(ty), .. }, Val::Result(Err(Some(value)))) => insert_handles(store, ty, value)?,
        _ => {}
    }
    Ok(())
}

fn stream_from_vals<T: Item>(store: &mut StoreContextMut<'_, HostState>, items: Vec<Val>) -> wasmtime::Result<Val> {
    let items = items.into_iter().map(T::from_val).collect::<Option<Vec<_>>>();
    stream_from_items(store, items.ok_or_else(type_mismatch)?)
}

fn stream_from_items<T: Item>(store: &mut StoreContextMut<'_, HostState>, items: Vec<T>) -> wasmtime::Result<Val> {
    let reader = StreamReader::new(&mut *store, items)?;
    Ok(Val::Stream(reader.try_into_stream_any(store)?))
}

fn future_from_val<T: Item>(store: &mut StoreContextMut<'_, HostState>, value: Val) -> wasmtime::Result<Val> {
    let value = T::from_val(value).ok_or_else(type_mismatch)?;
    let reader = FutureReader::new(&mut *store, async move { Ok::<_, wasmtime::Error>(value) })?;
    Ok(Val::Future(reader.try_into_future_any(store)?))
}

/// Decodes the argument for a `stream<u8>`: a data URL to the bytes that it encodes, any other text to its UTF-8 bytes.
fn decode_bytes(text: String) -> wasmtime::Result<Vec<u8>> {
    match text.strip_prefix(DATA_URL_START) {
        Some(encoded) => Ok(STANDARD.decode(encoded)?),
        None => Ok(text.into_bytes()),
    }
}

/// Creates the error for a value that does not have the type of its stream or future. The error is not expected, because the
/// arguments were decoded with the same types.
fn type_mismatch() -> wasmtime::Error {
    wasmtime::Error::msg("an argument does not have the type of its parameter")
}
