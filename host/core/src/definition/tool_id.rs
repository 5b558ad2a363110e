//! The canonical identity of a tool.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Identifies a tool everywhere but in front of the model: in files, grants, traces and health.
///
/// `plugin/interface@version#func` for a plugin's function, `plugin#func` for one that its world exports directly,
/// `native#name` for a tool written in Rust, `host#name` for one of the host's own. A method bound to a live entity ends
/// with the entity's id in parentheses, a tool that was renamed with ` as ` and its new name. The function is written as WIT writes it: `[method]customer.get-average-spend`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ToolId(Arc<str>);

impl ToolId {
    /// Names a function of a plugin.
    #[must_use]
    pub fn plugin(plugin: &str, interface: Option<&str>, function: &str) -> Self {
        match interface {
            Some(interface) => Self(format!("{plugin}/{interface}#{function}").into()),
            None => Self(format!("{plugin}#{function}").into()),
        }
    }

    /// Names a tool that is written in Rust.
    #[must_use]
    pub fn native(name: &str) -> Self {
        Self(format!("native#{name}").into())
    }

    /// Names a tool that the host itself offers.
    #[must_use]
    pub fn host(name: &str) -> Self {
        Self(format!("host#{name}").into())
    }

    /// Names this method bound to one live entity.
    #[must_use]
    pub fn bound_to(&self, entity: &str) -> Self {
        Self(format!("{}({entity})", self.0).into())
    }

    /// Names this tool under a name that somebody gave it.
    #[must_use]
    pub fn named(&self, name: &str) -> Self {
        Self(format!("{} as {name}", self.0).into())
    }

    /// Names the method without the entity that it is bound to.
    #[must_use]
    pub fn unbound(&self) -> Self {
        let function = self.0.find('#').unwrap_or(0);
        match self.0[function..].find('(') {
            Some(at) if self.0.ends_with(')') => Self(self.0[..function + at].into()),
            _ => self.clone(),
        }
    }

    /// Names this tool as one inside a facade: `native#query` in `native#db` is `native#db/query`.
    #[must_use]
    pub fn within(&self, facade: &Self) -> Self {
        let (owner, name) = self.0.split_once('#').unwrap_or(("native", &self.0));
        let facade = facade.0.strip_prefix("native#").unwrap_or(&facade.0);
        Self(format!("{owner}#{facade}/{name}").into())
    }

    /// Names an interface of a plugin as a whole.
    #[must_use]
    pub fn interface(plugin: &str, interface: &str) -> Self {
        Self(format!("{plugin}/{interface}").into())
    }

    /// Returns the interface of a plugin's function as an identity: `plugin/interface@version`; none for all others.
    #[must_use]
    pub fn interface_of(&self) -> Option<&str> {
        let (interface, _) = self.0.split_once('#')?;
        interface.contains('/').then_some(interface)
    }

    /// Returns the name of the plugin whose tool it is; `native` or `host` for a tool that is no plugin's.
    #[must_use]
    pub fn owner(&self) -> &str {
        self.0.split(['/', '#']).next().unwrap_or(&self.0)
    }

    /// Tells whether this is a tool written in Rust.
    #[must_use]
    pub fn is_native(&self) -> bool {
        self.0.starts_with("native#")
    }

    /// Tells whether this is a tool of the host itself.
    #[must_use]
    pub fn is_host(&self) -> bool {
        self.0.starts_with("host#")
    }

    /// Reads an identity that somebody wrote. Nothing is checked: one that no tool has is found nowhere.
    pub fn from_text(text: &str) -> Self {
        Self(text.into())
    }

    /// Returns the identity as text.
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
