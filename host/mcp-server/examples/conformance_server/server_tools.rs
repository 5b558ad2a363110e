//! Tools that show schemas, and change the server.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use toolwit::tool::{ToolError, ToolResult};
use toolwit::{Error, ErrorKind, NativeTool, Phase, Tool};

use crate::SERVER;

/// The component that `test_trigger_tool_change` adds and removes.
const ADDED: &str = r#"(component
    (core module $code (func (export "added") (result i32) i32.const 1))
    (core instance $instance (instantiate $code))
    (func (export "added") (result u32) (canon lift (core func $instance "added"))))"#;

/// A schema with keywords of JSON Schema 2020-12. A plugin could list it, but the host removes `$anchor` from schemas of plugins.
fn schema() -> Value {
    let text = json!({"type": "string"});
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": {"street": text, "city": text}}},
        "properties": {
            "name": text,
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": text,
            "email": text,
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": false,
    })
}

/// Returns all tools. One of them changes the directory of plugins.
pub(crate) fn tools(plugins: &Path) -> Result<Vec<Arc<dyn Tool>>, Error> {
    let empty = || json!({"type": "object", "properties": {}});
    let contact = NativeTool::new(
        "json_schema_2020_12_tool",
        "Returns a contact.",
        schema(),
        |contact, _| async move { Ok(ToolResult::text(Value::Object(contact).to_string())) },
    )?;
    let region = json!({"type": "string", "x-mcp-header": "Region"});
    let region = json!({"type": "object", "properties": {"region": region}});
    let header = NativeTool::new("test_custom_header", "Has a header.", region, |_, _| async {
        Ok(ToolResult::text("the header is the argument"))
    })?;
    let wait = NativeTool::new("test_reconnection", "Waits a moment.", empty(), |_, _| async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        Ok(ToolResult::text("Reconnection test completed"))
    })?;
    let prompts = NativeTool::new(
        "test_trigger_prompt_change",
        "Changes the prompts.",
        empty(),
        |_, _| async {
            if let Some(server) = SERVER.get() {
                server.set_content(crate::content().map_err(ToolError::Operator)?);
            }
            Ok(ToolResult::text("the prompts changed"))
        },
    )?;
    let added = plugins.join("added.wasm");
    // A broken file would be reported later, because it may be one that is still being written.
    let component = wat::parse_str(ADDED).map_err(|error| {
        let message = format!("the added component is invalid: {error}");
        Error::new(ErrorKind::MalformedComponent, Phase::Load, message)
    })?;
    let plugins = NativeTool::new(
        "test_trigger_tool_change",
        "Changes the tools.",
        empty(),
        move |_, _| {
            let changed = if added.exists() {
                fs::remove_file(&added)
            } else {
                fs::write(&added, &component)
            };
            async move {
                Ok(match changed {
                    Ok(()) => ToolResult::text("the tools changed"),
                    Err(error) => ToolResult::error(error.to_string()),
                })
            }
        },
    )?;
    Ok([contact, header, wait, prompts, plugins]
        .into_iter()
        .map(|tool| Arc::new(tool) as Arc<dyn Tool>)
        .collect())
}
