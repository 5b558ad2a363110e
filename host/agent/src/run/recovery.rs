//! Recovery of an interrupted run: decides which of its open calls run again, and which outcomes the other open calls
//! get. An open call is a call of the last response that has no answer.

use std::collections::HashMap;

use tokio::time::Instant;

use super::call_queue::{TOOL_FAILED, TOOL_STOPPED_RUN};
use super::prepared_call::PreparedCall;
use super::refusal::not_run;
use super::run_state::RunState;
use super::turn_start::recover_lost_tools;
use crate::event::{EarlierAnswers, RecordedOutcome, RecordedStart};
use crate::journal::{InterruptedRun, JournalError, OpenCall, UnresolvedCall};
use crate::model::FinishReason;
use crate::outcome::RunFailure;
use crate::replay::arguments_diff;
use crate::state::{error_text, resolved_outcome};
use toolwit_core::limits::SOURCE_WALL_MAX;
use toolwit_core::{
    Approval, Arguments, Error, ErrorKind, Phase, ToolContext, ToolId, ToolLookup, ToolName, ToolSet, parse_arguments,
};

/// Maximum number of times that a resumed run waits for a source that takes too long to start.
const RECOVERIES_MAX: u32 = 4;

/// The decisions about the open calls that began in the earlier process. Open calls that did not begin are not part of
/// the plan.
pub(super) struct RecoveryPlan {
    /// The outcomes of the calls that do not run again, by the ids of the calls.
    pub(super) outcomes: HashMap<String, RecordedOutcome>,
    /// The ids of the calls that run again.
    pub(super) rerun_ids: Vec<String>,
    /// The recorded starts of the calls that run again, by the ids of the calls.
    pub(super) earlier_starts: HashMap<String, RecordedStart>,
    /// The answered questions of the calls that run again, by the ids of the calls.
    pub(super) earlier_answers: HashMap<String, EarlierAnswers>,
}

/// Decides for each open call that began whether the call runs again. The caller has checked that no open call is
/// [unresolved](OpenCall::is_unresolved).
pub(super) fn plan_recovery(open_calls: &[OpenCall], tools: &ToolSet) -> RecoveryPlan {
    let mut plan = RecoveryPlan {
        outcomes: HashMap::new(),
        rerun_ids: Vec::new(),
        earlier_starts: HashMap::new(),
        earlier_answers: HashMap::new(),
    };
    for open_call in open_calls {
        let id = &open_call.call.id;
        let Some(started) = &open_call.started else { continue };
        let known_outcome = open_call.outcome.clone();
        let known_outcome = known_outcome.or_else(|| open_call.resolution.and_then(resolved_outcome));
        // Without an outcome, a person decided that the call runs again, or the call may run again without a decision.
        let outcome = known_outcome.or_else(|| redefinition_refusal(open_call, tools));
        match outcome {
            Some(outcome) => drop(plan.outcomes.insert(id.clone(), outcome)),
            None => {
                tracing::info!(tool = %started.name, call = %id, "an interrupted call runs again");
                plan.rerun_ids.push(id.clone());
                plan.earlier_answers.insert(id.clone(), open_call.answers.clone());
                plan.earlier_starts
                    .extend(started.recorded_start.clone().map(|start| (id.clone(), start)));
            }
        }
    }
    plan
}

