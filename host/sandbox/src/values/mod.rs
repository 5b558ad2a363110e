//! The mapping between component values and JSON: one type description determines the schema, the decoder and the encoder.

pub(crate) mod decode;
pub(crate) mod decode_number;
pub(crate) mod dynamic_export;
pub(crate) mod encode;
pub(crate) mod interceptor_export;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::unreachable)]
pub(crate) mod mapping_tests;
pub(crate) mod schema;
pub(crate) mod shared_text;
pub(crate) mod tool_result;
pub(crate) mod types;
