//! From JSON to the numbers of WIT: each in its range, exactly, or not at all.

use serde_json::Value;

use super::decode::DecodeError;

/// The largest integer below which no other one reads as the same 64-bit float.
const EXACT_FLOAT_MAX: f64 = 9_007_199_254_740_991.0;

/// Reads a whole number exactly; `3.0` is one, `3.5` is not.
fn whole(value: &Value) -> Option<i128> {
    let number = value.as_number()?;
    if let Some(whole) = number.as_i128() {
        return Some(whole);
    }
    let float = number.as_f64()?;
    #[expect(clippy::cast_possible_truncation, reason = "the value is a whole number below 2^53")]
    (float.fract() == 0.0 && float.abs() <= EXACT_FLOAT_MAX).then_some(float as i128)
}

pub(crate) trait Bounded: TryFrom<i128> {
    const BOUNDS: (i128, i128);
}

macro_rules! bounded {
    ($($ty:ty),*) => { $(impl Bounded for $ty { const BOUNDS: (i128, i128) = (<$ty>::MIN as i128, <$ty>::MAX as i128); })* };
}

bounded!(i8, u8, i16, u16, i32, u32, i64, u64);

pub(crate) fn integer<T: Bounded>(value: &Value) -> Result<T, DecodeError> {
    whole(value)
        .and_then(|whole| T::try_from(whole).ok())
        .ok_or_else(|| not_an_integer::<T>(value))
}

fn not_an_integer<T: Bounded>(value: &Value) -> DecodeError {
    let (min, max) = T::BOUNDS;
    let bounds = format!("an integer from {min} to {max}");
    match value {
        // Nobody can say which whole number was meant.
        Value::Number(number) if number.is_f64() && whole(value).is_none() => {
            DecodeError::expected(&format!("{bounds}, without fraction or exponent"), value)
        }
        _ => DecodeError::expected(&bounds, value),
    }
}

/// Like [`integer`], and takes decimal text too, since JSON numbers beyond 2^53 do not survive every sender.
pub(crate) fn long_integer<T: Bounded>(value: &Value) -> Result<T, DecodeError> {
    let Value::String(text) = value else {
        return integer(value);
    };
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_decimal = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    let (min, max) = T::BOUNDS;
    is_decimal
        .then(|| text.parse::<i128>().ok())
        .flatten()
        .and_then(|whole| T::try_from(whole).ok())
        .ok_or_else(|| {
            DecodeError::expected(
                &format!("an integer from {min} to {max}, or one as decimal text"),
                value,
            )
        })
}

pub(crate) fn float64(value: &Value) -> Result<f64, DecodeError> {
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

pub(crate) fn float32(value: &Value) -> Result<f32, DecodeError> {
    let wide = float64(value)?;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "rounding to the nearest is meant; overflow is caught below"
    )]
    let narrow = wide as f32;
    if narrow.is_infinite() && wide.is_finite() {
        return Err(DecodeError::expected("a number that fits 32 bits", value));
    }
    Ok(narrow)
}
