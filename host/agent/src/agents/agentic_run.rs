//! One call of an agentic tool: a conversation from start to end.

use super::inner_loop::{InnerLoop, SystemPrompt};
use crate::conversation::Conversation;
use crate::model::ModelError;
use crate::outcome::{RunError, RunFailure, RunOutcome};
use crate::process::Process;
use toolwit_core::limits::AGENT_DEPTH_MAX;
use toolwit_core::{Error, ErrorKind, Phase};
use toolwit_core::{Role, ToolContext, ToolDefinition, ToolError, ToolResult};

/// Runs the inner loop, and waits for its background calls.
pub(super) async fn run_agent(
    inner: &InnerLoop,
    definition: &ToolDefinition,
    input: &str,
    context: &ToolContext,
) -> Result<ToolResult, ToolError> {
    check_depth(context)?;
    let mut conversation =
        inner_conversation(inner, &definition.description, input, context).map_err(ToolError::Operator)?;
    let mut outcome = conversation.run(input).await;
    let mut artifacts = Vec::new();
    while let Ok(finished) = &mut outcome {
        artifacts.append(&mut finished.artifacts);
        if finished.signal.is_some() {
            break;
        }
        match conversation.wake().await {
            Some(next) => outcome = next,
            None => break,
        }
    }
    let mut result = match outcome {
        Ok(outcome) => answer(outcome),
        Err(mut error) => {
            artifacts.append(&mut error.outcome.artifacts);
            failure_result(error, &definition.names)?
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
    let message = format!("agents may be nested {AGENT_DEPTH_MAX} deep, and this call is deeper");
    let error = Error::new(ErrorKind::LoopLimit, Phase::Validate, message);
    Err(ToolError::Model(
        error.with_suggestion("do the task with your own tools"),
    ))
}

fn inner_conversation(
    inner: &InnerLoop,
    description: &str,
    input: &str,
    context: &ToolContext,
) -> Result<Conversation, Error> {
    if let Some(error) = &inner.failed {
        return Err(error.clone());
    }
    let system = match &inner.system {
        SystemPrompt::Fixed(text) => text.to_string(),
        SystemPrompt::FromCall(make) => make(context, input),
        SystemPrompt::FromDescription => format!(
            "You are an agent that does one task with the help of tools. Use the tools that you are given, and answer only with \
             the result. The task: {description}"
        ),
    };
    let mut builder = Conversation::builder()
        .context(context.clone())
        .system(system)
        .goal(description)
        .options(inner.options.clone())
        .limits(inner.limits.clone())
        .budget(inner.budget)
        .tools(inner.tools.iter().cloned())
        .strategy(inner.strategies.clone())
        .chaining(inner.chaining.clone());
    if let Some(add_workflow) = &inner.workflow {
        builder = add_workflow(builder);
    }
    for reference in &inner.references {
        builder = builder.reference(reference);
    }
    if let Some(choice) = &inner.model {
        builder = builder.model_choice(choice.clone());
    }
    if !inner.captures_nested_artifacts {
        builder = builder.without_nested_artifacts();
    }
    for observer in &inner.observers {
        builder = builder.shared_observer(observer.clone());
    }
    builder.build()
}

/// Returns the result of a run. A signal of an inner tool is passed on to the outer run.
fn answer(outcome: RunOutcome) -> ToolResult {
    match outcome.signal {
        Some(signal) => ToolResult::from(signal),
        None => ToolResult::text(outcome.answer.unwrap_or_default()),
    }
}

/// Converts a failed run to a result for the outer model, or to an error for the operator if only the operator can fix it.
fn failure_result(error: RunError, names: &[String]) -> Result<ToolResult, ToolError> {
    let RunError { failure, outcome } = error;
    match &failure {
        RunFailure::Tool(error) => return Err(ToolError::Operator(error.clone())),
        RunFailure::Model(ModelError::Configuration { .. }) => return Err(ToolError::Operator(failure.report())),
        RunFailure::Cancelled => return Err(ToolError::Model(failure.report())),
        _ => {}
    }
    let name = names.first().map_or("agent", String::as_str);
    let mut messages = outcome.history.iter().rev();
    let last_text = messages
        .find(|message| matches!(message.role, Role::Assistant { .. }) && !message.content().is_empty())
        .map(|message| format!("; its last message: {}", message.content()));
    let message = format!("`{name}` did not finish: {failure}{}", last_text.unwrap_or_default());
    Ok(ToolResult::error(message).with_source(failure))
}
