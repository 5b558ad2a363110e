//! `toolwit build`: builds a component from source.

use std::error::Error as StdError;
use std::path::PathBuf;

use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::commands::compilation::CompileFlags;
use crate::commands::inspect;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::wasi::WasiFlags;
use crate::output::package::lost_state_warning;
use crate::output::page::{FAINT, Page, counted, size};
use crate::output::printer::{Format, Printer, Verbosity};
use crate::output::progress::Spinner;
use toolwit::build::{Build as BuildRequest, BuildError, BuildEvent, BuildReport};
use toolwit::{Error, ErrorKind, Phase};

const EXAMPLES: &str = "\
Examples:
  toolwit build plugins/customers                          build target/plugins/customers.wasm
  toolwit build greet --out tools                          build tools/greet.wasm
  toolwit build greet.wasm --out tools                     embed greet.wit in an existing component
  toolwit list --plugins $(dirname $(toolwit build greet))";

/// Build a plugin from source
///
/// Builds a Rust package for wasm32-wasip2. Also builds a project in Python (app.py), JavaScript (app.js), TypeScript
/// (app.ts), C (plugin.c), C++ (plugin.cpp), Zig (plugin.zig) or Go (go.mod). If toolwit.toml has a [build] table, runs
/// the command of this table instead. The source can also be a .wasm file that another tool has built.
///
/// The WIT of the directory `wit` is then embedded in the component, with its /// comments. Toolchains drop these
/// comments. Compiler output goes to standard error. The path of the component goes to standard output.
///
/// The component is then compiled for this machine, so that its first call does not wait.
///
/// Building executes code of the source as you, outside of the sandbox: its build command, build scripts and macros,
/// and the toolchain that it selects. Only a .wasm file is built without executing anything.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Build {
    /// Source directory of the plugin, or a component or core module
    #[arg(value_name = "DIR|FILE", default_value = ".")]
    source: PathBuf,
    /// Output path: a .wasm file or a directory [default: `plugins` in the target directory]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Path to the WIT directory or file [default: DIR/wit, or FILE with the extension .wit]
    #[arg(long, value_name = "PATH")]
    wit: Option<PathBuf>,
    /// World that a core module implements, if the WIT has several
    #[arg(long, value_name = "NAME")]
    world: Option<String>,
    /// Cargo profile [default: a profile for small components]
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    #[command(flatten)]
    compile: CompileFlags,
    #[command(flatten)]
    wasi: WasiFlags,
}

impl Build {
    pub(crate) async fn run(self, printer: Printer, cancel: &CancellationToken) -> Result<Exit, Failure> {
        let mut request = BuildRequest::new(self.source);
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
        let compilation = self
            .compile
            .compile(&report.component, self.wasi, printer, cancel)
            .await?;
        let mut warnings = report.warnings.clone();
        // The author gets no warnings about exports that the toolchain added.
        let skipped = inspection.skipped_exports_of_author();
        warnings.extend(skipped.map(|skipped| format!("`{}` is not a tool: {}", skipped.export, skipped.reason)));
        warnings.extend(lost_state_warning(&inspection));
        warnings.extend(compilation.warning(&report.name));
        for warning in &warnings {
            printer.warn(warning);
        }
        match printer.format() {
            Format::Json => printer.document(&json!({
                "ok": true,
                "component": report.component.display().to_string(),
                "name": report.name,
                "size_bytes": report.size_bytes,
                "wit_bytes": report.wit_bytes,
                "compiled": compilation.is_compiled(),
                "warnings": warnings,
                "tools": inspection.tools,
                "skipped": inspection.skipped,
            }))?,
            Format::Human => {
                print_summary(printer, &report, inspection.tools.len());
                printer.print_page(Page::new().text(report.component.display()).end())?;
            }
        }
        Ok(Exit::Success)
    }
}

fn print_summary(printer: Printer, report: &BuildReport, tool_count: usize) {
    let mut page = Page::new();
    let tools = counted(tool_count, "tool");
    page.styled(
        FAINT,
        format_args!("built {}: {}, {tools}", report.name, size(report.size_bytes)),
    )
    .end();
    printer.message(&page);
}

/// Builds a plugin, and shows the steps of the build: in a spinner on a terminal, otherwise as lines.
///
/// # Errors
/// If the build fails or is interrupted. An interrupt kills the child processes of the build.
pub(crate) async fn build(
    request: BuildRequest,
    printer: Printer,
    cancel: &CancellationToken,
) -> Result<BuildReport, Error> {
    let progress = BuildProgress::new(printer);
    let show = |event: BuildEvent<'_>| progress.show(&event);
    let report = tokio::select! {
        biased;
        report = request.run(&show) => report,
        () = cancel.cancelled() => {
            return Err(Error::new(ErrorKind::Cancelled, Phase::Build, "the build was interrupted"));
        }
    };
    drop(progress);
    report.map_err(|error| from_build_error(&error, printer))
}

/// Shows the progress of a build.
struct BuildProgress {
    printer: Printer,
    spinner: Spinner,
}

impl BuildProgress {
    fn new(printer: Printer) -> Self {
        Self {
            printer,
            spinner: Spinner::new(printer, "reading the source"),
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

/// Converts a build error. With the format JSON, the converted error has the compiler output as details. With the
/// verbosity quiet, the build has not printed this output, so it becomes the suggestion.
fn from_build_error(error: &BuildError, printer: Printer) -> Error {
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
    let mut converted = Error::new(kind, Phase::Build, message);
    if let Some(suggestion) = error.suggestion() {
        converted = converted.with_suggestion(suggestion);
    }
    match (error.output(), printer.format(), printer.verbosity()) {
        (Some(output), Format::Json, _) => converted.with_details(output.into()),
        (Some(output), Format::Human, Verbosity::Quiet) => converted.with_suggestion(output),
        _ => converted,
    }
}
