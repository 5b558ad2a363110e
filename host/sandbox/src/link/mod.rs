//! Compilation of components, and the host interfaces that they are linked to.
//!
//! `compile` may use `host`, and both may use `limits`. Only `host` gives a guest access to anything.

pub(crate) mod compile;
pub(crate) mod host;
pub(crate) mod limits;
