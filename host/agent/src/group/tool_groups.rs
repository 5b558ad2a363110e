//! The tool groups of an application, and the resolution of roles to tools.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::ToolGroup;
use super::config::GroupsConfig;
use super::configured_group::ConfiguredGroup;
use super::source::ToolSource;
use super::source_cache::SourceCache;
use crate::injection::Facade;
use toolwit_core::{Error, ErrorKind, Phase};
use toolwit_core::{Tool, ToolContext};

/// The tool groups of an application, by role: groups that are built in code, and configured groups, whose tools come from
/// sources.
///
/// A conversation adds the tools of its [roles](crate::ConversationBuilder::role) when a turn begins, and those of the
/// [roles of a turn](crate::UserTurn::role) for that turn.
///
/// Sources are queried when a role that needs them is resolved, with the caller's context. A source that cannot list its tools
/// without being contacted is queried once in a conversation for a [`Caller`](toolwit_core::Caller), and again only after an error. A missing tool or an unreachable
/// source is logged as a warning and does not affect other tools.
#[derive(Clone, Default)]
pub struct ToolGroups {
    /// The groups that were built in code, by role.
    groups: BTreeMap<String, ToolGroup>,
    /// The groups of the configuration, by role.
    configured_groups: BTreeMap<String, ConfiguredGroup>,
    sources: Vec<Arc<dyn ToolSource>>,
}

impl ToolGroups {
    /// Creates an empty collection, without groups and sources.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a group that is built in code. It replaces an earlier group that this method added for the same role, and takes
    /// precedence over a configured group.
    #[must_use]
    pub fn with_group(mut self, group: ToolGroup) -> Self {
        self.groups.insert(group.role.clone(), group);
        self
    }

    /// Restricts the groups that [`with_group`](Self::with_group) added so far to the tools whose ids `may_use` accepts.
    #[must_use]
    pub fn restricted_to(mut self, may_use: impl Fn(&str) -> bool) -> Self {
        for group in self.groups.values_mut() {
            group.tools.retain(|tool| may_use(tool.definition().id.as_str()));
        }
        self
    }

    /// Adds a source of tools. It replaces a source with the same name.
    #[must_use]
    pub fn with_source(mut self, source: impl ToolSource + 'static) -> Self {
        tracing::debug!(
            source = source.name(),
            "added a source of tools, which is not contacted before its first use"
        );
        self.sources.retain(|other| other.name() != source.name());
        self.sources.push(Arc::new(source));
        self
    }

    /// Adds the groups of a configuration. The sources to which the configuration refers must be added before.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] for an invalid regular expression, or for a provider that is not the name of a source.
    pub fn with_config(mut self, config: GroupsConfig) -> Result<Self, Error> {
        for (role, group) in config.groups {
            if let Some(provider) = &group.provider
                && !self.sources.iter().any(|source| source.name() == provider)
            {
                let message = format!("the group `{role}` refers to the provider `{provider}`, which does not exist");
                let suggestion = if self.sources.is_empty() {
                    "add its source before the configuration".to_owned()
                } else {
                    let names = quoted(self.sources.iter().map(|source| source.name()));
                    format!("the providers are: {names}")
                };
                return Err(Error::new(ErrorKind::Configuration, Phase::Registry, message).with_suggestion(suggestion));
            }
            let group = ConfiguredGroup::new(&role, group)?;
            self.configured_groups.insert(role, group);
        }
        Ok(self)
    }

    /// Returns the roles, sorted by name.
    #[must_use]
    pub fn roles(&self) -> Vec<&str> {
        let mut roles: Vec<_> = self
            .groups
            .keys()
            .chain(self.configured_groups.keys())
            .map(String::as_str)
            .collect();
        roles.sort_unstable();
        roles.dedup();
        roles
    }