/// Restores the tools that the resume could not restore, as far as the strategies can, and checks that the open calls have their
/// tools. Returns the errors of the calls that a person denied although their tools are gone, by the ids of the calls.
///
/// # Errors
/// [`RunFailure::Tool`] if a call has lost its tool that began and would run again, or that waits for an approval and was not
/// denied. The run can be resumed later, when the tool is available again. A method of an entity is no reason for this error:
/// the object is gone for ever, as the model then reads.
pub(super) async fn recover_tools(
    run: &mut RunState<'_>,
    interrupted: &InterruptedRun,
) -> Result<HashMap<String, Error>, RunFailure> {
    recover_needed_tools(run, interrupted).await;
    let conversation = &*run.conversation;
    let is_gone = |tool: &ToolId| conversation.toolbox.is_gone(tool);
    let (mut denied, mut gone) = (HashMap::new(), Vec::new());
    for question in interrupted.questions.iter().filter(|question| is_gone(&question.tool)) {
        let answer = match &conversation.journal {
            Some(journal) => journal.stored_answer(&question.id).await,
            None => Ok(None),
        };
        let answer = answer.map_err(|error| RunFailure::Tool(error.into()))?;
        match answer.map(|answer| answer.approval) {
            Some(Approval::Denied { reason }) => {
                let message = format!("the call was not approved: {reason}");
                let error = Error::new(ErrorKind::Denied, Phase::Validate, message);
                denied.insert(question.id.clone(), error.with_tool(&question.name));
            }
            _ => gone.push((&question.tool, question.name.as_str(), &question.id)),
        }
    }
    for open_call in interrupted.open_calls.iter().filter(|open_call| open_call.runs_again()) {
        let started = open_call.started.iter();
        gone.extend(started.map(|started| (&started.tool, started.name.as_str(), &open_call.call.id)));
    }
    let is_method = |tool: &ToolId| tool.unbound() != *tool;
    gone.retain(|(tool, ..)| is_gone(tool) && !is_method(tool));
    if gone.is_empty() {
        return Ok(denied);
    }
    let calls: Vec<_> = gone
        .iter()
        .map(|(_, name, id)| format!("`{name}` (call `{id}`)"))
        .collect();
    let message = format!("the tools of these calls are gone: {}", calls.join(", "));
    Err(RunFailure::Tool(
        Error::new(ErrorKind::ToolUnavailable, Phase::Load, message).with_suggestion(
            "make their source available again and resume then; or deny the call, or decide that it did not take effect",
        ),
    ))
}

/// Restores the lost tools. Tries again while a source takes too long to start that may have the tool of an open call.
async fn recover_needed_tools(run: &mut RunState<'_>, interrupted: &InterruptedRun) {
    for _ in 0..RECOVERIES_MAX {
        let started = Instant::now();
        recover_lost_tools(run).await;
        let toolbox = &run.conversation.toolbox;
        let questions = interrupted.questions.iter().map(|question| &question.tool);
        let started_calls = interrupted.open_calls.iter().filter_map(|call| call.started.as_ref());
        let needed = questions.chain(started_calls.map(|started| &started.tool));
        let is_needed_tool_gone = needed.into_iter().any(|tool| toolbox.is_gone(tool));
        if !is_needed_tool_gone || started.elapsed() < SOURCE_WALL_MAX || run.stop.is_cancelled() {
            return;
        }
    }
}

/// Returns the sorted names of the tools whose definition, code or grant has changed since their last call. Tools that
/// no longer exist are omitted.
pub(super) async fn changed_tools(
    last_starts: &HashMap<ToolName, RecordedStart>,
    tools: &ToolSet,
    context: &ToolContext,
) -> Vec<ToolName> {
    let mut changed = Vec::new();
    for (name, start) in last_starts {
        let ToolLookup::Found(named) = tools.look_up(name.as_str()) else {
            continue;
        };
        let access = named.tool.access(&start.arguments, context).await;
        let has_same_definition = named.definition.digest() == start.definition_digest;
        if !has_same_definition || access.code_digest != start.code_digest || access.grant != start.grant {
            changed.push(name.clone());
        }
    }
    changed.sort_unstable();
    changed
}

/// Checks that a call runs again with the arguments of its earlier start. If a person edited the arguments before the
/// earlier start, they are not compared.
///
/// # Errors
/// [`JournalError::Divergence`] if the arguments differ.
pub(super) fn check_same_arguments(
    id: &str,
    earlier: &RecordedStart,
    arguments: &Arguments,
) -> Result<(), JournalError> {
    if earlier.is_edited || earlier.arguments == *arguments {
        return Ok(());
    }
    let diff = arguments_diff(&earlier.arguments, arguments).join("\n");
    let message =
        format!("the call `{id}` would run again with other arguments than those with which it began\n{diff}");
    Err(JournalError::Divergence(message))
}

