//! Amounts in a manifest, checked while it is read, so that an error knows its place.

use std::time::Duration;

use serde::{Deserialize, Deserializer, de};

use crate::limits::{ByteCount, Span};

pub(super) fn span<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse::<Span>().map_err(de::Error::custom)?;
    Ok(Some(text))
}

pub(super) fn bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse::<ByteCount>().map_err(de::Error::custom)?;
    Ok(Some(text))
}

pub(super) fn parse_span(text: &str) -> Option<Duration> {
    text.parse::<Span>().ok().map(|span| span.0)
}

pub(super) fn parse_bytes(text: &str) -> Option<u64> {
    text.parse::<ByteCount>().ok().map(|bytes| bytes.0)
}
