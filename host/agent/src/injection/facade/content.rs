//! What is behind a facade.

use std::sync::Arc;

use futures::future::BoxFuture;
use indexmap::IndexMap;
use serde_json::{Value, json};

use toolwit_core::{AVAILABLE_TOOLS, Arguments, RevealedTools, Tool, ToolContext, ToolError, ToolFacade, ToolResult};

pub(super) type Tools = Vec<Arc<dyn Tool>>;
pub(super) type Select = dyn Fn(&Arguments, &ToolContext) -> Result<Tools, ToolError> + Send + Sync;
pub(super) type Fetch = dyn Fn(Arguments, ToolContext) -> BoxFuture<'static, Result<Tools, ToolError>> + Send + Sync;

/// The inner tools of a facade, and how they open.
pub(super) struct Inside {
    /// The facade's name, as it would like to have it.
    pub(super) name: String,
    /// The tools that are there whatever the arguments are: all of them, those of every category included.
    pub(super) folded: Tools,
    pub(super) opening: Opening,
    pub(super) usage_notes: Option<Arc<str>>,
    pub(super) exclusive: bool,
}

/// Which tools a call opens.
pub(super) enum Opening {
    /// Those that are there.
    All,
    /// Those of the category that the parameter names.
    ByCategory {
        parameter: String,
        categories: IndexMap<String, Tools>,
    },
    /// Those that are there, and those that a function makes of the arguments.
    Selected(Box<Select>),
    /// Those that are there, and those that must be waited for.
    Fetched(Box<Fetch>),
}

impl Inside {
    pub(super) async fn open(&self, arguments: Arguments, context: ToolContext) -> Result<ToolResult, ToolError> {
        let unfolded = match &self.opening {
            Opening::Fetched(fetch) => self.with_folded(fetch(arguments, context).await?),
            _ => self.open_now(&arguments, &context)?,
        };
        if unfolded.tools.is_empty() {
            let mut result = ToolResult::text(format!("`{}` has no tools at the moment", self.name));
            result.revealed_tools = Some(unfolded);
            return Ok(result);
        }
        let names: Vec<_> = unfolded.tools.iter().map(|tool| tool.definition().name()).collect();
        let note = "these are your tools now: call the one that fits";
        let mut result = ToolResult::value(json!({"opened": self.name, AVAILABLE_TOOLS: names, "note": note}));
        result.revealed_tools = Some(unfolded);
        Ok(result)
    }

    fn open_now(&self, arguments: &Arguments, context: &ToolContext) -> Result<RevealedTools, ToolError> {
        Ok(match &self.opening {
            Opening::All => self.with_folded(Vec::new()),
            Opening::ByCategory { parameter, categories } => {
                let wanted = arguments.get(parameter).and_then(Value::as_str).unwrap_or_default();
                // The schema has refused other categories before.
                let tools = categories.get(wanted).cloned().ok_or_else(|| {
                    let known: Vec<_> = categories.keys().map(|name| format!("`{name}`")).collect();
                    ToolError::invalid_arguments(format!("/{parameter}: it must be one of {}", known.join(", ")))
                })?;
                self.unfolded(tools)
            }
            Opening::Selected(select) => self.with_folded(select(arguments, context)?),
            Opening::Fetched(_) => self.with_folded(Vec::new()),
        })
    }

    fn with_folded(&self, made: Tools) -> RevealedTools {
        self.unfolded(self.folded.iter().cloned().chain(made).collect())
    }

    fn unfolded(&self, tools: Tools) -> RevealedTools {
        let mut unfolded = RevealedTools::new(tools);
        unfolded.usage_notes.clone_from(&self.usage_notes);
        unfolded
    }
}

impl ToolFacade for Inside {
    fn folded(&self) -> &[Arc<dyn Tool>] {
        &self.folded
    }

    fn is_exclusive(&self) -> bool {
        self.exclusive
    }

    fn reopen(&self, arguments: &Arguments, context: &ToolContext) -> Option<RevealedTools> {
        match &self.opening {
            Opening::Fetched(_) => None,
            _ => self.open_now(arguments, context).ok(),
        }
    }
}
