//! The limits of the process and of a call, each with its default and the reason for it.
//!
//! [`EngineLimits`] are ceilings of the process. [`CallLimits`] belong to one call and are made by [`effective`]:
//! the smallest of the ceiling, what the operator allows and what was asked for.

mod call;
mod engine;
mod unit;

pub use call::{CallLimits, LimitRequest, effective};
pub use engine::EngineLimits;
pub use unit::{ByteCount, Span, UnitError};
