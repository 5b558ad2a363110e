//! Objects whose methods are tools.

use std::sync::Arc;

use super::contract::Tool;

/// Which instance stays bound when the same entity is returned again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Rebinding {
    /// The live one stays, so that a cart keeps its items.
    #[default]
    Keep,
    /// The newest one takes its place.
    Latest,
}

/// A live object that brings its own tools into the conversation when a tool returns it.
///
/// Plugin resources and Rust types use the same trait. Two objects with the same [`key`](ToolProvider::key) are one entity.
pub trait ToolProvider: Send + Sync {
    /// The type's name in tool names: `customer`.
    fn prefix(&self) -> &str;

    /// What tells this object from others of its type; `None` makes it impossible to recognise.
    fn instance_id(&self) -> Option<String>;

    /// The object's methods as tools, bound to it, named `<prefix>_<id>_<method>` first.
    fn tools(&self) -> Vec<Arc<dyn Tool>>;

    /// Which instance stays when the same entity is returned again.
    fn rebinding(&self) -> Rebinding {
        Rebinding::Keep
    }

    /// The namespace of the identity, so that one plugin can never rebind another's entity.
    fn namespace(&self) -> &str {
        "native"
    }

    /// How many entities lie between this one and a tool that was there from the start.
    fn depth(&self) -> u32 {
        1
    }
}

/// Writes an entity's id as part of a tool name: `c-123` becomes `c123`.
///
/// `None` when nothing remains, so that the caller takes a hash instead.
#[must_use]
pub fn id_in_name(id: &str) -> Option<String> {
    let kept: String = id.chars().filter(char::is_ascii_alphanumeric).collect();
    (!kept.is_empty()).then_some(kept)
}
