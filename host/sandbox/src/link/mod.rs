//! Compilation of components, and the host interfaces that they are linked to.
//!
//! `compile` may use `host`, and both may use `limits`. A guest reaches resources outside of the sandbox only through `host`.

pub(crate) mod compile;
pub(crate) mod host;
pub(crate) mod limits;
