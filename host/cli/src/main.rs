//! The `toolwit` command: each verb parses, makes one call into the library, and prints through one printer.
//!
//! Standard output is data, standard error is talk. With `--json` there is exactly one JSON document on standard output, for
//! failures too. The exit code says what kind of end it was; see [`main`].

mod add;
mod arguments;
mod build;
mod cache;
mod call;
mod demo;
mod describe;
mod doctor;
mod environment;
mod exit;
mod explain;
mod failure;
mod grant;
mod heard;
mod input;
mod inspect;
mod interrupt;
mod limits;
mod list;
mod logging;
mod lookup;
mod pack;
mod package;
mod page;
mod plugins;
mod printer;
mod progress;
mod refresh;
mod remove;
mod run;
mod schema;
mod search;
mod secret;
mod shipped;
mod show;
mod store;
mod story;
mod undiscovered;
mod whole_file;

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use tokio_util::sync::CancellationToken;

use self::arguments::{Arguments, Command};
use self::exit::Exit;
use self::failure::Failure;
use self::printer::Printer;
use toolwit::{Error, ErrorKind, Phase};

/// How long tasks that were left behind may take when the command is over.
const SHUTDOWN: Duration = Duration::from_millis(50);

/// Runs the command with the arguments of the process.
///
/// The exit code is 0 when all went well, 1 when the tool or the model answered with an error, 2 for wrong usage, 3 when a
/// plugin could not be loaded, 4 when a limit or a grant stopped it, and 130 when it was interrupted.
fn main() -> ExitCode {
    let raw: Vec<OsString> = std::env::args_os().collect();
    let arguments = match Arguments::try_parse_from(&raw) {
        Ok(arguments) => arguments,
        Err(error) => return arguments::refuse(&error, &raw).into(),
    };
    let printer = arguments.talk.printer();
    logging::start(printer.talk());
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return end(printer, Err(unstartable(error).into())).into(),
    };
    let exit = runtime.block_on(guarded(arguments.command, printer));
    runtime.shutdown_timeout(SHUTDOWN);
    exit.into()
}

/// Runs a command, and makes sure that it ends when the user wants it to.
async fn guarded(command: Command, printer: Printer) -> Exit {
    let cancel = match interrupt::listen(printer) {
        Ok(cancel) => cancel,
        Err(error) => return end(printer, Err(unstartable(error).into())),
    };
    let too_late = async {
        cancel.cancelled().await;
        tokio::time::sleep(interrupt::GRACE).await;
    };
    let outcome = tokio::select! {
        biased;
        outcome = dispatch(command, printer, &cancel) => outcome,
        () = too_late => Err(interrupted().into()),
    };
    match end(printer, outcome) {
        Exit::Success => Exit::Success,
        _ if cancel.is_cancelled() => Exit::Interrupted,
        exit => exit,
    }
}

async fn dispatch(command: Command, printer: Printer, cancel: &CancellationToken) -> Result<Exit, Failure> {
    match command {
        Command::Demo(demo) => demo.run(printer, cancel).await,
        Command::Run(run) => run.run(printer, cancel).await,
        Command::List(list) => list.run(printer).await,
        Command::Search(search) => search.run(printer).await,
        Command::Show(show) => show.run(printer).await,
        Command::Call(call) => call.run(printer, cancel).await,
        Command::Inspect(inspect) => inspect.run(printer).await,
        Command::Build(build) => build.run(printer, cancel).await,
        Command::Grant(grant) => grant.run(printer).await,
        Command::Revoke(revoke) => revoke.run(printer),
        Command::Explain(explain) => explain.run(printer).await,
        Command::Secret(secret) => secret.run(printer, cancel).await,
        Command::Add(add) => add.run(printer).await,
        Command::Remove(remove) => remove.run(printer).await,
        Command::Refresh(refresh) => refresh.run(printer).await,
        Command::Pack(pack) => pack.run(printer).await,
        Command::Cache(cache) => cache.run(printer).await,
        Command::Doctor(doctor) => doctor.run(printer).await,
    }
}

/// Tells how a command ended, where it did not do so itself.
fn end(printer: Printer, outcome: Result<Exit, Failure>) -> Exit {
    let failure = match outcome {
        Ok(exit) => return exit,
        Err(failure) => failure,
    };
    let told = match failure {
        Failure::Error(error) => printer.error(&error).map(|()| Exit::of(&error)),
        other => Err(other),
    };
    told.unwrap_or_else(|failure| match failure {
        // Whoever reads has enough: `toolwit list | head`.
        Failure::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Success,
        Failure::Output(error) => {
            let message = format!("standard output cannot be written: {error}");
            printer.complain(&Error::new(ErrorKind::Io, Phase::Execute, message));
            Exit::Failed
        }
        Failure::Error(error) => Exit::of(&error),
    })
}

fn interrupted() -> Error {
    Error::new(ErrorKind::Cancelled, Phase::Execute, "interrupted")
}

fn unstartable(error: io::Error) -> Error {
    Error::new(
        ErrorKind::Internal,
        Phase::Registry,
        format!("the command cannot start: {error}"),
    )
    .with_source(error)
}
