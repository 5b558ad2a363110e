//! Entities: live resources that calls returned, whose methods are tools.

pub(crate) mod harvest;
pub(crate) mod plugin_entity;
