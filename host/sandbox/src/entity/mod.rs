//! Entities: live resources that calls returned, whose methods are tools.

pub(crate) mod entity_gatherer;
pub(crate) mod plugin_entity;
