//! Entities: live resources that calls returned, whose methods are tools.

pub(crate) mod entity;
pub(crate) mod harvest;
