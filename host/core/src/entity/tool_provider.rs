//! Objects whose methods are tools.

use std::any::Any;
use std::sync::Arc;

use crate::Tool;

use crate::text::short_hash;

/// Which instance stays bound when the same entity is returned again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rebinding {
    /// The live one stays, so that a cart keeps its items.
    #[default]
    Keep,
    /// The newest one takes its place.
    Latest,
}

/// A live object that brings its own tools into the conversation when a tool returns it.
///
/// Plugin resources and Rust types use the same trait. Two objects of the same namespace, prefix and id are one entity.
pub trait ToolProvider: Send + Sync {
    /// The type's name in tool names: `customer`.
    fn prefix(&self) -> &str;

    /// What tells this object from others of its type; `None` makes it impossible to recognise.
    fn instance_id(&self) -> Option<String>;

    /// The object's methods as tools, bound to it, named with [`entity_tool_names`].
    ///
    /// The [`ToolId`](crate::ToolId) of each must be the same whenever this entity is returned, and no other entity's.
    fn tools(&self) -> Vec<Arc<dyn Tool>>;

    /// Which instance stays when the same entity is returned again.
    fn rebinding(&self) -> Rebinding {
        Rebinding::Keep
    }

    /// The namespace of the identity, so that one plugin can never rebind another's entity.
    fn namespace(&self) -> &str {
        "native"
    }

    /// The Rust object behind the methods, where there is one, for those who know its type.
    fn object(&self) -> Option<&(dyn Any + Send + Sync)> {
        None
    }

    /// How many entities lie between this one and a tool that was there from the start.
    fn depth(&self) -> u32 {
        1
    }
}

/// Writes an entity's id as part of a tool name: `c-123` becomes `c123`.
///
/// `None` when nothing remains, so that the caller takes a hash instead.
fn id_in_name(id: &str) -> Option<String> {
    let kept: String = id.chars().filter(char::is_ascii_alphanumeric).collect();
    (!kept.is_empty()).then_some(kept)
}

/// Names a method of an entity as a model may see it, the best name first: `customer_c123_get_average_spend`.
///
/// The names after the first hold six hex digits of a hash of the whole id, for when the first is another entity's (`c-123`
/// and `c123`) or too long. A [`ToolSet`](crate::ToolSet) takes the first that fits and is free.
///
/// ```
/// let names = toolwit_core::entity_tool_names("customer", "c-123", "get_average_spend");
/// assert_eq!(names[0], "customer_c123_get_average_spend");
/// ```
#[must_use]
pub fn entity_tool_names(prefix: &str, id: &str, method: &str) -> Vec<String> {
    let prefix = if prefix.is_empty() { "tool" } else { prefix };
    let hash = short_hash(id);
    let mut names = Vec::with_capacity(3);
    if let Some(kept) = id_in_name(id) {
        names.push(format!("{prefix}_{kept}_{method}"));
        names.push(format!("{prefix}_{kept}_{hash}_{method}"));
    }
    names.push(format!("{prefix}_{hash}_{method}"));
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    // accept: 30
    #[test]
    fn the_id_is_in_the_name_and_a_hash_tells_like_ids_apart() {
        assert_eq!(
            entity_tool_names("customer", "c-123", "get")[..2],
            [
                "customer_c123_get".to_owned(),
                format!("customer_c123_{}_get", short_hash("c-123"))
            ]
        );
        assert_ne!(
            entity_tool_names("customer", "c-123", "get")[1],
            entity_tool_names("customer", "c123", "get")[1]
        );
    }

    // accept: 30, accept: 148
    #[test]
    fn an_id_without_letters_is_named_by_its_hash() {
        assert_eq!(
            entity_tool_names("", "--", "get"),
            [format!("tool_{}_get", short_hash("--"))]
        );
    }
}
