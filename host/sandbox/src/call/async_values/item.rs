//! The Rust types for the items of streams and the values of futures.

use wasmtime::component::{ComponentType, Lift, Lower, Val};

/// The minimum size of an item as JSON, in bytes: a digit and a comma.
const ITEM_BYTES_MIN: u64 = 2;

/// An item of a stream, or the value of a future.
pub(super) trait Item: ComponentType + Lift + Lower + Send + Sync + Unpin + 'static {
    /// Returns the minimum size of the item in the JSON of the result, in bytes.
    fn bytes_min(&self) -> u64 {
        ITEM_BYTES_MIN
    }

    /// Converts the item to a [`Val`].
    fn into_val(self) -> Val;

    /// Converts a [`Val`] to an item. Returns `None` for a value of another type.
    fn from_val(value: Val) -> Option<Self>;
}

macro_rules! scalar_items {
    ($($ty:ty => $val:ident),*) => {
        $(impl Item for $ty {
            fn into_val(self) -> Val {
                Val::$val(self)
            }

            fn from_val(value: Val) -> Option<Self> {
                match value {
                    Val::$val(value) => Some(value),
                    _ => None,
                }
            }
        })*
    };
}

scalar_items!(
    bool => Bool, i8 => S8, i16 => S16, u16 => U16, i32 => S32, u32 => U32, i64 => S64, u64 => U64,
    f32 => Float32, f64 => Float64, char => Char
);

/// A byte of a stream. The result contains the bytes as text or as a data URL, so each byte needs at least one byte.
impl Item for u8 {
    fn bytes_min(&self) -> u64 {
        1
    }

    fn into_val(self) -> Val {
        Val::U8(self)
    }

    fn from_val(value: Val) -> Option<Self> {
        match value {
            Val::U8(byte) => Some(byte),
            _ => None,
        }
    }
}

impl Item for String {
    fn bytes_min(&self) -> u64 {
        ITEM_BYTES_MIN + self.len() as u64
    }

    fn into_val(self) -> Val {
        Val::String(self)
    }

    fn from_val(value: Val) -> Option<Self> {
        match value {
            Val::String(text) => Some(text),
            _ => None,
        }
    }
}

/// The value of a `future` without a payload.
impl Item for () {
    fn into_val(self) -> Val {
        Val::Tuple(Vec::new())
    }

    fn from_val(value: Val) -> Option<Self> {
        matches!(value, Val::Tuple(items) if items.is_empty()).then_some(())
    }
}

/// The payload of the `ok` or `err` case of a `result`: a string, or nothing.
pub(super) trait CasePayload: ComponentType + Lift + Lower + Send + Sync + Unpin + 'static {
    /// Returns the minimum size of the payload in the JSON of the result, in bytes.
    fn bytes_min(&self) -> u64;

    /// Converts the payload to the content of a [`Val::Result`].
    fn into_payload(self) -> Option<Box<Val>>;

    /// Converts the content of a [`Val::Result`] to a payload. Returns `None` for a value of another type.
    fn from_payload(value: Option<Box<Val>>) -> Option<Self>;
}

impl CasePayload for () {
    fn bytes_min(&self) -> u64 {
        ITEM_BYTES_MIN
    }

    fn into_payload(self) -> Option<Box<Val>> {
        None
    }

    fn from_payload(value: Option<Box<Val>>) -> Option<Self> {
        value.is_none().then_some(())
    }
}

impl CasePayload for String {
    fn bytes_min(&self) -> u64 {
        Item::bytes_min(self)
    }

    fn into_payload(self) -> Option<Box<Val>> {
        Some(Box::new(self.into_val()))
    }

    fn from_payload(value: Option<Box<Val>>) -> Option<Self> {
        Self::from_val(*value?)
    }
}

impl<T: CasePayload, E: CasePayload> Item for Result<T, E> {
    fn bytes_min(&self) -> u64 {
        self.as_ref()
            .map_or_else(CasePayload::bytes_min, CasePayload::bytes_min)
    }

    fn into_val(self) -> Val {
        Val::Result(self.map(CasePayload::into_payload).map_err(CasePayload::into_payload))
    }

    fn from_val(value: Val) -> Option<Self> {
        match value {
            Val::Result(Ok(value)) => T::from_payload(value).map(Ok),
            Val::Result(Err(value)) => E::from_payload(value).map(Err),
            _ => None,
        }
    }
}

/// Calls a generic function with the Rust type of a WIT type: `with_scalar!(ty, function(arguments))`. The WIT type must be a
/// scalar or a string; the result is an error for any other type.
macro_rules! with_scalar {
    ($ty:expr, $function:ident($($argument:expr),*)) => {
        match $ty {
            WitType::Bool => $function::<bool>($($argument),*),
            WitType::S8 => $function::<i8>($($argument),*),
            WitType::U8 => $function::<u8>($($argument),*),
            WitType::S16 => $function::<i16>($($argument),*),
            WitType::U16 => $function::<u16>($($argument),*),
            WitType::S32 => $function::<i32>($($argument),*),
            WitType::U32 => $function::<u32>($($argument),*),
            WitType::S64 => $function::<i64>($($argument),*),
            WitType::U64 => $function::<u64>($($argument),*),
            WitType::F32 => $function::<f32>($($argument),*),
            WitType::F64 => $function::<f64>($($argument),*),
            WitType::Char => $function::<char>($($argument),*),
            WitType::String => $function::<String>($($argument),*),
            _ => Err(wasmtime::Error::msg("the type of a stream or future is not supported")),
        }
    };
}

/// Calls a generic function with the Rust type of a future's payload. The payload is a scalar, a string, nothing, or a `result`
/// in which each case has a string or nothing. Inspection rejects components with other payloads.
macro_rules! with_future_payload {
    ($payload:expr, $function:ident($($argument:expr),*)) => {
        match $payload {
            None => $function::<()>($($argument),*),
            Some(WitType::Result { ok, err }) => match (ok.is_some(), err.is_some()) {
                (false, false) => $function::<Result<(), ()>>($($argument),*),
                (false, true) => $function::<Result<(), String>>($($argument),*),
                (true, false) => $function::<Result<String, ()>>($($argument),*),
                (true, true) => $function::<Result<String, String>>($($argument),*),
            },
            Some(payload) => with_scalar!(payload, $function($($argument),*)),
        }
    };
}

pub(super) use {with_future_payload, with_scalar};
