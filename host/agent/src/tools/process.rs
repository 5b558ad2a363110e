//! Process tools, with which a model reads the status, budget and usage of its own process.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::injection::Facade;
use crate::millis::millis;
use crate::process::{AgentProcess, ModelUsage, ModelUsageKind};
use toolwit_core::Error;
use toolwit_core::{EffectClass, NativeTool, NoArguments, Tool, ToolContext, ToolError, ToolId};

/// The default number of actions that `process_history` returns.
const DEFAULT_ACTION_COUNT: usize = 20;

/// Tools with which a model reads its own process: status, budget, cost, history and usage.
///
/// Outside a conversation, each call returns an error.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessTools;

/// The arguments of `process_history`.
#[derive(Deserialize, JsonSchema)]
struct HistoryArguments {
    /// The number of actions to show, newest last; 20 by default.
    last: Option<usize>,
}

impl ProcessTools {
    /// The name of the facade that contains the tools.
    pub const NAME: &'static str = "process";

    /// The description of the facade that contains the tools.
    pub const DESCRIPTION: &'static str =
        "Shows your own process: status, budget and remaining budget, cost, history, and the tools and models used.";

    /// Returns one facade that contains the tools.
    ///
    /// # Errors
    /// Never in practice: the schemas are fixed.
    pub fn facade() -> Result<Facade, Error> {
        let facade = Facade::builder(Self::NAME, Self::DESCRIPTION).id(ToolId::host(Self::NAME));
        facade.tools(Self::tools()?).build()
    }

    /// Returns the tools.
    ///
    /// # Errors
    /// Never in practice: the schemas are fixed.
    pub fn tools() -> Result<Vec<Arc<dyn Tool>>, Error> {
        Ok(vec![
            tool(
                "process_status",
                "Shows the id, status, goal, running time and nesting depth of your process.",
                |process, _: NoArguments| status(process),
            )?,
            tool(
                "process_budget",
                "Shows the budget of your process: the limits, the used part and the remaining part.",
                |process, _: NoArguments| budget(process),
            )?,
            tool(
                "process_cost",
                "Shows the tokens and the cost of your process so far.",
                |process, _: NoArguments| cost(process),
            )?,
            tool(
                "process_history",
                "Lists the last actions of your process, with the duration of each.",
                |process, arguments: HistoryArguments| history(process, arguments.last.unwrap_or(DEFAULT_ACTION_COUNT)),
            )?,
            tool(
                "process_tools_stats",
                "Shows for each tool the number of calls, the number of errors and the total duration.",
                |process, _: NoArguments| json!(process.tool_usage()),
            )?,
            tool(
                "process_models",
                "Lists the models that your process used, for answers and for embeddings.",
                |process, _: NoArguments| models(process),
            )?,
        ])
    }
}

/// Creates a tool that reads the process of its conversation. `show` computes the result of a call.
fn tool<In>(
    name: &str,
    description: &str,
    show: impl Fn(&AgentProcess, In) -> Value + Copy + Send + Sync + 'static,
) -> Result<Arc<dyn Tool>, Error>
where
    In: serde::de::DeserializeOwned + JsonSchema + Send + 'static,
{
    let names = vec![name.to_owned()];
    let tool = NativeTool::typed_as(
        ToolId::host(name),
        names,
        description,
        move |input: In, context: ToolContext| async move { Ok::<_, ToolError>(show(AgentProcess::of(&context)?, input)) },
    )?;
    Ok(Arc::new(tool.with_effect(EffectClass::Read)))
}

fn status(process: &AgentProcess) -> Value {
    json!({
        "id": process.id(),
        "state": process.status(),
        "goal": process.goal(),
        "running_ms": millis(process.running_time()),
        "depth": process.depth(),
    })
}

fn budget(process: &AgentProcess) -> Value {
    let budget = process.budget();
    json!({
        "limits": {
            "tokens": budget.tokens_max,
            "cost_usd": budget.cost_max,
            "calls": budget.calls_max,
            "wall_ms": budget.wall_max.map(millis),
        },
        "left": process.remaining(),
        "used": {
            "tokens": process.tokens(),
            "cost_usd": process.cost(),
            "calls": process.calls(),
            "wall_ms": millis(process.counted_time()),
        },
    })
}

fn cost(process: &AgentProcess) -> Value {
    let usage = process.model_usage();
    let total = |purpose: ModelUsageKind| {
        let with_purpose = usage.iter().filter(|((kind, _), _)| *kind == purpose);
        with_purpose.fold(ModelUsage::default(), |mut sum, (_, model_usage)| {
            sum.invocations += model_usage.invocations;
            sum.tokens += model_usage.tokens;
            sum.cost_usd = sum.cost_usd.saturating_add(model_usage.cost_usd);
            sum
        })
    };
    json!({
        "cost_usd": process.cost(),
        "chat": total(ModelUsageKind::Chat),
        "embedding": total(ModelUsageKind::Embedding),
    })
}

/// Returns the last `count` actions and the number of all stored actions.
fn history(process: &AgentProcess, count: usize) -> Value {
    let actions = process.actions();
    let shown = actions.get(actions.len().saturating_sub(count)..).unwrap_or_default();
    json!({ "actions": shown, "all": actions.len() })
}

fn models(process: &AgentProcess) -> Value {
    let usage_by_model = process.model_usage().into_iter();
    let models = usage_by_model.map(|((kind, model), usage)| json!({ "model": model, "kind": kind, "use": usage }));
    json!({ "models": models.collect::<Vec<_>>() })
}
