//! Decodes JSON numbers into WIT numbers. A number that is out of range is refused, and so is an inexact number for an
//! integer type.

use serde_json::Value;

use super::decode::DecodeError;

/// The largest 64-bit float that cannot be the result of rounding another integer: 2^53 − 1 (`Number.MAX_SAFE_INTEGER` in
/// JavaScript).
const EXACT_FLOAT_MAX: f64 = 9_007_199_254_740_991.0;

/// Converts a number to an integer without loss: `3.0` is an integer, and `3.5` is not. Returns `None` for a value that is not
/// a number, for a number with a fraction, and for a float that is so large that it may have been rounded.
fn exact_integer(value: &Value) -> Option<i128> {
    let number = value.as_number()?;
    if let Some(integer) = number.as_i128() {
        return Some(integer);
    }
    let float = number.as_f64()?;
    #[expect(clippy::cast_possible_truncation, reason = "the value is an integer below 2^53")]
    (float.fract() == 0.0 && float.abs() <= EXACT_FLOAT_MAX).then_some(float as i128)
}

/// An integer type with its smallest and its largest value.
pub(crate) trait IntegerRange: TryFrom<i128> {
    const RANGE: (i128, i128);
}

macro_rules! integer_range {
    ($($ty:ty),*) => { $(impl IntegerRange for $ty { const RANGE: (i128, i128) = (<$ty>::MIN as i128, <$ty>::MAX as i128); })* };
}

integer_range!(i8, u8, i16, u16, i32, u32, i64, u64);

pub(crate) fn decode_integer<T: IntegerRange>(value: &Value) -> Result<T, DecodeError> {
    exact_integer(value)
        .and_then(|integer| T::try_from(integer).ok())
        .ok_or_else(|| integer_error::<T>(value))
}

fn integer_error<T: IntegerRange>(value: &Value) -> DecodeError {
    let (min, max) = T::RANGE;
    let range = format!("an integer from {min} to {max}");
    match value {
        // The number has a fraction, or is so large that the sender may have rounded it.
        Value::Number(number) if number.is_f64() && exact_integer(value).is_none() => {
            DecodeError::expected(&format!("{range}, without fraction or exponent"), value)
        }
        _ => DecodeError::expected(&range, value),
    }
}

/// Decodes a 64-bit integer as [`decode_integer`] does. Also accepts decimal text, because many senders round JSON numbers
/// beyond 2^53.
pub(crate) fn decode_long_integer<T: IntegerRange>(value: &Value) -> Result<T, DecodeError> {
    let Value::String(text) = value else {
        return decode_integer(value);
    };
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_decimal = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let (min, max) = T::RANGE;
    is_decimal
        .then(|| text.parse::<i128>().ok())
        .flatten()
        .and_then(|integer| T::try_from(integer).ok())
        .ok_or_else(|| {
            DecodeError::expected(
                &format!("an integer from {min} to {max}, or one as decimal text"),
                value,
            )
        })
}

/// Decodes a 64-bit float. The texts `NaN`, `Infinity` and `-Infinity` stand for values that JSON numbers cannot have.
pub(crate) fn decode_float64(value: &Value) -> Result<f64, DecodeError> {
    match value {
        Value::String(name) => match name.as_str() {
            "NaN" => Ok(f64::NAN),
            "Infinity" => Ok(f64::INFINITY),
            "-Infinity" => Ok(f64::NEG_INFINITY),
            _ => Err(DecodeError::expected(
                "a number, \"NaN\", \"Infinity\" or \"-Infinity\"",
                value,
            )),
        },
        _ => value.as_f64().ok_or_else(|| DecodeError::expected("a number", value)),
    }
}

/// Decodes a 32-bit float as [`decode_float64`] does. Rounds to the nearest 32-bit float.
pub(crate) fn decode_float32(value: &Value) -> Result<f32, DecodeError> {
    let float64 = decode_float64(value)?;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "rounding to the nearest is intended; overflow is checked below"
    )]
    let float32 = float64 as f32;
    if float32.is_infinite() && float64.is_finite() {
        return Err(DecodeError::expected("a number that fits 32 bits", value));
    }
    Ok(float32)
}
