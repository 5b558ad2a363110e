//! Facades: tools that reveal further tools when called.

mod builder;
mod content;
mod context_tool;
mod made_again;
mod object;
mod opening;
mod reference;
mod tool_names;
mod unfolding;

pub use builder::FacadeBuilder;
pub use reference::Reference;
pub use unfolding::Unfolding;

pub(crate) use tool_names::write_facade_tool_names;

use std::sync::Arc;

use async_trait::async_trait;

use self::content::FacadeContents;
use toolwit_core::{
    Arguments, Error, NativeTool, Tool, ToolContext, ToolDefinition, ToolError, ToolFacade, ToolResult,
};

/// A tool that reveals further tools when called.
///
/// At first, the model sees only the facade. A call of the facade injects its inner tools. The facade itself stays declared
/// and unchanged, since a change of its declaration would invalidate the provider's prompt cache. A repeated call lists
/// the inner tools. A call with other arguments adds tools, or rebinds them under the same names. The tool `<name>_context`
/// is injected with the inner tools: it returns their definitions and the usage notes. Facades can be nested, up to a depth of
/// [`FACADE_DEPTH_MAX`](toolwit_core::limits::FACADE_DEPTH_MAX).
///
/// ```
/// use std::sync::Arc;
///
/// use toolwit_agent::injection::Facade;
/// use toolwit_core::{NativeTool, NoArguments, Tool};
///
/// # fn tool(name: &str) -> Result<Arc<dyn Tool>, toolwit_core::Error> {
/// #     Ok(Arc::new(NativeTool::typed(name, "", |_: NoArguments, _| async { Ok::<_, String>("done") })?))
/// # }
/// let files = Facade::builder("files", "Reads and writes files.")
///     .category("read", [tool("read_file")?, tool("list_directory")?])
///     .category("write", [tool("write_file")?])
///     .usage_notes("List a directory before you read from it.")
///     .build()?;
/// assert_eq!(files.definition().input_schema["properties"]["category"]["enum"][0], "read");
/// # Ok::<(), toolwit_core::Error>(())
/// ```
pub struct Facade {
    /// The tool that a call of the facade runs. It opens `contents`.
    opener: NativeTool,
    contents: Arc<FacadeContents>,
    /// The settings from which the facade was built, for [`with_tools`](Self::with_tools).
    builder: FacadeBuilder,
}

impl Facade {
    /// Adds inner tools, each in the category of its definition if that has one. All settings of the facade stay, such as its
    /// name and its usage notes. Without tools, the facade is unchanged, and a warning is logged.
    ///
    /// # Errors
    /// As [`FacadeBuilder::build`].
    pub fn with_tools(self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Result<Self, Error> {
        let tools: Vec<_> = tools.into_iter().collect();
        if tools.is_empty() {
            tracing::warn!(facade = self.contents.name, "no tools were added to the facade");
        }
        self.builder.tools(tools).build()
    }

    /// Returns the inner tools that exist before a call, in all categories: those that were added to the facade.
    #[must_use]
    pub fn tools(&self) -> &[Arc<dyn Tool>] {
        self.contents.fixed_tools()
    }
}

#[async_trait]
impl Tool for Facade {
    fn definition(&self) -> &ToolDefinition {
        self.opener.definition()
    }

    async fn call(&self, arguments: Arguments, context: &ToolContext) -> Result<ToolResult, ToolError> {
        self.opener.call(arguments, context).await
    }

    fn facade(&self) -> Option<&dyn ToolFacade> {
        Some(&*self.contents)
    }
}
