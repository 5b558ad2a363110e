//! Live resources of guests, and the tools that their methods become.

pub(crate) mod entity;
pub(crate) mod harvest;
