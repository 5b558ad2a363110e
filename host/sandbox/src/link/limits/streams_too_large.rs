//! The error of streams in a result that exceed its limit.

/// The error of a result whose streams and futures exceed its limit, which is the value in bytes.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the streams of the result have more than {0} bytes")]
pub(crate) struct StreamsTooLarge(pub(crate) u64);
