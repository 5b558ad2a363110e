//! Tools that show a model its own process.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::process::{ModelUse, ModelUseKind, Process};
use super::tool_loop::millis;
use crate::injection::Facade;
use toolwit_core::Error;
use toolwit_core::{NativeTool, NoArguments, Tool, ToolContext, ToolError, ToolId};

/// How many actions `process_history` shows unless it is asked for more.
const ACTIONS_SHOWN: usize = 20;

/// The tools with which a model looks at its own process: how far it is, what it may still use, what it has done.
///
/// Called outside a conversation, each answers with an error that says so.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcessTools;

/// What `process_history` takes.
#[derive(Deserialize, JsonSchema)]
struct Last {
    /// How many of the newest actions to show; 20 unless said otherwise.
    last: Option<usize>,
}

impl ProcessTools {
    /// The name of the facade before the tools.
    pub const NAME: &'static str = "process";

    /// What the tools are for, as a model reads it.
    pub const DESCRIPTION: &'static str =
        "Shows your own process: status, budget and what is left of it, cost, history, tools and models used.";

    /// Makes one tool that opens into the others.
    ///
    /// # Errors
    /// None in practice; the schemas are fixed.
    pub fn facade() -> Result<Facade, Error> {
        let facade = Facade::builder(Self::NAME, Self::DESCRIPTION).id(ToolId::host(Self::NAME));
        facade.tools(Self::tools()?).build()
    }

    /// Makes the tools.
    ///
    /// # Errors
    /// None in practice; the schemas are fixed.
    pub fn tools() -> Result<Vec<Arc<dyn Tool>>, Error> {
        Ok(vec![
            tool(
                "process_status",
                "Shows the id, status, goal and running time of your process.",
                |process, _: NoArguments| status(process),
            )?,
            tool(
                "process_budget",
                "Shows what your process may use, and what is left.",
                |process, _: NoArguments| budget(process),
            )?,
            tool(
                "process_cost",
                "Shows the tokens and the money that your process has used.",
                |process, _: NoArguments| cost(process),
            )?,
            tool(
                "process_history",
                "Lists what your process did, with the time each action took.",
                |process, last: Last| history(process, last.last.unwrap_or(ACTIONS_SHOWN)),
            )?,
            tool(
                "process_tools_stats",
                "Shows how often each tool was called.",
                |process, _: NoArguments| json!(process.tool_use()),
            )?,
            tool(
                "process_models",
                "Lists the models that were used, for answers and for embeddings.",
                |process, _: NoArguments| models(process),
            )?,
        ])
    }
}

fn tool<In>(
    name: &str,
    description: &str,
    show: impl Fn(&Process, In) -> Value + Copy + Send + Sync + 'static,
) -> Result<Arc<dyn Tool>, Error>
where
    In: serde::de::DeserializeOwned + JsonSchema + Send + 'static,
{
    let names = vec![name.to_owned()];
    let made = NativeTool::typed_as(
        ToolId::host(name),
        names,
        description,
        move |input: In, context: ToolContext| async move { Ok::<_, ToolError>(show(Process::of(&context)?, input)) },
    )?;
    Ok(Arc::new(made))
}

fn status(process: &Process) -> Value {
    json!({
        "id": process.id(),
        "state": process.status(),
        "goal": process.goal(),
        "running_ms": millis(process.running_time()),
        "depth": process.depth(),
    })
}

fn budget(process: &Process) -> Value {
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
            "wall_ms": millis(process.running_time()),
        },
    })
}

fn cost(process: &Process) -> Value {
    let used = process.model_use();
    let sum = |wanted: ModelUseKind| {
        let of_kind = used.iter().filter(|((kind, _), _)| *kind == wanted);
        of_kind.fold(ModelUse::default(), |mut sum, (_, used)| {
            sum.invocations += used.invocations;
            sum.tokens += used.tokens;
            sum.cost_usd = sum.cost_usd.saturating_add(used.cost_usd);
            sum
        })
    };
    json!({
        "cost_usd": process.cost(),
        "chat": sum(ModelUseKind::Chat),
        "embedding": sum(ModelUseKind::Embedding),
    })
}

fn history(process: &Process, last: usize) -> Value {
    let actions = process.actions();
    let shown = actions.get(actions.len().saturating_sub(last)..).unwrap_or_default();
    json!({ "actions": shown, "all": actions.len() })
}

fn models(process: &Process) -> Value {
    let used = process.model_use().into_iter();
    let models = used.map(|((kind, model), used)| json!({ "model": model, "kind": kind, "use": used }));
    json!({ "models": models.collect::<Vec<_>>() })
}
