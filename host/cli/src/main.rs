//! The `toolwit` command.
//!
//! - [`command_line`] parses the global options and the subcommand.
//! - [`input`] defines the options that commands share, and reads files, standard input and the environment.
//! - [`commands`] has a module per subcommand.
//! - [`approval`] gets the approval of a call, from a person at the terminal or from another process.
//! - [`output`] prints. Data goes to standard output, diagnostics to standard error. With `--json`, standard output
//!   is exactly one JSON document, also on failure. Exceptions are `call --script`, which prints one document per call,
//!   and commands whose output is in another format, such as `completions`.
//! - [`hint`] adds hints to errors of the library: the commands and options that fix them.
//! - [`shell`] quotes the commands in hints.
//! - [`exit`] defines the exit codes, [`failure`] the reasons why a command ends early.
//! - [`interrupt`] cancels the command on Ctrl-C and SIGTERM.
//! - [`telemetry`] exports spans to an OpenTelemetry collector.

mod approval;
mod command_line;
mod commands;
mod exit;
mod failure;
mod hint;
mod input;
mod interrupt;
mod output;
mod shell;
mod telemetry;

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;
use std::time::Duration;

use clap::CommandFactory;
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;

use self::command_line::CommandLine;
use self::commands::Command;
use self::exit::Exit;
use self::failure::Failure;
use self::output::logging;
use self::output::printer::Printer;
use toolwit::sandbox::require_threads;
use toolwit::{Error, ErrorKind, Phase};

/// Number of threads that the runtime needs in addition to its workers, for blocking work, signals and the clock of calls.
const BLOCKING_THREADS_MIN: usize = 4;

/// Maximum time that the runtime waits for running tasks after the command has ended.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(50);

fn main() -> ExitCode {
    // To compile components in separate processes, the host starts this program again with special arguments.
    if let Some(exit) = toolwit::sandbox::run_compiler_if_asked() {
        return exit;
    }
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let command_line = match CommandLine::parse_and_protect_files(&arguments) {
        Ok(command_line) => command_line,
        Err(error) => return command_line::report_parse_error(&error, &arguments).into(),
    };
    let printer = command_line.output.printer();
    let (layer, telemetry) = match telemetry::from_environment() {
        Ok(layer_and_telemetry) => layer_and_telemetry,
        Err(error) => return finish(printer, Err(error.into())).into(),
    };
    logging::start(printer.verbosity(), layer);
    let runtime = match start_runtime() {
        Ok(runtime) => runtime,
        Err(error) => return finish(printer, Err(error.into())).into(),
    };
    let exit = runtime.block_on(telemetry.export_spans_of(run_until_interrupted(command_line.command, printer)));
    runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
    exit.into()
}

/// Starts the runtime, with fewer threads if the system does not allow as many as there are processors. Tokio panics or hangs if it
/// cannot start its threads.
fn start_runtime() -> Result<Runtime, Error> {
    let mut builder = Builder::new_multi_thread();
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    if require_threads(processors + BLOCKING_THREADS_MIN).is_err() {
        require_threads(1 + BLOCKING_THREADS_MIN)?;
        builder.worker_threads(1);
    }
    builder.enable_all().build().map_err(startup_error)
}

/// Runs a command. After an interrupt, the command has [`interrupt::GRACE_PERIOD`] to end by itself.
async fn run_until_interrupted(command: Command, printer: Printer) -> Exit {
    let cancel_or_error = if command.handles_interrupts() {
        Ok(CancellationToken::new())
    } else {
        interrupt::listen(printer)
    };
    let cancel = match cancel_or_error {
        Ok(cancel) => cancel,
        Err(error) => return finish(printer, Err(startup_error(error).into())),
    };
    let grace_period_end = async {
        cancel.cancelled().await;
        tokio::time::sleep(interrupt::GRACE_PERIOD).await;
    };
    let result = tokio::select! {
        biased;
        result = command.run(printer, &cancel, CommandLine::command) => result,
        () = grace_period_end => Err(Error::new(ErrorKind::Cancelled, Phase::Execute, "interrupted").into()),
    };
    match finish(printer, result) {
        Exit::Success => Exit::Success,
        _ if cancel.is_cancelled() => Exit::Interrupted,
        exit => exit,
    }
}

/// Prints the failure of a command, if any, and returns the exit code of the command.
fn finish(printer: Printer, result: Result<Exit, Failure>) -> Exit {
    let failure = match result {
        Ok(exit) => return exit,
        Err(failure) => failure,
    };
    let exit_or_failure = match failure {
        Failure::Error(error) => printer.report_error(&error).map(|()| Exit::of(&error)),
        failure => Err(failure),
    };
    exit_or_failure.unwrap_or_else(|failure| match failure {
        // The reader has closed the pipe, as in `toolwit list | head`.
        Failure::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Success,
        Failure::Output(error) => {
            let message = format!("standard output cannot be written: {error}");
            printer.print_error(&Error::new(ErrorKind::Io, Phase::Execute, message));
            Exit::Failed
        }
        Failure::Error(error) => Exit::of(&error),
    })
}

fn startup_error(error: io::Error) -> Error {
    let message = format!("the command cannot start: {error}");
    Error::new(ErrorKind::Internal, Phase::Registry, message).with_source(error)
}
