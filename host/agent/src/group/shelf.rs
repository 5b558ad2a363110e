//! The tools of one source, singly and behind facades.

use std::collections::BTreeSet;
use std::sync::Arc;

use regex::Regex;

use super::source::ToolSource;
use crate::injection::{Facade, FacadeBuilder};
use toolwit_core::{Error, ErrorKind, Phase};
use toolwit_core::{Tool, ToolContext, ToolError};

/// How many names an error lists.
const NAMES_SHOWN: usize = 20;

/// What a source offers, once it was asked: to take single tools from, or to put facades before several.
#[derive(Clone)]
pub struct SourceTools {
    source: String,
    tools: Vec<Arc<dyn Tool>>,
}

impl SourceTools {
    /// Asks a source with the caller's context.
    ///
    /// # Errors
    /// Why the source cannot be reached.
    pub async fn load(source: &dyn ToolSource, context: &ToolContext) -> Result<Self, Error> {
        tracing::debug!(source = source.name(), "a source of tools is asked");
        let tools = source.tools(context).await?;
        Ok(Self {
            source: source.name().to_owned(),
            tools,
        })
    }

    /// Returns all tools.
    #[must_use]
    pub fn tools(&self) -> &[Arc<dyn Tool>] {
        &self.tools
    }

    /// Returns the tool of this name or id, if it is there.
    #[must_use]
    pub fn tool_by_name(&self, name: &str) -> Option<Arc<dyn Tool>> {
        self.tools.iter().find(|tool| is_named(tool, name)).cloned()
    }

    /// Returns the tool of this name or id.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownTool`] with the names that there are.
    pub fn required_tool_by_name(&self, name: &str) -> Result<Arc<dyn Tool>, Error> {
        self.tool_by_name(name).ok_or_else(|| {
            let names = self.tools.iter().take(NAMES_SHOWN);
            let names: Vec<_> = names.map(|tool| format!("`{}`", tool.definition().name())).collect();
            let message = format!("`{}` offers no tool `{name}`", self.source);
            let error = Error::new(ErrorKind::UnknownTool, Phase::Registry, message);
            match names.is_empty() {
                true => error.with_suggestion("it offers none at all"),
                false => error.with_suggestion(format!("it offers {}", names.join(", "))),
            }
        })
    }

    /// Puts a facade before the tools of these names. Names that are not there are passed over with a warning; where nothing
    /// is left there is no facade.
    #[must_use]
    pub fn facade_by_name(&self, name: &str, description: &str, tools: &BTreeSet<String>) -> Option<Facade> {
        for missing in tools.iter().filter(|tool| self.tool_by_name(tool).is_none()) {
            tracing::warn!(source = self.source, facade = name, tool = %missing, "a tool of a facade is not there");
        }
        self.facade_where(name, description, |tool| tools.iter().any(|wanted| names(tool, wanted)))
    }

    /// Puts a facade before the tools whose names match one of the patterns.
    #[must_use]
    pub fn facade_matching(&self, name: &str, description: &str, patterns: &[Regex]) -> Option<Facade> {
        self.facade_where(name, description, |tool| {
            patterns
                .iter()
                .any(|pattern| pattern.is_match(tool.definition().name()))
        })
    }

    /// Puts a facade before the tools that pass.
    #[must_use]
    pub fn facade_where(&self, name: &str, description: &str, keep: impl Fn(&dyn Tool) -> bool) -> Option<Facade> {
        let tools = self.tools.iter().filter(|tool| keep(tool.as_ref())).cloned();
        let facade = Facade::builder(name, description).tools(tools).build();
        let facade = facade.inspect_err(|error| tracing::warn!(facade = name, %error, "a facade cannot be made"));
        facade.ok().filter(|facade| !facade.tools().is_empty())
    }

    /// Describes a facade whose tools are fetched from a source when it is first called, with the caller's context.
    pub fn lazy_facade(name: &str, description: &str, source: Arc<dyn ToolSource>) -> FacadeBuilder {
        Facade::builder(name, description).fetched(move |context| {
            let source = source.clone();
            async move {
                tracing::info!(
                    source = source.name(),
                    "a source of tools is used for the first time in a conversation"
                );
                source.tools(&context).await.map_err(ToolError::Model)
            }
        })
    }
}

pub(super) fn is_named(tool: &Arc<dyn Tool>, name: &str) -> bool {
    names(tool.as_ref(), name)
}

fn names(tool: &dyn Tool, name: &str) -> bool {
    let definition = tool.definition();
    definition.name() == name || definition.id.as_str() == name
}
