//! One call of an agentic tool: a conversation from its beginning to its end.

use super::{AgenticTool, SystemPrompt};
use crate::conversation::Conversation;
use crate::failure::{RunError, RunFailure};
use crate::model::ModelError;
use crate::outcome::RunOutcome;
use crate::process::{AGENT_DEPTH_MAX, Process};
use toolwit_core::{Error, ErrorKind, Phase};
use toolwit_core::{ToolContext, ToolError, ToolResult};

/// Runs the loop inside, and waits for what it began in the background.
pub(super) async fn run(tool: &AgenticTool, input: &str, context: &ToolContext) -> Result<ToolResult, ToolError> {
    check_depth(context)?;
    let mut conversation = begin(tool, input, context).map_err(ToolError::Operator)?;
    let mut ended = conversation.run(input).await;
    let mut artifacts = Vec::new();
    while let Ok(outcome) = &mut ended {
        artifacts.append(&mut outcome.artifacts);
        if outcome.signal.is_some() {
            break;
        }
        match conversation.wake().await {
            Some(woken) => ended = woken,
            None => break,
        }
    }
    let mut result = match ended {
        Ok(outcome) => answer(outcome),
        Err(mut error) => {
            artifacts.append(&mut error.outcome.artifacts);
            failed(error, &tool.definition.names)?
        }
    };
    result.artifacts = artifacts;
    Ok(result)
}

fn check_depth(context: &ToolContext) -> Result<(), ToolError> {
    let depth = Process::of(context).map_or(0, |process| process.depth());
    if depth < AGENT_DEPTH_MAX {
        return Ok(());
    }
    let message = format!("agents may call agents {AGENT_DEPTH_MAX} deep, and this is deeper");
    let error = Error::new(ErrorKind::LoopLimit, Phase::Validate, message);
    Err(ToolError::Model(error.with_suggestion("do it with the tools at hand")))
}

fn begin(tool: &AgenticTool, input: &str, context: &ToolContext) -> Result<Conversation, Error> {
    let plan = &tool.plan;
    if let Some(error) = &plan.failed {
        return Err(error.clone());
    }
    let description = &tool.definition.description;
    let system = match &plan.system {
        SystemPrompt::Fixed(text) => text.to_string(),
        SystemPrompt::Made(make) => make(context, input),
        SystemPrompt::FromDescription => format!(
            "You are an agent that does one task with the help of tools. Use the tools that you are given, and answer with the \
             result alone. The task: {description}"
        ),
    };
    let mut builder = Conversation::builder()
        .context(context.clone())
        .system(system)
        .goal(description)
        .options(plan.options.clone())
        .limits(plan.limits.clone())
        .budget(plan.budget)
        .tools(plan.tools.iter().cloned())
        .strategy(plan.strategies.clone())
        .chaining(plan.chaining.clone());
    if let Some(order) = &plan.order {
        builder = order(builder);
    }
    for reference in &plan.references {
        builder = builder.reference(reference);
    }
    if let Some(choice) = &plan.model {
        builder = builder.model_choice(choice.clone());
    }
    if !plan.captures_nested_artifacts {
        builder = builder.without_nested_artifacts();
    }
    for observer in &plan.observers {
        builder = builder.shared_observer(observer.clone());
    }
    builder.build()
}

/// A tool's wish that the run ends goes on to the run around this one.
fn answer(outcome: RunOutcome) -> ToolResult {
    match outcome.signal {
        Some(signal) => ToolResult::from(signal),
        None => ToolResult::text(outcome.answer.unwrap_or_default()),
    }
}

/// Says to whom it concerns that there is no full answer: to the operator what only an operator can mend, to the model around it
/// all else.
fn failed(error: RunError, names: &[String]) -> Result<ToolResult, ToolError> {
    let RunError { failure, outcome } = error;
    match &failure {
        RunFailure::Tool(error) => return Err(ToolError::Operator(error.clone())),
        RunFailure::Model(ModelError::Configuration { .. }) => return Err(ToolError::Operator(failure.report())),
        RunFailure::Cancelled => return Err(ToolError::Model(failure.report())),
        _ => {}
    }
    let name = names.first().map_or("agent", String::as_str);
    let said =
        outcome.history.iter().rev().find(|message| {
            matches!(message.role, toolwit_core::Role::Assistant { .. }) && !message.content().is_empty()
        });
    let reached = match said {
        Some(message) => format!("; what it said last: {}", message.content()),
        None => String::new(),
    };
    Ok(ToolResult::error(format!("`{name}` came to no end: {failure}{reached}")).with_source(failure))
}
