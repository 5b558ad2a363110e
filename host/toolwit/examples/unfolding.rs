//! Progressive disclosure: four facades for eighty tools, each of which a model reaches with two calls; a playbook that
//! locks a tool; and an exclusive facade. The model is scripted, so the example needs neither a key nor a network:
//!
//! ```text
//! cargo run --example unfolding
//! ```

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::sync::Arc;

use serde_json::{Value, json};
use toolwit::tool::Origin;
use toolwit::{Event, Facade, NativeTool, Playbook, ScriptedModel, Tool, ToolResult, Unlock};

/// Creates a tool that returns a confirmation.
fn tool(name: &str) -> Result<Arc<dyn Tool>, toolwit::Error> {
    let done = format!("{name} is done");
    let schema = json!({"type": "object"});
    let tool = NativeTool::new(name, format!("Does {name}."), schema, move |_, _| {
        let done = done.clone();
        async move { Ok(ToolResult::text(done)) }
    })?;
    Ok(Arc::new(tool))
}

/// Creates a facade for twenty tools.
fn shelf(name: &str, about: &str) -> Result<Facade, toolwit::Error> {
    let tools = (1..=20).map(|number| tool(&format!("{name}_{number}")));
    Facade::builder(name, about)
        .tools(tools.collect::<Result<Vec<_>, _>>()?)
        .usage_notes("The lower numbers are cheaper.")
        .build()
}

/// Creates a facade whose tools depend on the account in its arguments.
fn accounts() -> Result<Facade, toolwit::Error> {
    let schema = json!({
        "type": "object",
        "properties": {"account": {"type": "string", "description": "Which account to work with."}},
        "required": ["account"],
    });
    Facade::builder("account", "Opens an account.")
        .select_with(schema, |arguments, _context| {
            let account = arguments["account"].as_str().unwrap_or_default().to_owned();
            let balance = NativeTool::new(
                "balance",
                "Returns the balance.",
                json!({"type": "object"}),
                move |_, _| {
                    let balance = json!({"account": account, "balance": 100});
                    async move { Ok(ToolResult::value(balance)) }
                },
            );
            Ok(vec![
                Arc::new(balance.map_err(toolwit::ToolError::Operator)?) as Arc<dyn Tool>
            ])
        })
        .exclusive()
        .build()
}

/// Prints the events that concern tools.
fn print_event(event: &Event, _: &Origin) {
    match event {
        Event::IterationStarted { iteration, tools, .. } => println!("\n{iteration}: the model is shown {tools} tools"),
        Event::ToolFinished { name, content, .. } => println!("  {name}: {content:.90}"),
        Event::CallGuided { content, .. } => println!("  {content}"),
        Event::ToolsInjected {
            trigger,
            names,
            prompt_bytes,
            ..
        } => {
            println!(
                "  `{trigger}` adds {} tools, {prompt_bytes} bytes of prompt",
                names.len()
            );
        }
        Event::ToolsRebound { names, .. } => println!("  {} tools are bound to the new instance", names.len()),
        _ => {}
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let nothing: fn() -> Value = || json!({});
    let model = ScriptedModel::new()
        .call("mail", nothing())
        .call("mail_7", nothing())
        .call("publish", nothing())
        .call("review", nothing())
        .call("publish", nothing())
        .call("account", json!({"account": "savings"}))
        .call("review", nothing())
        .call("account", json!({"account": "checking"}))
        .call("balance", nothing())
        .answer("All is done.");
    let playbook = Playbook::new()
        .with_tool(tool("review")?)
        .with_locked_tool(tool("publish")?, Unlock::by("review"));
    let mut builder = toolwit::Conversation::builder().model(model).observer(print_event);
    for (name, about) in [
        ("mail", "Reads and writes mail."),
        ("files", "Works with files."),
        ("calendar", "Makes appointments."),
        ("maps", "Finds places."),
    ] {
        builder = builder.tool(shelf(name, about)?);
    }
    let outcome = builder.tool(accounts()?).playbook(playbook).run("Do it all.").await?;
    println!("\n{}", outcome.text());
    Ok(())
}
