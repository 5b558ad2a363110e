//! Nested agents: tools from the attribute `#[tool]`, an agentic tool with a state machine, a subagent, a background
//! task, and a budget for all of them. The models are scripted, so the example needs neither a key nor a network:
//!
//! ```text
//! cargo run --example agents
//! ```

#![allow(clippy::print_stdout)]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolwit::agent::{Subagent, communicate_tool};
use toolwit::model::{Cost, DescribedModel, Price};
use toolwit::tool::Origin;
use toolwit::{
    AgenticTool, Artifact, Budget, Conversation, Parameter, ScriptedModel, StateMachine, Tool, ToolContext, ToolError,
    ToolExt, ToolObject, ToolResult, tool,
};

/// The state of an order.
#[derive(Clone, Debug, PartialEq)]
enum Order {
    Draft,
    Confirmed,
}

#[derive(Default)]
struct Shop {
    cart: Mutex<Vec<String>>,
}

#[tool]
impl Shop {
    /// Puts an item into the cart.
    #[tool]
    fn add_item(
        &self,
        /// The item's name.
        item: String,
        #[tool(default = 1)] count: usize,
    ) -> Result<usize, String> {
        let mut cart = self.cart.lock().map_err(|_| "the cart is broken")?;
        cart.extend(std::iter::repeat_n(item, count));
        Ok(cart.len())
    }

    /// Confirms the order.
    #[tool]
    fn confirm(&self, context: &ToolContext) -> ToolResult {
        let customer = context.text("customer").unwrap_or("nobody");
        ToolResult::text(format!("confirmed for {customer}"))
            .with_artifact(Artifact::new("Order", json!({"id": "o-1"})))
    }

    /// Ships the order.
    #[tool]
    fn ship(&self) -> &'static str {
        "shipped"
    }
}

/// Writes a report. It takes a while.
#[tool]
async fn write_report(context: ToolContext) -> Result<ToolResult, ToolError> {
    context.background_task()?.spawn(async {
        tokio::time::sleep(Duration::from_millis(10)).await;
        Ok(ToolResult::text("The report is at /reports/7."))
    });
    Ok(ToolResult::background("The report is being written."))
}

/// The input of the reviewer.
#[derive(Deserialize, JsonSchema)]
#[allow(dead_code, reason = "the agent reads it as JSON")]
struct ToReview {
    /// The order's number.
    order: String,
}

/// Creates an agent that places an order in two states: draft, then confirmed.
fn clerk(shop: Shop) -> Result<AgenticTool, toolwit::Error> {
    let tools = ToolObject::new(shop).tools()?;
    let [add_item, confirm, ship] =
        <[Arc<dyn Tool>; 3]>::try_from(tools).unwrap_or_else(|_| unreachable!("there are three"));
    let confirm = Arc::new(confirm.publish_artifacts());
    let machine = StateMachine::builder()
        .initial(Order::Draft)
        .in_state(Order::Draft)
        .tool(add_item)
        .tool(confirm)
        .transitions_to(Order::Confirmed)
        .in_state(Order::Confirmed)
        .tool(ship)
        .build()?;
    let script = ScriptedModel::new()
        .call("ship", json!({}))
        .call("add_item", json!({"item": "pen", "count": 3}))
        .call("confirm", json!({}))
        .call("ship", json!({}))
        .answer("Three pens are on their way.");
    Ok(AgenticTool::new("clerk", "Orders items.")
        .with_parameter(Parameter::string("wish", "What is needed"))
        .with_state_machine(machine)
        .with_observer(Arc::new(|event: &toolwit::Event, _: &Origin| match event {
            toolwit::Event::CallGuided { content, .. } => println!("    {content}"),
            toolwit::Event::ToolFinished { name, content, .. } => println!("    {name}: {content}"),
            _ => {}
        }))
        .with_model(DescribedModel::new(script).with_price(Price::per_million(1.0, 4.0))))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let reviewer =
        AgenticTool::new("reviewer", "Reviews an order.").with_model(ScriptedModel::new().answer("All is well."));
    let script = ScriptedModel::new()
        .call("write_report", json!({}))
        .call("clerk", json!({"wish": "three pens"}))
        .call("reviewer", json!({"order": "o-1"}))
        .call("communicate", json!({"message": "The pens are ordered."}))
        .answer("Done.")
        .answer("And here is the report: {{result}}");
    let mut conversation = Conversation::builder()
        .model(script)
        .context(ToolContext::new().with("customer", "Ada"))
        .budget(Budget {
            tokens_max: Some(100_000),
            cost_max: Some(Cost::usd(0.10)),
            calls_max: Some(20),
            ..Budget::default()
        })
        .tool(write_report_tool()?)
        .tool(clerk(Shop::default())?)
        .tool(Subagent::of(reviewer).consuming::<ToReview>()?)
        .tool(communicate_tool()?)
        .observer(|event: &toolwit::Event, _: &Origin| match event {
            toolwit::Event::ToolFinished { name, content, .. } => println!("{name}: {content}"),
            toolwit::Event::LateResult { name, content, .. } => println!("{name}, late: {content}"),
            _ => {}
        })
        .build()?;
    let outcome = conversation.run("I need three pens.").await?;
    println!("{}\n", outcome.text());
    while let Some(woken) = conversation.wake().await {
        println!("{}\n", woken?.text());
    }
    let process = conversation.process();
    println!("on the blackboard: {}", conversation.blackboard().count("Order"));
    println!("{} calls, {:?}, {}", process.calls(), process.tokens(), process.cost());
    Ok(())
}
