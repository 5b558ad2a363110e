//! The calls of a run that an earlier process did not finish.

use std::collections::HashMap;

use super::prepared_call::PreparedCall;
use super::refusal::not_run;
use crate::event::{RecordedOutcome, RecordedStart, Resolution};
use crate::journal::{JournalError, OpenCall, UnresolvedCall};
use crate::model::FinishReason;
use crate::replay::arguments_diff;
use crate::state::error_text;
use toolwit_core::{Arguments, Error, ErrorKind, Phase, ToolContext, ToolLookup, ToolName, ToolSet, parse_arguments};

/// The decisions about the open calls of a run.
pub(super) struct RecoveryPlan {
    /// The outcomes of the calls that do not run, by their ids.
    pub(super) recovered: HashMap<String, RecordedOutcome>,
    /// The ids of the calls that run again.
    pub(super) again: Vec<String>,
    /// The starts of these calls, by their ids.
    pub(super) starts: HashMap<String, RecordedStart>,
}

/// Decides what happens to the open calls. Calls that are [unresolved](OpenCall::is_unresolved) must have a decision.
pub(super) fn plan(open: &[OpenCall], tools: &ToolSet) -> RecoveryPlan {
    let mut plan = RecoveryPlan {
        recovered: HashMap::new(),
        again: Vec::new(),
        starts: HashMap::new(),
    };
    for open in open {
        let id = &open.call.id;
        let Some(started) = &open.started else { continue };
        let outcome = match (&open.outcome, open.resolution) {
            (Some(outcome), _) => Some(outcome.clone()),
            (None, Some(Resolution::Done)) => Some(RecordedOutcome {
                text: "the host stopped while this call ran; a person confirmed that it took effect. Its result is not known"
                    .to_owned(),
                ..RecordedOutcome::default()
            }),
            (None, Some(Resolution::NotDone)) => {
                let reason = "the host stopped, and a person confirmed that the call had no effect";
                Some(refused(not_run(ErrorKind::Cancelled, reason)))
            }
            (None, _) => redefined(open, tools),
        };
        match outcome {
            Some(outcome) => drop(plan.recovered.insert(id.clone(), outcome)),
            None => {
                tracing::info!(tool = %started.name, call = %id, "a call that was interrupted runs again");
                plan.again.push(id.clone());
                plan.starts
                    .extend(started.start.clone().map(|start| (id.clone(), start)));
            }
        }
    }
    plan
}

/// Returns the tools whose definition, code or grant has changed since their last call, in the order of their names.
/// Missing tools are not among them.
pub(super) async fn changed_tools(
    called: &HashMap<ToolName, RecordedStart>,
    tools: &ToolSet,
    context: &ToolContext,
) -> Vec<ToolName> {
    let mut changed = Vec::new();
    for (name, start) in called {
        let ToolLookup::Found(named) = tools.look_up(name.as_str()) else {
            continue;
        };
        let access = named.tool.access(&start.arguments, context).await;
        let is_same = named.definition.digest() == start.definition;
        if !is_same || access.code != start.code || access.grant != start.grant {
            changed.push(name.clone());
        }
    }
    changed.sort_unstable();
    changed
}

/// Checks that a call runs again with the arguments with which it began. Arguments that a person edited are not
/// compared.
pub(super) fn check_again(id: &str, began: &RecordedStart, arguments: &Arguments) -> Result<(), JournalError> {
    if began.is_edited || began.arguments == *arguments {
        return Ok(());
    }
    let diff = arguments_diff(&began.arguments, arguments).join("\n");
    let message =
        format!("the call `{id}` would run again with other arguments than those with which it began\n{diff}");
    Err(JournalError::Divergence(message))
}

/// Returns the answer to a call whose tool has another definition than when the call began.
fn redefined(open: &OpenCall, tools: &ToolSet) -> Option<RecordedOutcome> {
    let started = open.started.as_ref()?;
    let start = started.start.as_ref()?;
    let ToolLookup::Found(named) = tools.look_up(started.name.as_str()) else {
        return None;
    };
    if named.definition.digest() == start.definition {
        return None;
    }
    let reason = "the host stopped while it ran, and the definition of the tool has changed since then";
    let error =
        not_run(ErrorKind::ToolUnavailable, reason).with_suggestion("read the definition again before you call it");
    Some(refused(error))
}

fn refused(error: Error) -> RecordedOutcome {
    RecordedOutcome::failed(error.kind, error_text(&error))
}

/// Returns the open calls, ready to run. A call of a response that was cut is refused unless it began, because its
/// arguments may be incomplete.
pub(super) fn recovered_calls(open: Vec<OpenCall>, finish: &FinishReason) -> Vec<PreparedCall> {
    open.into_iter()
        .map(|open| {
            let parsed = parse_arguments(&open.call.arguments);
            let is_complete = finish.is_complete() || open.started.is_some();
            let arguments = if is_complete {
                parsed.map(|parsed| parsed.arguments).map_err(Error::from)
            } else {
                let message = "the answer was cut before this call was complete; it was not executed";
                Err(Error::new(ErrorKind::InvalidArguments, Phase::Validate, message))
            };
            PreparedCall {
                requested_name: open.call.name.clone(),
                call: open.call,
                arguments,
                is_repaired: false,
            }
        })
        .collect()
}

/// Returns the error for calls about which a person must decide.
pub(super) fn unresolved_calls(calls: &[UnresolvedCall]) -> Error {
    let calls: Vec<_> = calls
        .iter()
        .map(|call| format!("`{}` (call `{}`)", call.name, call.id))
        .collect();
    let message = format!(
        "the run stopped during a call that may have taken effect: {}",
        calls.join(", ")
    );
    Error::new(ErrorKind::Configuration, Phase::Execute, message)
        .with_suggestion("find out whether it did, then decide with `Conversation::resolve_call`")
}
