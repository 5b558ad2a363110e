//! The tools of one source, individually or behind facades.

use std::collections::BTreeSet;
use std::sync::Arc;

use regex::Regex;

use super::source::ToolSource;
use crate::injection::{Facade, FacadeBuilder};
use toolwit_core::{Error, ErrorKind, Phase};
use toolwit_core::{Tool, ToolContext, ToolError};

/// Maximum number of names that an error lists.
const NAMES_LISTED_MAX: usize = 20;

/// The tools that a source returned, to be used individually or behind facades.
#[derive(Clone)]
pub struct SourceTools {
    source: String,
    tools: Vec<Arc<dyn Tool>>,
}

impl SourceTools {
    /// Queries a source with the caller's context, and logs that the source is contacted.
    ///
    /// # Errors
    /// If the source cannot be reached.
    pub async fn load(source: &dyn ToolSource, context: &ToolContext) -> Result<Self, Error> {
        tracing::info!(source = source.name(), "a source of tools is contacted");
        Self::load_without_log(source, context).await
    }

    /// Queries a source with the caller's context, without a log entry. [`load`](Self::load) has written the entry, or the source
    /// need not be contacted.
    pub(super) async fn load_without_log(source: &dyn ToolSource, context: &ToolContext) -> Result<Self, Error> {
        Ok(Self {
            source: source.name().to_owned(),
            tools: source.tools(context).await?,
        })
    }

    /// Returns all tools.
    #[must_use]
    pub fn tools(&self) -> &[Arc<dyn Tool>] {
        &self.tools
    }

    /// Returns the tool with this name or id, if it exists.
    #[must_use]
    pub fn tool_by_name_or_id(&self, name_or_id: &str) -> Option<Arc<dyn Tool>> {
        self.tools
            .iter()
            .find(|tool| has_name_or_id(tool.as_ref(), name_or_id))
            .cloned()
    }

    /// Returns the tool with this name or id.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownTool`] if no tool has this name or id. The suggestion lists the first names that exist.
    pub fn required_tool_by_name_or_id(&self, name_or_id: &str) -> Result<Arc<dyn Tool>, Error> {
        self.tool_by_name_or_id(name_or_id).ok_or_else(|| {
            let names = self.tools.iter().take(NAMES_LISTED_MAX);
            let names: Vec<_> = names.map(|tool| format!("`{}`", tool.definition().name())).collect();
            let message = format!("`{}` does not have a tool `{name_or_id}`", self.source);
            let error = Error::new(ErrorKind::UnknownTool, Phase::Registry, message);
            if names.is_empty() {
                error.with_suggestion(format!("`{}` has no tools", self.source))
            } else {
                error.with_suggestion(format!("its tools are {}", names.join(", ")))
            }
        })
    }

    /// Creates a facade for the tools with these names or ids. Missing tools are skipped with a warning. Returns `None`
    /// if no tool remains, or if the facade is invalid, which is logged.
    #[must_use]
    pub fn facade_with_tools(&self, name: &str, description: &str, tool_names: &BTreeSet<String>) -> Option<Facade> {
        for missing in tool_names.iter().filter(|name| self.tool_by_name_or_id(name).is_none()) {
            tracing::warn!(source = self.source, facade = name, tool = %missing, "a tool of a facade does not exist");
        }
        self.facade_where(name, description, |tool| {
            tool_names.iter().any(|name| has_name_or_id(tool, name))
        })
    }

    /// Creates a facade for the tools whose names match one of the patterns. Returns `None` if no tool matches, or if
    /// the facade is invalid, which is logged.
    #[must_use]
    pub fn facade_matching(&self, name: &str, description: &str, patterns: &[Regex]) -> Option<Facade> {
        self.facade_where(name, description, |tool| {
            patterns
                .iter()
                .any(|pattern| pattern.is_match(tool.definition().name()))
        })
    }

    /// Creates a facade for the tools that `keep` accepts. Returns `None` if `keep` accepts no tool, or if the facade is invalid,
    /// which is logged.
    #[must_use]
    pub fn facade_where(&self, name: &str, description: &str, keep: impl Fn(&dyn Tool) -> bool) -> Option<Facade> {
        let tools = self.tools.iter().filter(|tool| keep(tool.as_ref())).cloned();
        let facade = Facade::builder(name, description).tools(tools).build();
        let facade = facade.inspect_err(|error| tracing::warn!(facade = name, %error, "a facade cannot be created"));
        facade.ok().filter(|facade| !facade.tools().is_empty())
    }

    /// Starts building a facade that fetches its tools from a source when it is called, with the caller's context.
    pub fn lazy_facade(name: &str, description: &str, source: Arc<dyn ToolSource>) -> FacadeBuilder {
        Facade::builder(name, description).fetch_with(move |context| {
            let source = source.clone();
            async move {
                tracing::info!(source = source.name(), "a facade fetches its tools from a source");
                source.tools(&context).await.map_err(ToolError::Model)
            }
        })
    }
}

/// Returns whether `name_or_id` is the preferred name or the id of a tool.
pub(super) fn has_name_or_id(tool: &dyn Tool, name_or_id: &str) -> bool {
    let definition = tool.definition();
    definition.name() == name_or_id || definition.id.as_str() == name_or_id
}
