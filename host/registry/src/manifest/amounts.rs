//! Amounts with units in a manifest or `toolwit.toml`. They are checked by the parser, so that errors have a line and a column.

use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, de};

use toolwit_core::limits::{ByteCount, Span};

pub(crate) fn span<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    checked::<Span, D>(deserializer)
}

pub(crate) fn bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    checked::<ByteCount, D>(deserializer)
}

/// Deserializes an optional amount: a stored manifest has `null` for each missing one.
fn checked<'de, A: FromStr<Err: Display>, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    text.iter()
        .try_for_each(|text| text.parse::<A>().map(drop))
        .map_err(de::Error::custom)?;
    Ok(text)
}

pub(crate) fn parse_span(text: &str) -> Option<Duration> {
    text.parse::<Span>().ok().map(|span| span.0)
}

pub(crate) fn parse_bytes(text: &str) -> Option<u64> {
    text.parse::<ByteCount>().ok().map(|bytes| bytes.0)
}
