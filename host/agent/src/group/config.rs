//! The configuration of tool groups.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use toolwit_core::{Error, ErrorKind, Phase};

/// A permission that a group declares for its tools. It is informational and grants nothing.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GroupPermission {
    /// Internet access.
    InternetAccess,
    /// Access to files of the host.
    HostAccess,
    /// An application-defined permission.
    #[serde(untagged)]
    Other(String),
}

/// The configured groups, by role.
///
/// ```
/// use toolwit_agent::GroupsConfig;
///
/// let groups = GroupsConfig::parse(
///     r#"
///     [groups.web]
///     description = "Looks things up on the web."
///     provider = "plugins"
///     tools = ["fetch", "search"]
///     permissions = ["internet_access"]
///
///     [groups.crm]
///     description = "Works with customers."
///     include = ["^customer_"]
///     "#,
/// )?;
/// assert_eq!(groups.roles().collect::<Vec<_>>(), ["crm", "web"]);
/// # Ok::<(), toolwit_core::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct GroupsConfig {
    pub(super) groups: BTreeMap<String, GroupConfig>,
}

/// The part of a `toolwit.toml` that contains groups.
#[derive(Deserialize)]
struct GroupsFile {
    #[serde(default)]
    groups: GroupsConfig,
}

/// The configuration of one group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GroupConfig {
    /// Purpose of the tools.
    pub description: String,
    /// Name of the only source of the tools. By default all sources are used.
    pub provider: Option<String>,
    /// Tools, by name or id. A missing tool is skipped with a warning.
    pub tools: Vec<String>,
    /// Regular expressions that match the names of further tools.
    pub include: Vec<String>,
    /// Declared permissions of the tools. They are informational and grant nothing.
    pub permissions: BTreeSet<GroupPermission>,
    /// Further properties of the group.
    pub metadata: BTreeMap<String, Value>,
}

impl GroupsConfig {
    /// Parses the tables `[groups.ROLE]` of a `toolwit.toml`. Other tables are ignored.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] if the text is not valid; the message has the line and the column.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let file: GroupsFile = toml::from_str(text).map_err(|error| {
            let message = format!("the tool groups cannot be parsed: {error}");
            Error::new(ErrorKind::Configuration, Phase::Registry, message)
        })?;
        Ok(file.groups)
    }

    /// Adds a group, replacing the group with the same role.
    #[must_use]
    pub fn with_group(mut self, role: impl Into<String>, group: GroupConfig) -> Self {
        self.groups.insert(role.into(), group);
        self
    }

    /// Returns the roles.
    pub fn roles(&self) -> impl Iterator<Item = &str> {
        self.groups.keys().map(String::as_str)
    }
}
