//! Amounts with units, such as `64MiB` and `5s`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The error for text that is not an amount.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a {expected}; write {example}")]
pub struct UnitError {
    text: String,
    expected: &'static str,
    example: &'static str,
}

/// A number of bytes, written as `65536`, `64KiB`, `64MiB`, `1GiB`, or in powers of ten as `64kB`, `64MB`, `1GB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ByteCount(pub u64);

/// A span of time, written as `250ms`, `5s`, `2m` or `1h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Span(pub Duration);

/// Units of byte counts, each with its number of bytes.
const BYTE_UNITS: [(&str, u64); 8] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("B", 1),
    ("", 1),
];

/// Units of time, each with its number of milliseconds.
const SPAN_UNITS_MS: [(&str, u64); 4] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)];

impl FromStr for ByteCount {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        parse(text, &BYTE_UNITS).map(Self).ok_or_else(|| UnitError {
            text: text.to_owned(),
            expected: "number of bytes",
            example: "`65536`, `64KiB` or `64MB`",
        })
    }
}

impl FromStr for Span {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        parse(text, &SPAN_UNITS_MS)
            .map(|ms| Self(Duration::from_millis(ms)))
            .ok_or_else(|| UnitError {
                text: text.to_owned(),
                expected: "span of time",
                example: "`250ms`, `5s` or `2m`",
            })
    }
}

impl TryFrom<String> for ByteCount {
    type Error = UnitError;

    fn try_from(text: String) -> Result<Self, UnitError> {
        text.parse()
    }
}

impl TryFrom<String> for Span {
    type Error = UnitError;

    fn try_from(text: String) -> Result<Self, UnitError> {
        text.parse()
    }
}

/// Converts to the exact number as text, which can be parsed again.
impl From<ByteCount> for String {
    fn from(ByteCount(bytes): ByteCount) -> Self {
        bytes.to_string()
    }
}

/// Converts to the time in milliseconds, rounded down, which can be parsed again.
impl From<Span> for String {
    fn from(Span(time): Span) -> Self {
        format!("{}ms", time.as_millis())
    }
}

/// Parses digits and a unit. Returns the number multiplied by the factor of the unit. Signs, fractions and overflow are
/// invalid.
fn parse(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let text = text.trim();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let (_, factor) = units.iter().find(|(name, _)| *name == unit.trim())?;
    number.parse::<u64>().ok()?.checked_mul(*factor)
}

impl fmt::Display for ByteCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let exact = [("GiB", 1_u64 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)]
            .into_iter()
            .find(|(_, factor)| self.0 >= *factor && self.0.is_multiple_of(*factor));
        match exact {
            Some((unit, factor)) => write!(f, "{} {unit}", self.0 / factor),
            None => write!(f, "{} bytes", self.0),
        }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = self.0.as_millis();
        if ms.is_multiple_of(1_000) {
            write!(f, "{} s", ms / 1_000)
        } else {
            write!(f, "{ms} ms")
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    // attack: D4
    #[test]
    fn amounts_need_a_valid_unit_and_must_not_overflow() {
        assert_eq!("64MiB".parse(), Ok(ByteCount(64 << 20)));
        assert_eq!("10 MB".parse(), Ok(ByteCount(10_000_000)));
        assert_eq!("65536".parse(), Ok(ByteCount(65_536)));
        assert_eq!("1500ms".parse(), Ok(Span(Duration::from_millis(1_500))));
        assert_eq!("2m".parse(), Ok(Span(Duration::from_secs(120))));
        for bad in [
            "",
            "-1",
            "1e309",
            "99999999999999999999",
            "0.5",
            "NaN",
            "10 XB",
            "18446744073709551615KiB",
            "MiB",
        ] {
            assert!(bad.parse::<ByteCount>().is_err(), "{bad}");
        }
        for bad in ["", "5", "-5s", "0.5s", "5 years"] {
            assert!(bad.parse::<Span>().is_err(), "{bad}");
        }
    }

    #[test]
    fn amounts_display_with_their_unit() {
        assert_eq!(ByteCount(64 << 20).to_string(), "64 MiB");
        assert_eq!(ByteCount(1_000).to_string(), "1000 bytes");
        assert_eq!(Span(Duration::from_secs(5)).to_string(), "5 s");
    }
}
