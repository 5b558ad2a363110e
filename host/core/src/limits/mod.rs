//! The limits of the process and of a call, each with its default and the reason for it.
//!
//! [`EngineLimits`] are ceilings of the process. [`CallLimits`] belong to one call. [`effective`] computes them: the
//! minimum of the ceiling, the operator's limit and the requested limit.

mod call;
mod engine;
mod unit;

pub use call::{CallLimits, LONG_RUNNING_WALL, LimitRequest, effective};
pub use engine::EngineLimits;
pub use unit::{ByteCount, Span, UnitError};
