//! The inner tools of a facade.

use std::sync::Arc;

use async_trait::async_trait;
use futures::future::BoxFuture;
use indexmap::IndexMap;
use serde_json::{Value, json};

use toolwit_core::{AVAILABLE_TOOLS, Arguments, RevealedTools, Tool, ToolContext, ToolError, ToolFacade, ToolResult};

pub(super) type Tools = Vec<Arc<dyn Tool>>;
pub(super) type SelectFunction = dyn Fn(&Arguments, &ToolContext) -> Result<Tools, ToolError> + Send + Sync;
pub(super) type FetchFunction =
    dyn Fn(Arguments, ToolContext) -> BoxFuture<'static, Result<Tools, ToolError>> + Send + Sync;

/// The inner tools of a facade, and the rule by which a call reveals them.
pub(super) struct FacadeContents {
    /// Preferred name of the facade.
    pub(super) name: String,
    /// The tools that were added to the builder, of all categories. A call may reveal further tools, which a function creates
    /// or fetches.
    pub(super) fixed_tools: Tools,
    pub(super) rule: RevealRule,
    pub(super) usage_notes: Option<Arc<str>>,
    pub(super) is_exclusive: bool,
}

/// The rule by which a call reveals tools.
pub(super) enum RevealRule {
    /// Reveals all fixed tools.
    All,
    /// Reveals the tools of the category that the argument names.
    ByCategory {
        parameter: String,
        categories: IndexMap<String, Tools>,
    },
    /// Reveals the fixed tools and those that a function creates from the arguments.
    Selected(Arc<SelectFunction>),
    /// Reveals the fixed tools and those that an asynchronous function fetches.
    Fetched(Arc<FetchFunction>),
}

impl FacadeContents {
    /// Opens the facade. The result reveals the tools and lists their preferred names.
    pub(super) async fn open(&self, arguments: Arguments, context: ToolContext) -> Result<ToolResult, ToolError> {
        let revealed = match &self.rule {
            RevealRule::Fetched(fetch) => self.reveal_with_fixed_tools(fetch(arguments, context).await?),
            _ => self.open_without_fetching(&arguments, &context)?,
        };
        if revealed.tools.is_empty() {
            let mut result = ToolResult::text(format!("`{}` has no tools at the moment", self.name));
            result.revealed_tools = Some(revealed);
            return Ok(result);
        }
        let names: Vec<_> = revealed.tools.iter().map(|tool| tool.definition().name()).collect();
        let note = if self.is_exclusive {
            "only these tools can be called until this turn ends: call the one that fits; to leave, answer the user, and in the next \
             turn all tools can be called again"
        } else {
            "these tools are available now: call the one that fits"
        };
        let mut result = ToolResult::value(json!({"opened": self.name, AVAILABLE_TOOLS: names, "note": note}));
        result.revealed_tools = Some(revealed);
        Ok(result)
    }

    /// Reveals the tools that do not have to be fetched.
    fn open_without_fetching(&self, arguments: &Arguments, context: &ToolContext) -> Result<RevealedTools, ToolError> {
        Ok(match &self.rule {
            RevealRule::All => self.reveal_with_fixed_tools(Vec::new()),
            RevealRule::ByCategory { parameter, categories } => {
                let category = arguments.get(parameter).and_then(Value::as_str).unwrap_or_default();
                // In a call, the schema check has already rejected unknown categories. But `reopen` does not check its
                // arguments, which an earlier process may have recorded for a facade with other categories.
                let tools = categories.get(category).cloned().ok_or_else(|| {
                    let names: Vec<_> = categories.keys().map(|name| format!("`{name}`")).collect();
                    ToolError::invalid_arguments(format!("/{parameter}: must be one of {}", names.join(", ")))
                })?;
                self.reveal(tools)
            }
            RevealRule::Selected(select) => self.reveal_with_fixed_tools(select(arguments, context)?),
            RevealRule::Fetched(_) => self.reveal_with_fixed_tools(Vec::new()),
        })
    }

    /// Reveals the fixed tools and these additional tools.
    fn reveal_with_fixed_tools(&self, additional: Tools) -> RevealedTools {
        self.reveal(self.fixed_tools.iter().cloned().chain(additional).collect())
    }

    /// Reveals these tools, with the usage notes.
    fn reveal(&self, tools: Tools) -> RevealedTools {
        let mut revealed = RevealedTools::new(tools);
        revealed.usage_notes.clone_from(&self.usage_notes);
        revealed
    }
}

#[async_trait]
impl ToolFacade for FacadeContents {
    fn fixed_tools(&self) -> &[Arc<dyn Tool>] {
        &self.fixed_tools
    }

    fn is_exclusive(&self) -> bool {
        self.is_exclusive
    }

    fn reopen(&self, arguments: &Arguments, context: &ToolContext) -> Option<RevealedTools> {
        match &self.rule {
            RevealRule::Fetched(_) => None,
            _ => self.open_without_fetching(arguments, context).ok(),
        }
    }

    async fn make_again(&self, arguments: &Arguments, context: &ToolContext) -> Option<RevealedTools> {
        let RevealRule::Fetched(fetch) = &self.rule else {
            return self.reopen(arguments, context);
        };
        let fetched = fetch(arguments.clone(), context.clone()).await;
        let fetched = fetched.inspect_err(|error| {
            tracing::warn!(facade = self.name, error = %error.report(), "the tools of a facade cannot be fetched again");
        });
        Some(self.reveal_with_fixed_tools(fetched.ok()?))
    }
}
