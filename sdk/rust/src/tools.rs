//! Calls of other tools. Each tool needs a grant (`--tool ID`).

use serde::Serialize;

use crate::{ToolError, ToolResult, host};

/// Calls a tool by its id. The arguments must serialise to a JSON object. The fuel, time and calls of the called tool count
/// towards the limits of the calling tool.
///
/// ```no_run
/// # #[derive(serde::Serialize)]
/// # struct Text<'a> { text: &'a str }
/// let slug = toolwit_guest::tools::call("text#slugify", &Text { text: "Hello, World" })?;
/// assert_eq!(slug.text(), "hello-world");
/// # Ok::<(), toolwit_guest::ToolError>(())
/// ```
///
/// # Errors
///
/// [`ToolError`], also if the tool returned an error.
pub fn call<T: Serialize + ?Sized>(tool: &str, arguments: &T) -> Result<ToolResult, ToolError> {
    let arguments = serde_json::to_string(arguments).map_err(|error| ToolError::InvalidArguments(error.to_string()))?;
    let result = host::call_tool(tool, &arguments)?;
    if result.is_error() {
        return Err(ToolError::Failed(result.text));
    }
    Ok(result)
}
