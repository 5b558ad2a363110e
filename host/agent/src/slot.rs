//! One call of a response on its way to an answer.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt;
use tokio::time::Instant;

use super::prepare::{Prepared, not_run, with_expectation};
use toolwit_core::{Arguments, NamedTool, ToolContext, ToolError, ToolName, ToolResult};
use toolwit_core::{Error, ErrorKind};

/// A call and how far it is.
pub(super) struct Slot {
    pub(super) prepared: Prepared,
    pub(super) state: State,
}

/// How far a call is.
pub(super) enum State {
    /// Its name stands for nothing yet, or a strategy watches its tool.
    Unresolved,
    Waiting(NamedTool),
    Running(NamedTool),
    Done(NamedTool, Finished),
    /// It is not run.
    Refused(Error),
    /// Its tool is locked; the model is told what to do first.
    Guided(ToolName, String),
}

impl Slot {
    /// Notes the end of a call that runs.
    pub(super) fn finish(&mut self, finished: Finished) {
        if let State::Running(tool) = &self.state {
            self.state = State::Done(tool.clone(), finished);
        }
    }
}

/// A call that came to its end.
pub(super) struct Finished {
    pub(super) outcome: Outcome,
    pub(super) wall: Duration,
}

/// What came of a call.
pub(super) enum Outcome {
    Answered(Box<Result<ToolResult, ToolError>>),
    Panicked,
    /// It did not end when it was told to stop.
    Abandoned,
}

impl Outcome {
    /// Tells whether the operator must hear of it.
    pub(super) fn is_operators(&self) -> bool {
        matches!(self, Self::Answered(answered) if matches!(**answered, Err(ToolError::Operator(_))))
    }
}

impl Outcome {
    /// Tells whether the tool asks the run to stop.
    pub(super) fn is_signal(&self) -> bool {
        matches!(self, Self::Answered(answered) if answered.as_ref().as_ref().is_ok_and(|result| result.signal.is_some()))
    }
}

/// How many calls of a response may run.
pub(super) struct Allowance {
    /// In one response.
    pub(super) per_response: usize,
    /// In what is left of the run.
    pub(super) left: usize,
}

impl Allowance {
    pub(super) fn refuse(&self, index: usize) -> Option<Error> {
        if index >= self.left {
            let reason = "the run has no tool calls left";
            return Some(not_run(ErrorKind::LoopLimit, reason));
        }
        (index >= self.per_response).then(|| {
            let reason = format!("too many calls in one response; at most {} are run", self.per_response);
            not_run(ErrorKind::LoopLimit, &reason).with_suggestion("call again those that are still needed")
        })
    }
}

/// A call whose arguments cannot be read is answered and never begun.
pub(super) fn admit(tool: NamedTool, prepared: &Prepared) -> State {
    match &prepared.arguments {
        Ok(_) => State::Waiting(tool),
        Err(error) => {
            let error = with_expectation(ToolError::Model(error.clone()), &tool.definition, &tool.name);
            State::Refused(error.report().clone())
        }
    }
}

/// Calls a tool; a panic in it is an outcome like others.
pub(super) async fn call(tool: NamedTool, arguments: Arguments, context: ToolContext) -> Finished {
    let started = Instant::now();
    let body = async move { tool.tool.call(arguments, &context).await };
    let outcome = match AssertUnwindSafe(body).catch_unwind().await {
        Ok(result) => Outcome::Answered(Box::new(result)),
        Err(_) => Outcome::Panicked,
    };
    Finished {
        outcome,
        wall: started.elapsed(),
    }
}
