//! The error of a result whose streams are too large.

/// The error of a result whose streams and futures exceed the limit. The field is the limit in bytes.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the streams of the result have more than {0} bytes")]
pub(crate) struct StreamsTooLarge(pub(crate) u64);
