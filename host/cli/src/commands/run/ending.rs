//! The output at the end of a run: the answer, or the error.

use serde::Serialize;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::sessions::SessionFlags;
use crate::output::printer::{Format, Printer};
use crate::shell::SuggestedCommand;
use toolwit::Error;
use toolwit::agent::{RunError, RunFailure, RunOutcome, SessionId};
use toolwit::model::ChatModel;

/// Prints the answer of a run, or its error.
pub(crate) fn print_end(
    outcome: Result<RunOutcome, RunError>,
    model: &dyn ChatModel,
    printer: Printer,
) -> Result<Exit, Failure> {
    match outcome {
        Ok(outcome) => print_outcome(&outcome, model, printer),
        Err(error) => print_failure(&error, printer),
    }
}

/// Prints the answer or the error of a run in a session. After a cancelled run, prints the command that continues the
/// conversation.
pub(crate) fn print_end_in_session(
    outcome: Result<RunOutcome, RunError>,
    session: &SessionId,
    sessions: &SessionFlags,
    model: &dyn ChatModel,
    printer: Printer,
) -> Result<Exit, Failure> {
    let is_cancelled = matches!(&outcome, Err(error) if matches!(error.failure, RunFailure::Cancelled));
    let exit = print_end(outcome, model, printer)?;
    if is_cancelled {
        let command = next_run_command(session, sessions);
        printer.hint(format_args!("continue the conversation with `{command}`"));
    }
    Ok(exit)
}

/// Returns the command that continues a conversation with another prompt.
pub(crate) fn next_run_command(session: &SessionId, sessions: &SessionFlags) -> SuggestedCommand {
    let command = SuggestedCommand::new("run").operand("PROMPT");
    sessions.add_to_command(command.option("session", session.as_str()))
}

/// A failed run, with the part of the outcome that it reached.
#[derive(Serialize)]
struct FailedRun<'a> {
    ok: bool,
    error: &'a Error,
    #[serde(flatten)]
    outcome: &'a RunOutcome,
}

/// Prints the answer, or the outcome as JSON. If a scripted model has unused turns, also prints an error, and returns
/// the exit code of the error.
fn print_outcome(outcome: &RunOutcome, model: &dyn ChatModel, printer: Printer) -> Result<Exit, Failure> {
    if printer.format() == Format::Human {
        print_answer(outcome, printer)?;
    }
    match (model.end_use().map_err(Error::from), printer.format()) {
        (Ok(()), Format::Human) => Ok(Exit::Success),
        (Ok(()), Format::Json) => printer.document(outcome).map(|()| Exit::Success),
        (Err(error), _) => print_error_with_outcome(&error, outcome, printer),
    }
}

fn print_answer(outcome: &RunOutcome, printer: Printer) -> Result<(), Failure> {
    printer.untrusted_text(outcome.text().trim_end())
}

/// Prints the error of a run, after its partial answer if there is one.
pub(crate) fn print_failure(error: &RunError, printer: Printer) -> Result<Exit, Failure> {
    if printer.format() == Format::Human && error.outcome.answer.is_some() {
        print_answer(&error.outcome, printer)?;
    }
    let exit = print_error_with_outcome(&error.report(), &error.outcome, printer)?;
    Ok(match error.failure {
        // The model, not the user, called an unknown tool.
        RunFailure::UnknownTools { .. } => Exit::Failed,
        _ => exit,
    })
}

/// Prints an error. The JSON document also has the outcome that the run reached. Returns the exit code of the error.
pub(crate) fn print_error_with_outcome(error: &Error, outcome: &RunOutcome, printer: Printer) -> Result<Exit, Failure> {
    match printer.format() {
        Format::Json => printer.document(&FailedRun {
            ok: false,
            error,
            outcome,
        })?,
        Format::Human => printer.print_error(error),
    }
    Ok(Exit::of(error))
}
