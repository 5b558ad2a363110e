//! Amounts in a manifest or `toolwit.toml`: durations, numbers of bytes and a percentage. Deserialization checks them,
//! so that errors have a line and a column.

use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, de};

use toolwit_core::limits::{ByteCount, Span};

/// Deserializes a duration with a unit, such as `5s`, and keeps its text.
pub(crate) fn deserialize_duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    deserialize_amount::<Span, D>(deserializer)
}

/// Deserializes a number of bytes with a unit, such as `64MiB`, and keeps its text.
pub(crate) fn deserialize_bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    deserialize_amount::<ByteCount, D>(deserializer)
}

/// Deserializes [`RankingHints::quality`](super::RankingHints::quality), in percent.
pub(super) fn deserialize_quality<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u8>, D::Error> {
    match Option::<u8>::deserialize(deserializer)? {
        Some(percent) if percent > 100 => Err(de::Error::custom("the quality must be from 0 to 100 percent")),
        percent => Ok(percent),
    }
}

/// Deserializes an amount and keeps its text. It is optional, because a manifest in the store has `null` for a missing
/// amount.
fn deserialize_amount<'de, A: FromStr<Err: Display>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<String>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    text.iter()
        .try_for_each(|text| text.parse::<A>().map(drop))
        .map_err(de::Error::custom)?;
    Ok(text)
}

/// Parses a duration with a unit. `None` if the text is not a duration.
pub(crate) fn parse_duration(text: &str) -> Option<Duration> {
    text.parse::<Span>().ok().map(|span| span.0)
}

/// Parses a number of bytes with a unit. `None` if the text is not a number of bytes.
pub(crate) fn parse_bytes(text: &str) -> Option<u64> {
    text.parse::<ByteCount>().ok().map(|bytes| bytes.0)
}
