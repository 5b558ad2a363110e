//! `toolwit build`: a component from source.

use std::error::Error as StdError;
use std::path::PathBuf;

use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::commands::inspect;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::page::{FAINT, Page, counted, size};
use crate::output::printer::{Format, Printer, Verbosity};
use crate::output::progress::Spinner;
use toolwit::build::{Build as Request, BuildError, BuildEvent, BuildReport};
use toolwit::{Error, ErrorKind, Phase};

const EXAMPLES: &str = "\
Examples:
  toolwit build plugins/customers                          a Rust package, to target/plugins/customers.wasm
  toolwit build greet --out tools                          to tools/greet.wasm
  toolwit list --plugins $(dirname $(toolwit build greet))";

/// Build a plugin from source, with its WIT and docs
///
/// Builds a Rust package for wasm32-wasip2, runs the command in the [build] table of a toolwit.toml, or takes a .wasm file as
/// it lies there; then appends the WIT of the directory `wit` with its /// comments, since no toolchain carries them along.
/// What the compiler says goes to standard error, the path of the component to standard output.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Build {
    /// The directory of the plugin's source
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Where the component goes: a .wasm file, or a directory [default: plugins in the target directory]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// The WIT directory or file [default: wit in DIR]
    #[arg(long, value_name = "PATH")]
    wit: Option<PathBuf>,
    /// The world that a core module implements, where the WIT has several
    #[arg(long, value_name = "NAME")]
    world: Option<String>,
    /// The cargo profile [default: one that makes small components]
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
}

impl Build {
    pub(crate) async fn run(self, printer: Printer, cancel: &CancellationToken) -> Result<Exit, Failure> {
        let mut request = Request::new(self.directory);
        if let Some(out) = self.out {
            request = request.out(out);
        }
        if let Some(wit) = self.wit {
            request = request.wit(wit);
        }
        if let Some(world) = self.world {
            request = request.world(world);
        }
        if let Some(profile) = self.profile {
            request = request.profile(profile);
        }
        let report = build(request, printer, cancel).await?;
        let inspection = inspect::inspection_of(report.component.clone()).await?;
        for warning in &report.warnings {
            printer.warn(warning);
        }
        match printer.format() {
            Format::Json => printer.document(&json!({
                "ok": true,
                "component": report.component.display().to_string(),
                "name": report.name,
                "size_bytes": report.size_bytes,
                "wit_bytes": report.wit_bytes,
                "warnings": report.warnings,
                "tools": inspection.tools,
                "skipped": inspection.skipped,
            }))?,
            Format::Human => {
                tell(printer, &report, inspection.tools.len());
                printer.data(Page::new().text(report.component.display()).end())?;
            }
        }
        Ok(Exit::Success)
    }
}

fn tell(printer: Printer, report: &BuildReport, tools: usize) {
    let mut page = Page::new();
    let tools = counted(tools, "tool");
    page.styled(
        FAINT,
        format_args!("built {}: {}, {tools}", report.name, size(report.size_bytes)),
    )
    .end();
    printer.message(&page);
}

/// Builds a plugin, and shows the steps: as a line that moves on a terminal, else line by line.
///
/// # Errors
/// What went wrong, or that the user interrupted; the programs that ran are ended then.
pub(crate) async fn build(
    request: Request,
    printer: Printer,
    cancel: &CancellationToken,
) -> Result<BuildReport, Error> {
    let steps = Steps::new(printer);
    let show = |event: BuildEvent<'_>| steps.show(&event);
    let built = tokio::select! {
        biased;
        built = request.run(&show) => built,
        () = cancel.cancelled() => {
            return Err(Error::new(ErrorKind::Cancelled, Phase::Build, "the build was interrupted"));
        }
    };
    drop(steps);
    built.map_err(|error| told(&error, printer))
}

/// Shows how a build goes on.
struct Steps {
    printer: Printer,
    spinner: Spinner,
}

impl Steps {
    fn new(printer: Printer) -> Self {
        Self {
            printer,
            spinner: Spinner::new(printer, "looking at the source"),
        }
    }

    fn show(&self, event: &BuildEvent<'_>) {
        let mut page = Page::new();
        match event {
            BuildEvent::Step(step) if self.spinner.is_visible() => return self.spinner.set_text(&step.to_string()),
            BuildEvent::Step(step) => page.styled(FAINT, step).end(),
            BuildEvent::Output(line) => page.text(line).end(),
        };
        self.spinner.suspend(|| self.printer.message(&page));
    }
}

/// Turns a build's error into one of ours. What the compiler said was shown already, unless asked to be quiet.
fn told(error: &BuildError, printer: Printer) -> Error {
    let kind = match error {
        BuildError::NotADirectory { .. } | BuildError::NothingToBuild { .. } => ErrorKind::Configuration,
        _ => ErrorKind::Build,
    };
    let mut message = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        message.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    let mut told = Error::new(kind, Phase::Build, message);
    if let Some(suggestion) = error.suggestion() {
        told = told.with_suggestion(suggestion);
    }
    match (error.output(), printer.format(), printer.verbosity()) {
        (Some(output), Format::Json, _) => told.with_details(output.into()),
        (Some(output), Format::Human, Verbosity::Quiet) => told.with_suggestion(output),
        _ => told,
    }
}
