//! The entities of a conversation: live objects that results returned, and the tools that act on them.

mod discovered;
mod entities;
mod method_name;
mod shared;
mod tool_names;

pub use discovered::{DiscoveredEntity, EntityBinding, EntityIdentity};
pub use entities::Entities;
pub use shared::{SharedDiscovery, SharedEntities};
pub use tool_names::write_entity_tool_names;

pub(super) use method_name::method_tool_name;
pub(super) use shared::MemberWithTools;
pub(crate) use shared::shared_method_id;