    /// Checks that a role exists, without contacting a source.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] for an unknown role. The error lists the existing roles.
    pub fn check(&self, role: &str) -> Result<(), Error> {
        if self.groups.contains_key(role) || self.configured_groups.contains_key(role) {
            return Ok(());
        }
        let message = format!("no tool group has the role `{role}`");
        let error = Error::new(ErrorKind::Configuration, Phase::Registry, message);
        let roles = self.roles();
        Err(if roles.is_empty() {
            error.with_suggestion("there are no tool groups")
        } else {
            error.with_suggestion(format!("the roles are: {}", quoted(roles)))
        })
    }

    /// Returns the group of a role, with its tools. Tools that cannot be found are omitted.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub async fn resolve(&self, role: &str, context: &ToolContext) -> Result<ToolGroup, Error> {
        self.check(role)?;
        if let Some(group) = self.groups.get(role) {
            return Ok(group.clone());
        }
        let mut group = ToolGroup::new(role, "", Vec::new());
        if let Some(configured) = self.configured_groups.get(role) {
            let config = &configured.config;
            group.description.clone_from(&config.description);
            group.provider.clone_from(&config.provider);
            group.permissions.clone_from(&config.permissions);
            group.metadata.clone_from(&config.metadata);
            group.tools = self.load_tools(role, configured, context).await;
        }
        Ok(group)
    }

    /// Returns the tools of several roles in order, each tool once.
    ///
    /// # Errors
    /// As [`resolve`](Self::resolve).
    pub async fn tools<'r>(
        &self,
        roles: impl IntoIterator<Item = &'r str>,
        context: &ToolContext,
    ) -> Result<Vec<Arc<dyn Tool>>, Error> {
        let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
        for role in roles {
            for tool in self.resolve(role, context).await?.tools {
                let is_present = tools
                    .iter()
                    .any(|present| present.definition().id == tool.definition().id);
                if !is_present {
                    tools.push(tool);
                }
            }
        }
        Ok(tools)
    }

    /// Returns a facade for the tools of a role, named after the role, or `None` if the group has no tools.
    ///
    /// # Errors
    /// As [`resolve`](Self::resolve) and [`FacadeBuilder::build`](crate::injection::FacadeBuilder::build).
    pub async fn facade(&self, role: &str, context: &ToolContext) -> Result<Option<Facade>, Error> {
        let group = self.resolve(role, context).await?;
        if group.tools.is_empty() {
            return Ok(None);
        }
        let facade = Facade::builder(role, group.description).tools(group.tools);
        facade.build().map(Some)
    }

    /// Returns the tools of a configured group, in the order of the sources. Sources that list their tools without
    /// being contacted are queried first. Each other source is queried only if the group may still miss a tool.
    async fn load_tools(&self, role: &str, group: &ConfiguredGroup, context: &ToolContext) -> Vec<Arc<dyn Tool>> {
        let sources = self.sources.iter().enumerate();
        let mut candidates: Vec<_> = sources
            .filter(|(_, source)| group.may_use_source(source.as_ref()))
            .collect();
        candidates.sort_by_key(|(_, source)| source.listed_names().is_none());
        let (mut tools_by_source, mut tools) = (BTreeMap::new(), Vec::new());
        for (position, source) in candidates {
            if source.listed_names().is_none() && group.is_complete(&tools) {
                break;
            }
            match SourceCache::of(context).load(source.as_ref(), context).await {
                Ok(source_tools) => {
                    let accepted: Vec<_> = source_tools
                        .tools()
                        .iter()
                        .filter(|tool| group.accepts(tool))
                        .cloned()
                        .collect();
                    tools.extend_from_slice(&accepted);
                    tools_by_source.insert(position, accepted);
                }
                Err(error) => {
                    tracing::warn!(role, source = source.name(), %error, "a source of tools cannot be reached");
                }
            }
        }
        for missing in group.missing_names(&tools) {
            tracing::warn!(role, tool = %missing, "a tool of a group does not exist");
        }
        if tools.is_empty() {
            tracing::warn!(role, "a tool group has no tools");
        }
        tools_by_source.into_values().flatten().collect()
    }
}

fn quoted<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    let names: Vec<_> = names.into_iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}
