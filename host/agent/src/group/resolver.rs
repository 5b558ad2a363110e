//! From roles to tools.

use std::collections::BTreeMap;
use std::sync::Arc;

use regex::Regex;

use super::ToolGroup;
use super::config::{GroupConfig, GroupsConfig};
use super::shelf::{SourceTools, is_named};
use super::source::ToolSource;
use crate::injection::Facade;
use toolwit_core::{Error, ErrorKind, Phase};
use toolwit_core::{Tool, ToolContext};

/// Resolves roles: by groups that were made in code, then by configuration over sources. Sources are asked when a role that
/// needs them is first resolved, with the context of whoever wants it.
///
/// What is missing takes nothing else with it: a tool that is not there, or a source that cannot be reached, is a warning, and
/// a group without tools is none.
#[derive(Clone, Default)]
pub struct ToolGroups {
    made: BTreeMap<String, ToolGroup>,
    config: BTreeMap<String, (GroupConfig, Vec<Regex>)>,
    sources: Vec<Arc<dyn ToolSource>>,
}

impl ToolGroups {
    /// Knows no role.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a group that was made in code, in place of the one with its role.
    #[must_use]
    pub fn with(mut self, group: ToolGroup) -> Self {
        self.made.insert(group.role.clone(), group);
        self
    }

    /// Adds a source of tools.
    #[must_use]
    pub fn with_source(mut self, source: impl ToolSource + 'static) -> Self {
        self.sources.push(Arc::new(source));
        self
    }

    /// Adds the groups of a configuration.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] for a pattern that is no regular expression, and for a provider that is no source here.
    pub fn with_config(mut self, config: GroupsConfig) -> Result<Self, Error> {
        for (role, group) in config.groups {
            let refused = |message: String| Error::new(ErrorKind::Configuration, Phase::Registry, message);
            if let Some(provider) = &group.provider
                && !self.sources.iter().any(|source| source.name() == provider)
            {
                let known: Vec<_> = self
                    .sources
                    .iter()
                    .map(|source| format!("`{}`", source.name()))
                    .collect();
                return Err(refused(format!(
                    "the group `{role}` names the provider `{provider}`, which is not there"
                ))
                .with_suggestion(format!("the providers are: {}", known.join(", "))));
            }
            let pattern = |text: &String| {
                Regex::new(text).map_err(|error| refused(format!("the group `{role}` has a wrong pattern: {error}")))
            };
            let patterns = group.include.iter().map(pattern).collect::<Result<Vec<_>, _>>()?;
            self.config.insert(role, (group, patterns));
        }
        Ok(self)
    }

    /// Lists the roles that are known.
    #[must_use]
    pub fn roles(&self) -> Vec<&str> {
        let mut roles: Vec<_> = self.made.keys().chain(self.config.keys()).map(String::as_str).collect();
        roles.sort_unstable();
        roles.dedup();
        roles
    }

    /// Finds the tools of a role. A group whose tools are all missing is empty.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] for a role that nobody knows, with those that are known.
    pub async fn resolve(&self, role: &str, context: &ToolContext) -> Result<ToolGroup, Error> {
        if let Some(group) = self.made.get(role) {
            return Ok(group.clone());
        }
        let Some((config, patterns)) = self.config.get(role) else {
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

    /// Finds the tools of several roles, one after the other, each tool once.
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
                let is_there = tools.iter().any(|there| there.definition().id == tool.definition().id);
                if !is_there {
                    tools.push(tool);
                }
            }
        }
        Ok(tools)
    }

    /// Puts a facade before the tools of a role, under its name; none where the group is empty.
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
        let is_meant = |source: &&Arc<dyn ToolSource>| match &config.provider {
            Some(provider) => source.name() == provider,
            None => true,
        };
        let mut offered = Vec::new();
        for source in self.sources.iter().filter(is_meant) {
            match SourceTools::load(source.as_ref(), context).await {
                Ok(shelf) => offered.extend_from_slice(shelf.tools()),
                Err(error) => {
                    tracing::warn!(role, source = source.name(), %error, "a source of tools cannot be reached");
                }
            }
        }
        for missing in config
            .tools
            .iter()
            .filter(|name| !offered.iter().any(|tool| is_named(tool, name)))
        {
            tracing::warn!(role, tool = %missing, "a tool of a group is not there");
        }
        let is_all = config.tools.is_empty() && patterns.is_empty();
        offered.retain(|tool| {
            let name = tool.definition().name();
            is_all
                || config.tools.iter().any(|wanted| is_named(tool, wanted))
                || patterns.iter().any(|pattern| pattern.is_match(name))
        });
        if offered.is_empty() {
            tracing::warn!(role, "a tool group has no tools");
        }
        offered
    }
}
