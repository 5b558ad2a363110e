//! Tools that stand for others until they are called.

mod builder;
mod content;
mod context_tool;

pub use builder::FacadeBuilder;

pub(super) use context_tool::{Described, context_tool};

use std::sync::Arc;

use async_trait::async_trait;

use self::content::Inside;
use toolwit_core::{
    Arguments, NativeTool, Tool, ToolContext, ToolDefinition, ToolError, ToolFacade, ToolProvider, ToolResult,
};
use toolwit_core::{Error, ErrorKind, Phase};

/// A tool that stands for others: the model sees one tool, and calling it brings in those behind it.
///
/// The facade stays where it is, byte for byte, since any change before the messages costs the provider's cached prompt. Called
/// again it lists its tools; with other arguments it adds to them, or binds them anew. The tool `<name>_context` comes with
/// them: it tells what they have in common and all details of each. Facades nest, to
/// [`FACADE_DEPTH_MAX`](super::FACADE_DEPTH_MAX).
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
    opener: NativeTool,
    inside: Arc<Inside>,
}

impl Facade {
    /// Starts to describe a facade. The description says when to open it.
    pub fn builder(name: impl Into<String>, description: impl Into<String>) -> FacadeBuilder {
        FacadeBuilder::new(name.into(), description.into())
    }

    /// Puts a facade before the methods of an object.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidProvider`] for an object without methods, else as [`FacadeBuilder::build`].
    pub fn of_object(
        name: impl Into<String>,
        description: impl Into<String>,
        object: &dyn ToolProvider,
    ) -> Result<Self, Error> {
        let name = name.into();
        let tools = object.tools();
        if tools.is_empty() {
            let message = format!("the `{}` behind the facade `{name}` has no tools", object.prefix());
            return Err(Error::new(ErrorKind::InvalidProvider, Phase::Registry, message)
                .with_suggestion("give the object a method, or leave the facade out"));
        }
        Self::builder(name, description).tools(tools).build()
    }

    /// Puts a facade before the methods of an object; `None` where there are none, or where they make no facade.
    #[must_use]
    pub fn of_object_if_any(
        name: impl Into<String>,
        description: impl Into<String>,
        object: &dyn ToolProvider,
    ) -> Option<Self> {
        Self::of_object(name, description, object).ok()
    }

    /// Returns the tools that are inside whatever the arguments are.
    #[must_use]
    pub fn tools(&self) -> &[Arc<dyn Tool>] {
        self.inside.folded()
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
        Some(&*self.inside)
    }
}
