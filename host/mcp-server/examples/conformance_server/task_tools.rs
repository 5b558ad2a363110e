//! Tools whose calls are tasks.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use toolwit::tool::{ToolError, ToolResult};
use toolwit::{Error, ErrorKind, NativeTool, Phase, Tool, ToolContext};
use toolwit_mcp_server::{ClientRequest, McpClient, TaskSupport};

use crate::forms;

/// Returns whether the calls of a tool become tasks.
pub(crate) fn support(tool: &str) -> TaskSupport {
    match tool.strip_prefix("native#").unwrap_or(tool) {
        "confirm_delete" | "multi_input" => TaskSupport::Always,
        "failing_job" => TaskSupport::Required,
        _ => TaskSupport::WhenLong,
    }
}

fn client(context: &ToolContext) -> Result<McpClient, ToolError> {
    McpClient::of(context).ok_or_else(|| {
        let message = "the tool needs an MCP client";
        ToolError::Model(Error::new(ErrorKind::ToolUnavailable, Phase::Execute, message))
    })
}

/// Waits, unless the call is cancelled.
async fn work(context: &ToolContext, seconds: u64) {
    tokio::select! {
        () = context.cancel_token().cancelled() => {}
        () = tokio::time::sleep(Duration::from_secs(seconds)) => {}
    }
}

fn sync_tools() -> Result<[NativeTool; 2], Error> {
    let name = json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
    let greet = NativeTool::new("greet", "Greets.", name, |arguments, _| async move {
        let name = arguments["name"].as_str().unwrap_or_default();
        Ok(ToolResult::text(format!("Hello, {name}!")))
    })?;
    let schema = json!({
        "type": "object",
        "properties": {"seconds": {"type": "integer", "minimum": 0}, "label": {"type": "string"}},
        "required": ["seconds"],
    });
    let compute = NativeTool::new(
        "slow_compute",
        "Computes slowly.",
        schema,
        |arguments, context| async move {
            work(&context, arguments["seconds"].as_u64().unwrap_or_default()).await;
            let label = arguments.get("label").and_then(Value::as_str).unwrap_or("computed");
            Ok(ToolResult::text(label))
        },
    )?;
    Ok([greet, compute])
}

fn failing_tools() -> Result<[NativeTool; 2], Error> {
    let empty = || json!({"type": "object", "properties": {}});
    let failing = NativeTool::new("failing_job", "Fails.", empty(), |_, context| async move {
        work(&context, 1).await;
        Ok(ToolResult::error("the job failed"))
    })?;
    // The suite does not declare roots, which is an error of the protocol.
    let protocol = NativeTool::new("protocol_error_job", "Fails.", empty(), |_, context| async move {
        work(&context, 1).await;
        client(&context)?.ask([("roots", ClientRequest::Roots)]).await?;
        Ok(ToolResult::text("the client has roots"))
    })?;
    Ok([failing, protocol])
}

fn asking_tools() -> Result<[NativeTool; 3], Error> {
    let file = json!({"type": "object", "properties": {"filename": {"type": "string"}}});
    let confirm = NativeTool::new("confirm_delete", "Deletes nothing.", file, |_, context| async move {
        let confirm = forms::field("Delete it?", "confirm", "boolean");
        let answers = client(&context)?.ask([("confirm", confirm)]).await?;
        Ok(ToolResult::text(json!(answers).to_string()))
    })?;
    let empty = || json!({"type": "object", "properties": {}});
    let several = NativeTool::new("multi_input", "Asks twice at once.", empty(), |_, context| async move {
        let questions = ["first", "second"].map(|key| (key, forms::field("Your answer?", key, "string")));
        let answers = client(&context)?.ask(questions).await?;
        Ok(ToolResult::text(json!(answers).to_string()))
    })?;
    let composed = NativeTool::new(
        "test_tool_with_task",
        "Asks, then works.",
        empty(),
        |_, context| async move {
            let name = forms::field("What is your name?", "name", "string");
            let answers = client(&context)?.ask([("user_name", name)]).await?;
            work(&context, 1).await;
            Ok(ToolResult::text(json!(answers).to_string()))
        },
    )?;
    Ok([confirm, several, composed])
}

/// Returns all tools.
pub(crate) fn tools() -> Result<Vec<Arc<dyn Tool>>, Error> {
    let tools = sync_tools()?.into_iter().chain(failing_tools()?).chain(asking_tools()?);
    Ok(tools.map(|tool| Arc::new(tool) as Arc<dyn Tool>).collect())
}