/// Returns the outcome of a call that must not run again because the definition of its tool has changed since the call
/// began. Returns `None` if the definition has not changed or was not recorded, or if the tool no longer exists.
fn redefinition_refusal(open_call: &OpenCall, tools: &ToolSet) -> Option<RecordedOutcome> {
    let started = open_call.started.as_ref()?;
    let start = started.recorded_start.as_ref()?;
    let ToolLookup::Found(named) = tools.look_up(started.name.as_str()) else {
        return None;
    };
    if named.definition.digest() == start.definition_digest {
        return None;
    }
    let reason = "the definition of the tool has changed since the host stopped during this call";
    let error =
        not_run(ErrorKind::ToolUnavailable, reason).with_suggestion("read the definition again before you call it");
    Some(refused_outcome(error))
}

fn refused_outcome(error: Error) -> RecordedOutcome {
    RecordedOutcome::failed(error.kind, error_text(&error))
}

/// Returns the reason why open calls that did not begin must not start: another call of the last response returned a
/// signal, or an error that only the operator can fix. Returns `None` if the open calls may start.
pub(super) fn halt_reason(interrupted: &InterruptedRun) -> Option<&'static str> {
    let open_outcomes = interrupted
        .open_calls
        .iter()
        .filter_map(|open_call| open_call.outcome.as_ref());
    let mut outcomes = interrupted.answered_outcomes.iter().chain(open_outcomes);
    outcomes.find_map(|outcome| {
        if outcome.operator_error.is_some() {
            Some(TOOL_FAILED)
        } else {
            outcome.signal.as_ref().map(|_| TOOL_STOPPED_RUN)
        }
    })
}

/// Prepares the open calls to run. A call that did not begin is refused if there is a [`halt_reason`], or if its
/// response was cut, because its arguments may then be incomplete.
pub(super) fn prepare_open_calls(
    open_calls: Vec<OpenCall>,
    finish: &FinishReason,
    halt_reason: Option<&str>,
) -> Vec<PreparedCall> {
    open_calls
        .into_iter()
        .map(|open_call| {
            let parsed = parse_arguments(&open_call.call.arguments);
            let has_complete_arguments = finish.is_complete() || open_call.started.is_some();
            let halt_reason = halt_reason.filter(|_| open_call.started.is_none());
            let arguments = if let Some(reason) = halt_reason {
                Err(not_run(ErrorKind::ToolUnavailable, reason))
            } else if has_complete_arguments {
                parsed.map(|parsed| parsed.arguments).map_err(Error::from)
            } else {
                let message = "the response was cut before this call was complete; the call was not executed";
                Err(Error::new(ErrorKind::InvalidArguments, Phase::Validate, message))
            };
            PreparedCall {
                requested_name: open_call.call.name.clone(),
                history_call: open_call.call,
                arguments,
                is_repaired: false,
            }
        })
        .collect()
}

/// Maximum number of calls in the error about an unresolved call inside which they began.
const CHILDREN_SHOWN: usize = 10;

/// Returns a text about the calls that began inside an unresolved call and can have changed something; empty if there are none.
fn begun_children(call: &UnresolvedCall) -> String {
    let children: Vec<_> = call.children.iter().filter(|child| child.can_have_effect()).collect();
    if children.is_empty() {
        return String::new();
    }
    let shown = children.iter().take(CHILDREN_SHOWN).map(|child| {
        let end = if child.is_error.is_some() { ", which ended" } else { "" };
        format!("`{}` as call `{}`{end}", child.tool, child.id)
    });
    let shown: Vec<_> = shown.collect();
    let more = match children.len().saturating_sub(CHILDREN_SHOWN) {
        0 => String::new(),
        count => format!(" and {count} more calls"),
    };
    format!(", in which began {}{more}", shown.join(" and "))
}

/// Returns the error for calls about which a person must decide.
pub(super) fn unresolved_calls_error(calls: &[UnresolvedCall]) -> Error {
    let calls: Vec<_> = calls
        .iter()
        .map(|call| format!("`{}` (call `{}`{})", call.name, call.id, begun_children(call)))
        .collect();
    let message = format!(
        "the run stopped during a call that may have taken effect: {}",
        calls.join(", ")
    );
    Error::new(ErrorKind::Configuration, Phase::Execute, message)
        .with_suggestion("find out whether each call took effect, then decide with `Conversation::resolve_call`")
}
