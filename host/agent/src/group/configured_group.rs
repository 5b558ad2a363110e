//! A configured group: which tools belong to it, and which sources can have these tools.

use std::sync::Arc;

use regex::Regex;

use super::config::GroupConfig;
use super::source::ToolSource;
use super::source_tools::has_name_or_id;
use toolwit_core::Tool;
use toolwit_core::{Error, ErrorKind, Phase};

/// A group of the configuration, with its compiled patterns.
#[derive(Clone)]
pub(super) struct ConfiguredGroup {
    pub(super) config: GroupConfig,
    patterns: Vec<Regex>,
}

impl ConfiguredGroup {
    /// Compiles the patterns.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] for an invalid regular expression.
    pub(super) fn new(role: &str, config: GroupConfig) -> Result<Self, Error> {
        let compile = |text: &String| {
            Regex::new(text).map_err(|error| {
                let message = format!("the group `{role}` has an invalid pattern: {error}");
                Error::new(ErrorKind::Configuration, Phase::Registry, message)
            })
        };
        let patterns = config.include.iter().map(compile).collect::<Result<_, _>>()?;
        Ok(Self { config, patterns })
    }

    /// Returns whether a source can have tools of the group, without contacting the source. Returns `true` if the names of its
    /// tools are unknown.
    pub(super) fn may_use_source(&self, source: &dyn ToolSource) -> bool {
        match (&self.config.provider, source.listed_names()) {
            (Some(provider), _) => source.name() == provider,
            (None, Some(names)) => names.iter().any(|name| self.lists(name) || self.matches_pattern(name)),
            (None, None) => true,
        }
    }

    /// Returns whether a tool belongs to the group.
    pub(super) fn accepts(&self, tool: &Arc<dyn Tool>) -> bool {
        self.config.tools.iter().any(|name| has_name_or_id(tool.as_ref(), name))
            || self.matches_pattern(tool.definition().name())
    }

    /// Returns the names and ids in the group's list that none of `tools` has.
    pub(super) fn missing_names<'s>(&'s self, tools: &'s [Arc<dyn Tool>]) -> impl Iterator<Item = &'s String> {
        let is_missing = |name: &&String| !tools.iter().any(|tool| has_name_or_id(tool.as_ref(), name));
        self.config.tools.iter().filter(is_missing)
    }

    /// Returns whether `tools` has all tools of the group, so that no other source can add a tool. Returns `false` for a group with
    /// patterns, or without a list of tools.
    pub(super) fn is_complete(&self, tools: &[Arc<dyn Tool>]) -> bool {
        self.patterns.is_empty() && !self.config.tools.is_empty() && self.missing_names(tools).next().is_none()
    }

    fn lists(&self, name: &String) -> bool {
        self.config.tools.contains(name)
    }

    /// Returns whether a name matches a pattern. Every name matches a group without tools and patterns.
    fn matches_pattern(&self, name: &str) -> bool {
        let accepts_all = self.config.tools.is_empty() && self.patterns.is_empty();
        accepts_all || self.patterns.iter().any(|pattern| pattern.is_match(name))
    }
}
