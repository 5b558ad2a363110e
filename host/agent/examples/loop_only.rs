//! Runs the agent loop with a native tool, without WebAssembly. The model is scripted, so the example needs neither a key
//! nor a network.
//!
//! ```text
//! cargo run -p toolwit-agent --example loop_only
//! ```

#![allow(clippy::print_stdout, reason = "an example prints its result")]

use std::error::Error;

use serde_json::json;
use toolwit_agent::Conversation;
use toolwit_agent::model::ScriptedModel;
use toolwit_core::{NativeTool, ToolResult};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let schema = json!({
        "type": "object",
        "properties": {"celsius": {"type": "number"}},
        "required": ["celsius"],
    });
    let fahrenheit = NativeTool::new(
        "fahrenheit",
        "Converts degrees Celsius.",
        schema,
        |arguments, _| async move {
            let celsius = arguments["celsius"].as_f64().unwrap_or_default();
            Ok(ToolResult::value(json!(celsius * 1.8 + 32.0)))
        },
    )?;
    let model = ScriptedModel::new()
        .call("fahrenheit", json!({"celsius": 20.0}))
        .answer("It is {{result}} degrees Fahrenheit.");
    let mut conversation = Conversation::builder().model(model).tool(fahrenheit).build()?;
    let outcome = conversation.run("What is 20 degrees Celsius in Fahrenheit?").await?;
    println!("{}", outcome.text());
    Ok(())
}
