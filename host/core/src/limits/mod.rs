//! The limits of the process and of a call, each with its default and the reason for it.
//!
//! [`EngineLimits`] are ceilings of the process. [`CallLimits`] belong to one call. [`effective`] computes them: the
//! minimum of the ceiling, the operator's limit and the requested limit.

mod call;
mod engine;
mod unit;

pub use call::{CallLimits, LimitRequest, effective};
pub use engine::EngineLimits;
pub use unit::{ByteCount, Span, UnitError};

/// Maximum number of entities of one type in a result for which each gets its own tools. Beyond it, they share one set of
/// tools. It applies to native objects and to resources of plugins.
pub const ENTITIES_PER_RESULT_MAX: usize = 16;
