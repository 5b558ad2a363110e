//! Runs a call of an agentic tool as a conversation.

use std::sync::Arc;

use super::agentic_tool::AgenticTool;
use crate::conversation::Conversation;
use crate::model::ModelError;
use crate::outcome::{RunError, RunFailure, RunOutcome};
use crate::process::{Account, AgentName, AgentProcess, FailedAgent};
use toolwit_core::limits::AGENT_DEPTH_MAX;
use toolwit_core::{Error, ErrorKind, Phase};
use toolwit_core::{Role, ToolContext, ToolError, ToolResult};

/// Runs a new conversation of the agent for one input. Also waits for the results of its background calls.
pub(super) async fn run_agent(
    agent: &AgenticTool,
    input: &str,
    context: &ToolContext,
) -> Result<ToolResult, ToolError> {
    check_depth(context)?;
    let mut conversation = build_conversation(agent, input, context).map_err(ToolError::Operator)?;
    match conversation.turn(input).run_with_background().await {
        Ok(outcome) => Ok(success_result(outcome)),
        Err(error) => failure_result(error, agent.definition.name(), context),
    }
}

fn check_depth(context: &ToolContext) -> Result<(), ToolError> {
    let depth = AgentProcess::of(context).map_or(0, |process| process.depth());
    if depth < AGENT_DEPTH_MAX {
        return Ok(());
    }
    let message = format!("agents may be nested at most {AGENT_DEPTH_MAX} levels deep, and this call is deeper");
    let error = Error::new(ErrorKind::LoopLimit, Phase::Validate, message);
    Err(ToolError::Model(
        error.with_suggestion("do the task with your own tools"),
    ))
}

fn build_conversation(agent: &AgenticTool, input: &str, context: &ToolContext) -> Result<Conversation, Error> {
    if let Some(error) = &agent.parameter_error {
        return Err(error.clone());
    }
    let mut config = agent.config.clone();
    config.has_nested_artifacts.get_or_insert(false);
    let description = &agent.definition.description;
    let system = match (&agent.make_system_prompt, config.system.take()) {
        (Some(make_system_prompt), _) => make_system_prompt(context, input),
        (None, Some(text)) => text,
        (None, None) => format!(
            "You are an agent that does one task with the help of tools. Use the tools that you are given, and answer only with \
             the result. The task: {description}"
        ),
    };
    let builder = Conversation::builder().config(config.with_system(system));
    let name = AgentName(agent.definition.name().to_owned());
    builder
        .goal(description)
        .context(context.clone().with_extension(name))
        .build()
}

/// Converts the outcome of a run to a result. If an inner tool ended the run with a signal, the result passes it on to the
/// outer run.
fn success_result(outcome: RunOutcome) -> ToolResult {
    let mut result = match outcome.signal {
        Some(signal) => ToolResult::from(signal),
        None => ToolResult::text(outcome.answer.unwrap_or_default()),
    };
    result.artifacts = outcome.artifacts;
    result
}

/// Converts a failed run to a failed result for the outer model. The result contains the last text of the agent. Records the
/// failed agent in the account of the outer run, so that the error of the outer run can name the agent.
///
/// # Errors
/// [`ToolError::Operator`] if only the operator can fix the failure; [`ToolError::Model`] if the run was cancelled.
fn failure_result(error: RunError, name: &str, context: &ToolContext) -> Result<ToolResult, ToolError> {
    let failed_agent_name = error.agent.as_deref().unwrap_or(name).to_owned();
    let message = format!("`{name}` did not finish: {error}");
    let RunError { failure, outcome, .. } = error;
    if let Some(account) = context.extension::<Arc<Account>>() {
        account.record_failed_agent(FailedAgent {
            name: failed_agent_name,
            failure: failure.clone(),
        });
    }
    match &failure {
        RunFailure::Tool(error) => return Err(ToolError::Operator(error.clone().with_agent(name))),
        RunFailure::Model(ModelError::Configuration { .. }) => {
            return Err(ToolError::Operator(failure.report().with_agent(name)));
        }
        RunFailure::Cancelled => return Err(ToolError::Model(failure.report())),
        _ => {}
    }
    let mut messages = outcome.history.iter().rev();
    let last_text = messages
        .find(|message| matches!(message.role, Role::Assistant { .. }) && !message.content().is_empty())
        .map(|message| format!("; its last message: {}", message.content()));
    let mut result = ToolResult::error(message + &last_text.unwrap_or_default()).with_source(failure);
    result.artifacts = outcome.artifacts;
    Ok(result)
}
