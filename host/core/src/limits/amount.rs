//! Amounts of limits.

use std::fmt;
use std::time::Duration;

use super::{ByteCount, Span};

/// The amount of a limit, with its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// A number of things.
    Count(u64),
    /// A number of bytes.
    Bytes(u64),
    /// A span of time.
    Time(Duration),
    /// The number of processors of the machine.
    Processors,
    /// No limit.
    Unlimited,
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => f.write_str(&with_separators(*count)),
            Self::Bytes(bytes) => ByteCount(*bytes).fmt(f),
            Self::Time(time) => Span(*time).fmt(f),
            Self::Processors => f.write_str("number of processors"),
            Self::Unlimited => f.write_str("unlimited"),
        }
    }
}

/// Converts the value of a limit to the type that its [`Amount`] holds: `u64` or [`Duration`].
pub(super) trait IntoAmount<T> {
    fn into_amount(self) -> T;
}

impl IntoAmount<u64> for u64 {
    fn into_amount(self) -> u64 {
        self
    }
}

impl IntoAmount<u64> for u32 {
    fn into_amount(self) -> u64 {
        self.into()
    }
}

impl IntoAmount<u64> for usize {
    fn into_amount(self) -> u64 {
        self as u64
    }
}

impl IntoAmount<Duration> for Duration {
    fn into_amount(self) -> Duration {
        self
    }
}

/// Formats a number with a comma after each group of three digits.
fn with_separators(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (position, digit) in digits.char_indices() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_units_and_separators() {
        assert_eq!(Amount::Count(20_000_000_000).to_string(), "20,000,000,000");
        assert_eq!(Amount::Count(999).to_string(), "999");
        assert_eq!(Amount::Bytes(64 << 10).to_string(), "64 KiB");
        assert_eq!(Amount::Time(Duration::from_secs(5)).to_string(), "5 s");
    }
}
