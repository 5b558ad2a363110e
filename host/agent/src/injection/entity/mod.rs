//! The entities of a conversation: live objects that results returned, and the tools that act on them.

mod discovered_entity;
mod entities;
mod entity_group;
mod method_name;
mod numbered_object;
mod tool_names;

pub use discovered_entity::{DiscoveredEntity, EntityBinding, EntityIdentity};
pub use entities::Entities;
pub use entity_group::{EntityGroup, GroupAddition};
pub use numbered_object::number_objects;
pub use tool_names::write_entity_tool_names;

pub(super) use entity_group::MemberWithOwnTools;
pub(crate) use entity_group::shared_method_id;
pub(super) use method_name::method_tool_name;
