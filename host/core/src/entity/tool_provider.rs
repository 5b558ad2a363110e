//! The trait of entities: live objects whose methods are tools.

use std::any::Any;
use std::sync::Arc;

use crate::Tool;
use crate::text::short_hash;

/// The policy for an entity that a call returns again: it decides which instance the tools of the entity use from then on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rebinding {
    /// The first instance, so that a shopping cart keeps its items.
    #[default]
    Keep,
    /// The newest instance.
    Latest,
}

/// A live object whose methods become tools of the conversation when a call returns it.
///
/// Resources of plugins and objects in Rust are providers. Objects with the same namespace, prefix and id are one entity. A
/// provider can also represent all objects of a type. These objects then share one set of tools, which take the id as an
/// argument.
pub trait ToolProvider: Send + Sync {
    /// Returns the prefix of tool names, such as `customer`.
    fn prefix(&self) -> &str;

    /// Returns the id of this object, which is unique among the objects of its type. Returns `None` if the object cannot be
    /// recognised when a call returns it again, or if the provider represents all objects of its type.
    fn instance_id(&self) -> Option<String>;

    /// Returns the methods as tools. The tools of an object with an id are named with [`entity_tool_names`].
    ///
    /// A method must have the same [`ToolId`](crate::ToolId) whenever a call returns this entity. Methods of different
    /// entities must have different [`ToolId`](crate::ToolId)s.
    fn tools(&self) -> Vec<Arc<dyn Tool>>;

    /// Returns the policy that decides which instance the tools use after a call returns the entity again.
    fn rebinding(&self) -> Rebinding {
        Rebinding::Keep
    }

    /// Returns the namespace of the entity's identity. It prevents one plugin from rebinding an entity of another plugin.
    fn namespace(&self) -> &str {
        "native"
    }

    /// Returns the Rust object, for callers that know its type. By default, returns `None`, as resources of plugins do.
    fn object(&self) -> Option<&(dyn Any + Send + Sync)> {
        None
    }

    /// Returns the version of the code that the object belongs to, such as the digest of a plugin. An object of another version
    /// never shares state with the earlier objects of its type: if a call returns an entity in another version, its tools act on
    /// the new object, whatever its [`rebinding`](Self::rebinding) is. By default, the text is empty.
    fn version(&self) -> &str {
        ""
    }
}

/// Removes all characters except ASCII letters and digits from an id: `c-123` becomes `c123`. Returns `None` if no character
/// remains.
fn alphanumeric_id(id: &str) -> Option<String> {
    let short_id: String = id.chars().filter(char::is_ascii_alphanumeric).collect();
    (!short_id.is_empty()).then_some(short_id)
}

/// Returns the candidate names of an entity's method, the preferred one first: `customer_c123_get_average_spend`.
///
/// The second name adds six hex digits of a hash of the id. It is used if another tool has the first name, as for the ids
/// `c-123` and `c123`. The last name contains only the hash. It is used if the other names are too long. If the id has no
/// letter or digit, it is the only name.
/// A [`ToolSet`](crate::ToolSet) assigns the first name that is valid and free.
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
    if let Some(short_id) = alphanumeric_id(id) {
        names.push(format!("{prefix}_{short_id}_{method}"));
        names.push(format!("{prefix}_{short_id}_{hash}_{method}"));
    }
    names.push(format!("{prefix}_{hash}_{method}"));
    names
}

/// An object in a result whose methods cannot become tools. The rejection does not change the value of the result.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RejectedProvider {
    /// The type name of the object, as tool names contain it.
    pub prefix: String,
    /// The reason for the rejection.
    pub reason: String,
}

impl RejectedProvider {
    /// Creates the description of a rejected object.
    #[must_use]
    pub fn new(prefix: impl Into<String>, reason: impl Into<String>) -> Self {
        Self {
            prefix: prefix.into(),
            reason: reason.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // accept: 30
    #[test]
    fn names_contain_the_id_and_a_hash_distinguishes_similar_ids() {
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
    fn id_without_letters_and_digits_is_replaced_by_its_hash() {
        assert_eq!(
            entity_tool_names("", "--", "get"),
            [format!("tool_{}_get", short_hash("--"))]
        );
    }
}
