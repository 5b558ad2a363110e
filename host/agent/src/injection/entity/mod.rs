//! The entities of a conversation: live objects that results returned, and the tools that act on them.

mod discovered_entity;
mod entities;
mod method_name;
mod shared_entities;
mod tool_names;

pub use discovered_entity::{DiscoveredEntity, EntityBinding, EntityIdentity};
pub use entities::Entities;
pub use shared_entities::{SharedDiscovery, SharedEntities};
pub use tool_names::write_entity_tool_names;

pub(super) use method_name::method_tool_name;
pub(super) use shared_entities::MemberWithTools;
pub(crate) use shared_entities::shared_method_id;
