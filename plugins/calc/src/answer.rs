//! Formatting of results.

use num_bigint::BigInt;
use num_integer::Integer;
use num_rational::BigRational;
use num_traits::{One, Signed, ToPrimitive, Zero};

use crate::number::{Number, power_of_ten};

/// Maximum number of decimal places of an exact result.
const PLACES_MAX: usize = 60;

/// Number of significant digits of a rounded exact number.
const ROUNDED_DIGITS: i64 = 30;

/// Number of reliable significant digits of a floating-point number.
const FLOAT_DIGITS: usize = 15;

/// The result of an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The result as a decimal number.
    pub value: String,
    /// Whether the decimal number is exact.
    pub exact: bool,
    /// The exact result as a fraction, if the decimal number is rounded.
    pub fraction: Option<String>,
}

impl Answer {
    pub(crate) fn of(number: &Number) -> Self {
        match number {
            Number::Rounded(number) => Self {
                value: format_float(*number),
                exact: false,
                fraction: None,
            },
            Number::Exact(number) => match format_terminating(number) {
                Some(value) => Self {
                    value,
                    exact: true,
                    fraction: None,
                },
                None => Self {
                    value: format_rounded(number),
                    exact: false,
                    fraction: Some(number.to_string()),
                },
            },
        }
    }
}

/// Formats a number with its reliable digits.
fn format_float(number: f64) -> String {
    let digits = format!("{number:.*e}", FLOAT_DIGITS - 1);
    let rounded: f64 = digits.parse().unwrap_or(number);
    let text = format!("{rounded:?}");
    let text = text.strip_suffix(".0").unwrap_or(&text);
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// Formats all digits. `None` if the decimal fraction does not end, or has more than [`PLACES_MAX`] places.
fn format_terminating(number: &BigRational) -> Option<String> {
    let mut rest = number.denom().clone();
    let mut places = 0;
    for prime in [2, 5] {
        let mut times = 0;
        while rest.is_multiple_of(&BigInt::from(prime)) {
            rest /= prime;
            times += 1;
            if times > PLACES_MAX {
                return None;
            }
        }
        places = places.max(times);
    }
    if !rest.is_one() {
        return None;
    }
    let units = number * BigRational::from(power_of_ten(places as u64)?);
    Some(with_point(&units.to_integer(), places))
}

/// Formats an integer that counts units of the last decimal place.
fn with_point(units: &BigInt, places: usize) -> String {
    let sign = if units.is_negative() { "-" } else { "" };
    let digits = units.magnitude().to_string();
    if places == 0 {
        return format!("{sign}{digits}");
    }
    let digits = format!("{digits:0>width$}", width = places + 1);
    let (integer, fraction) = digits.split_at(digits.len() - places);
    format!("{sign}{integer}.{fraction}")
}

/// Rounds to significant digits, half away from zero. Very large and small numbers use exponents, as in `1.5e-40`.
fn format_rounded(number: &BigRational) -> String {
    let magnitude = number.abs();
    let mut exponent = decimal_exponent(&magnitude);
    let mut digits = times_power_of_ten(&magnitude, ROUNDED_DIGITS - 1 - exponent)
        .round()
        .to_integer()
        .to_string();
    if digits.len() as i64 > ROUNDED_DIGITS {
        exponent += 1;
        digits.pop();
    }
    let sign = if number.is_negative() { "-" } else { "" };
    let digits = digits.trim_end_matches('0');
    if (-7..ROUNDED_DIGITS).contains(&exponent) {
        let places = digits.len() as i64 - 1 - exponent;
        let units: BigInt = digits.parse().unwrap_or_default();
        return match usize::try_from(places) {
            Ok(places) => format!("{sign}{}", with_point(&units, places)),
            Err(_) => format!("{sign}{}", times_power_of_ten(&units.into(), -places).to_integer()),
        };
    }
    let (first, rest) = digits.split_at(1.min(digits.len()));
    let point = if rest.is_empty() { "" } else { "." };
    format!("{sign}{first}{point}{rest}e{exponent}")
}

/// Returns the number times a power of ten.
fn times_power_of_ten(number: &BigRational, exponent: i64) -> BigRational {
    let scale = BigRational::from(BigInt::from(10).pow(exponent.unsigned_abs().to_u32().unwrap_or(u32::MAX)));
    if exponent < 0 { number / scale } else { number * scale }
}

/// Returns the power of ten of the first digit: 0 for `1.5`, -1 for `0.15`.
fn decimal_exponent(number: &BigRational) -> i64 {
    if number.is_zero() {
        return 0;
    }
    let length = |number: &BigInt| number.to_string().len() as i64;
    let guess = length(number.numer()) - length(number.denom());
    // The estimate is exact or one too high.
    if *number >= times_power_of_ten(&BigRational::one(), guess) {
        guess
    } else {
        guess - 1
    }
}
