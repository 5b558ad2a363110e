//! The canonical identity of a tool.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The canonical identity of a tool in files, grants, traces and health data. The model never sees it.
///
/// | form | tool |
/// |---|---|
/// | `plugin/interface@version#func` | a function of a plugin's interface |
/// | `plugin#func` | a function that the world of a plugin exports directly |
/// | `native#name` | a tool written in Rust |
/// | `host#name` | a tool of the host |
/// | `mcp:server#name` | a tool of an MCP server |
/// | `…#func(id)` | a method bound to a live entity |
/// | `…#func(*any)` | a method that takes the id of its entity as an argument |
/// | `…#func(*current)` | a method of the most recent entity |
/// | `… as name` | a tool under another name |
///
/// Functions have their WIT names: `[method]customer.get-average-spend`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ToolId(Arc<str>);

impl ToolId {
    /// Returns the id of a function of a plugin.
    #[must_use]
    pub fn plugin(plugin: &str, interface: Option<&str>, function: &str) -> Self {
        match interface {
            Some(interface) => Self(format!("{plugin}/{interface}#{function}").into()),
            None => Self(format!("{plugin}#{function}").into()),
        }
    }

    /// Returns the id of a tool that is written in Rust.
    #[must_use]
    pub fn native(name: &str) -> Self {
        Self(format!("native#{name}").into())
    }

    /// Returns the id of a tool of the host.
    #[must_use]
    pub fn host(name: &str) -> Self {
        Self(format!("host#{name}").into())
    }

    /// Returns the id of this method bound to the live entity with this id.
    #[must_use]
    pub fn bound_to(&self, entity_id: &str) -> Self {
        // A `*` before an id that begins with `*` distinguishes the id from every selection of `bound_by`.
        let escape = if entity_id.starts_with('*') { "*" } else { "" };
        Self(format!("{}({escape}{entity_id})", self.0).into())
    }

    /// Returns the id of this method for an entity that each call selects, for example with the selection `current`. The id
    /// differs from every id that [`bound_to`](Self::bound_to) returns.
    #[must_use]
    pub fn bound_by(&self, selection: &str) -> Self {
        Self(format!("{}(*{selection})", self.0).into())
    }

    /// Returns the id of this tool under another name.
    #[must_use]
    pub fn named(&self, name: &str) -> Self {
        Self(format!("{} as {name}", self.0).into())
    }

    /// Returns the id of the method without the entity that it is bound to.
    #[must_use]
    pub fn unbound(&self) -> Self {
        let function_start = self.0.find('#').unwrap_or(0);
        match self.0[function_start..].find('(') {
            Some(offset) if self.0.ends_with(')') => Self(self.0[..function_start + offset].into()),
            _ => self.clone(),
        }
    }

    /// Returns the id of this tool inside a facade: `native#query` in `native#db` is `native#db/query`.
    #[must_use]
    pub fn within(&self, facade: &Self) -> Self {
        let (namespace, name) = self.0.split_once('#').unwrap_or(("native", &self.0));
        let facade = facade.0.strip_prefix("native#").unwrap_or(&facade.0);
        Self(format!("{namespace}#{facade}/{name}").into())
    }

    /// Returns the id of an interface of a plugin, for a tool that represents the interface, such as its facade.
    #[must_use]
    pub fn interface(plugin: &str, interface: &str) -> Self {
        Self(format!("{plugin}/{interface}").into())
    }

    /// Returns the interface of a plugin's function in the form `plugin/interface@version`. Returns `None` for a function that
    /// a world exports directly, and for a tool that does not belong to a plugin.
    #[must_use]
    pub fn interface_of(&self) -> Option<&str> {
        let (interface, _) = self.0.split_once('#')?;
        interface.contains('/').then_some(interface)
    }

    /// Returns the name of the plugin, or `native` or `host`.
    #[must_use]
    pub fn owner(&self) -> &str {
        self.0.split(['/', '#']).next().unwrap_or(&self.0)
    }

    /// Returns whether the tool is written in Rust.
    #[must_use]
    pub fn is_native(&self) -> bool {
        self.0.starts_with("native#")
    }

    /// Returns whether the tool belongs to the host.
    #[must_use]
    pub fn is_host(&self) -> bool {
        self.0.starts_with("host#")
    }

    /// Returns whether the tool runs on an MCP server.
    #[must_use]
    pub fn is_mcp(&self) -> bool {
        self.owner().starts_with("mcp:")
    }

    /// Creates an id from text without validation. An invalid id matches no tool.
    #[must_use]
    pub fn from_text(text: &str) -> Self {
        Self(text.into())
    }

    /// Returns the id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ToolId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for ToolId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for ToolId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|text| Self(text.into()))
    }
}
