//! The resolution of roles to tools.

use std::collections::BTreeMap;
use std::sync::Arc;

use regex::Regex;

use super::ToolGroup;
use super::config::{GroupConfig, GroupsConfig};
use super::source::ToolSource;
use super::source_tools::{SourceTools, is_named};
use crate::injection::Facade;
use toolwit_core::{Error, ErrorKind, Phase};
use toolwit_core::{Tool, ToolContext};

/// Resolves roles to tools: first from groups that were built in code, then from configured groups over sources.
///
/// Sources are queried when a role that needs them is resolved, with the caller's context. A missing tool or an unreachable
/// source is logged as a warning and does not affect other tools.
#[derive(Clone, Default)]
pub struct ToolGroups {
    groups: BTreeMap<String, ToolGroup>,
    configured: BTreeMap<String, (GroupConfig, Vec<Regex>)>,
    sources: Vec<Arc<dyn ToolSource>>,
}

impl ToolGroups {
    /// Creates a resolver without roles.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a group, replacing the group with the same role.
    #[must_use]
    pub fn with(mut self, group: ToolGroup) -> Self {
        self.groups.insert(group.role.clone(), group);
        self
    }

    /// Adds a source of tools.
    #[must_use]
    pub fn with_source(mut self, source: impl ToolSource + 'static) -> Self {
        self.sources.push(Arc::new(source));
        self
    }

    /// Adds the groups of a configuration. Add the sources first.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] for an invalid regular expression, or for a provider that is not a known source.
    pub fn with_config(mut self, config: GroupsConfig) -> Result<Self, Error> {
        for (role, group) in config.groups {
            let invalid = |message: String| Error::new(ErrorKind::Configuration, Phase::Registry, message);
            if let Some(provider) = &group.provider
                && !self.sources.iter().any(|source| source.name() == provider)
            {
                let known: Vec<_> = self
                    .sources
                    .iter()
                    .map(|source| format!("`{}`", source.name()))
                    .collect();
                return Err(invalid(format!(
                    "the group `{role}` refers to the provider `{provider}`, which does not exist"
                ))
                .with_suggestion(format!("the providers are: {}", known.join(", "))));
            }
            let pattern = |text: &String| {
                Regex::new(text).map_err(|error| invalid(format!("the group `{role}` has an invalid pattern: {error}")))
            };
            let patterns = group.include.iter().map(pattern).collect::<Result<Vec<_>, _>>()?;
            self.configured.insert(role, (group, patterns));
        }
        Ok(self)
    }

    /// Returns the roles.
    #[must_use]
    pub fn roles(&self) -> Vec<&str> {
        let mut roles: Vec<_> = self
            .groups
            .keys()
            .chain(self.configured.keys())
            .map(String::as_str)
            .collect();
        roles.sort_unstable();
        roles.dedup();
        roles
    }

    /// Returns the group of a role. The group is empty if all its tools are missing.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] for an unknown role. The error lists the known roles.
    pub async fn resolve(&self, role: &str, context: &ToolContext) -> Result<ToolGroup, Error> {
        if let Some(group) = self.groups.get(role) {
            return Ok(group.clone());
        }
        let Some((config, patterns)) = self.configured.get(role) else {
            let known: Vec<_> = self.roles().iter().map(|role| format!("`{role}`")).collect();
            let message = format!("no tool group has the role `{role}`");
            return Err(Error::new(ErrorKind::Configuration, Phase::Registry, message)
                .with_suggestion(format!("the roles are: {}", known.join(", "))));
        };
        let mut group = ToolGroup::new(
            role,
            &config.description,
            self.members(role, config, patterns, context).await,
        );
        group.provider.clone_from(&config.provider);
        group.permissions.clone_from(&config.permissions);
        group.metadata.clone_from(&config.metadata);
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
                let is_listed = tools
                    .iter()
                    .any(|listed| listed.definition().id == tool.definition().id);
                if !is_listed {
                    tools.push(tool);
                }
            }
        }
        Ok(tools)
    }

    /// Returns a facade for the tools of a role, named after the role, or `None` if the group is empty.
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

    async fn members(
        &self,
        role: &str,
        config: &GroupConfig,
        patterns: &[Regex],
        context: &ToolContext,
    ) -> Vec<Arc<dyn Tool>> {
        let is_provider = |source: &&Arc<dyn ToolSource>| match &config.provider {
            Some(provider) => source.name() == provider,
            None => true,
        };
        let mut members = Vec::new();
        for source in self.sources.iter().filter(is_provider) {
            match SourceTools::load(source.as_ref(), context).await {
                Ok(found) => members.extend_from_slice(found.tools()),
                Err(error) => {
                    tracing::warn!(role, source = source.name(), %error, "a source of tools cannot be reached");
                }
            }
        }
        for missing in config
            .tools
            .iter()
            .filter(|name| !members.iter().any(|tool| is_named(tool, name)))
        {
            tracing::warn!(role, tool = %missing, "a tool of a group does not exist");
        }
        let takes_all = config.tools.is_empty() && patterns.is_empty();
        members.retain(|tool| {
            let name = tool.definition().name();
            takes_all
                || config.tools.iter().any(|name| is_named(tool, name))
                || patterns.iter().any(|pattern| pattern.is_match(name))
        });
        if members.is_empty() {
            tracing::warn!(role, "a tool group has no tools");
        }
        members
    }
}
