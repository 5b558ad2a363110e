//! Groups as a file describes them.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use toolwit_core::{Error, ErrorKind, Phase};

/// What the tools of a group may do.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum GroupPermission {
    /// They reach the internet.
    InternetAccess,
    /// They read and write files of the host.
    HostAccess,
    /// Something else, in the application's word.
    #[serde(untagged)]
    Other(String),
}

/// The groups of an environment, by role.
///
/// ```
/// use toolwit_agent::GroupsConfig;
///
/// let groups = GroupsConfig::parse(
///     r#"
///     [web]
///     description = "Looks things up on the web."
///     provider = "plugins"
///     tools = ["fetch", "search"]
///     permissions = ["internet_access"]
///
///     [crm]
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

/// One group as a file describes it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct GroupConfig {
    /// What the tools are for.
    pub description: String,
    /// The source to take them from; every source unless it is named.
    pub provider: Option<String>,
    /// The tools, by name or id. One that is not there is passed over with a warning.
    pub tools: Vec<String>,
    /// Patterns of further tools, by name: regular expressions.
    pub include: Vec<String>,
    /// What the tools may do. It is shown, and grants nothing.
    pub permissions: BTreeSet<GroupPermission>,
    /// What else is said about the group.
    pub metadata: BTreeMap<String, Value>,
}

impl GroupsConfig {
    /// Reads groups from TOML.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] with line and column.
    pub fn parse(text: &str) -> Result<Self, Error> {
        toml::from_str(text).map_err(|error| {
            let message = format!("the tool groups cannot be read: {error}");
            Error::new(ErrorKind::Configuration, Phase::Registry, message)
        })
    }

    /// Adds a group, or puts it in the place of the one with its role.
    #[must_use]
    pub fn with(mut self, role: impl Into<String>, group: GroupConfig) -> Self {
        self.groups.insert(role.into(), group);
        self
    }

    /// Lists the roles.
    pub fn roles(&self) -> impl Iterator<Item = &str> {
        self.groups.keys().map(String::as_str)
    }
}
