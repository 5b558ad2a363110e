//! Runs a tool of a component in the sandbox, without the agent loop. Nothing is granted to it.
//!
//! ```text
//! cargo run -p toolwit-sandbox --example sandbox_only
//! cargo run -p toolwit-sandbox --example sandbox_only -- FILE.wasm TOOL '{"argument": 1}'
//! ```

#![allow(clippy::print_stdout, reason = "an example prints its result")]

use std::error::Error;
use std::path::PathBuf;

use toolwit_core::{Arguments, Tool, ToolContext};
use toolwit_sandbox::{Plugin, Runtime, RuntimeOptions, Scope};

/// A component that exports `add: func(a: u32, b: u32) -> u32`.
const ADDER: &str = r#"(component
    (core module $m (func (export "add") (param i32 i32) (result i32) local.get 0 local.get 1 i32.add))
    (core instance $i (instantiate $m))
    (func (export "add") (param "a" u32) (param "b" u32) (result u32) (canon lift (core func $i "add"))))"#;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let runtime = Runtime::new(RuntimeOptions::default())?;
    let plugin = match arguments.next() {
        Some(file) => Plugin::from_file(&runtime, "plugin", PathBuf::from(file)).await?,
        None => Plugin::from_bytes(&runtime, "adder", wat::parse_str(ADDER)?).await?,
    };
    // Resources that the plugin returns live in the scope.
    let tools = plugin.tools(&Scope::new());
    for tool in &tools {
        println!("{} {}", tool.definition().name(), tool.definition().input_schema);
    }
    let name = arguments.next().unwrap_or_else(|| "add".to_owned());
    let input: Arguments = serde_json::from_str(arguments.next().as_deref().unwrap_or(r#"{"a": 1, "b": 2}"#))?;
    let tool = tools
        .iter()
        .find(|tool| tool.definition().name() == name)
        .ok_or("the component has no such tool")?;
    let result = tool.call(input, &ToolContext::new()).await?;
    println!("{}", result.for_llm);
    Ok(())
}
