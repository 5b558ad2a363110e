//! `toolwit dev`: builds a plugin, and builds it again whenever its source changes.

use std::path::PathBuf;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::commands::build::build;
use crate::commands::call::call_without_grants;
use crate::commands::compilation::compile_ahead;
use crate::commands::inspect;
use crate::commands::test::{CaseGrantFlags, CaseOptions, default_cases, run_cases, summary_line};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::limits::LimitFlags;
use crate::input::plugins::PluginFlags;
use crate::input::wasi::WasiFlags;
use crate::output::page::{FAINT, NAME, Page, first_sentence};
use crate::output::printer::Printer;
use toolwit::build::{Build as BuildRequest, SourceSnapshot};
use toolwit::testing::TestSuite;
use toolwit::{Error, ErrorKind, Phase};

/// Time between two snapshots of the source.
const POLL_INTERVAL: Duration = Duration::from_millis(300);

const EXAMPLES: &str = "\
Examples:
  toolwit dev weather                           build, list the tools, run tests.toml; again on every save
  toolwit dev weather greet '{\"person\": {\"name\": \"Ada\"}}'";

/// Build a plugin again whenever its source changes
///
/// After each build, lists the tools, runs the cases of tests.toml if the file exists, and makes the given call. The
/// call has no grants, and each case has only its own grants. Ctrl-C ends the command.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Dev {
    /// Source directory of the plugin
    #[arg(value_name = "DIR", default_value = ".")]
    source: PathBuf,
    /// Name or id of a tool to call after each build
    tool: Option<String>,
    /// Arguments: words NAME=VALUE, a JSON object or @FILE
    #[arg(value_name = "NAME=VALUE|JSON")]
    arguments: Vec<String>,
    #[command(flatten)]
    wasi: WasiFlags,
    #[command(flatten)]
    grants: CaseGrantFlags,
    #[command(flatten)]
    limits: LimitFlags,
}

impl Dev {
    pub(crate) async fn run(self, printer: Printer, cancel: &CancellationToken) -> Result<Exit, Failure> {
        loop {
            let built_source = self.snapshot()?;
            match self.run_once(printer, cancel).await {
                Ok(()) => {}
                Err(Failure::Error(error)) if error.kind != ErrorKind::Cancelled => printer.report_error(&error)?,
                Err(failure) => return Err(failure),
            }
            let mut page = Page::new();
            page.styled(FAINT, "waiting for changes").end();
            printer.message(&page);
            while self.snapshot()? == built_source {
                tokio::select! {
                    () = tokio::time::sleep(POLL_INTERVAL) => {}
                    () = cancel.cancelled() => return Ok(Exit::Success),
                }
            }
        }
    }

    fn snapshot(&self) -> Result<SourceSnapshot, Error> {
        SourceSnapshot::of(&self.source).map_err(|error| {
            let message = format!("`{}` cannot be read: {error}", self.source.display());
            Error::new(ErrorKind::Configuration, Phase::Build, message)
        })
    }

    /// Builds the plugin once, lists its tools, runs its test cases and makes the call.
    async fn run_once(&self, printer: Printer, cancel: &CancellationToken) -> Result<(), Failure> {
        let report = build(BuildRequest::new(&self.source), printer, cancel).await?;
        let inspection = inspect::inspection_of(report.component.clone()).await?;
        let mut page = Page::new();
        for tool in &inspection.tools {
            let description = first_sentence(&tool.description);
            page.spaces(2)
                .styled(NAME, tool.name())
                .text("  ")
                .text(description)
                .end();
        }
        printer.print_page(&page)?;
        let plugins = PluginFlags::of_component(&report.component).with_wasi(self.wasi);
        compile_ahead(&plugins, &report.name, printer, cancel)
            .await?
            .require_loadable()?;
        self.run_tests(&plugins, &report.name, printer, cancel).await?;
        if let Some(tool) = &self.tool {
            call_without_grants(&plugins, tool, self.arguments.clone(), &self.limits, printer, cancel).await?;
        }
        Ok(())
    }

    /// Runs the cases of `tests.toml`, if the file exists.
    async fn run_tests(
        &self,
        plugins: &PluginFlags,
        name: &str,
        printer: Printer,
        cancel: &CancellationToken,
    ) -> Result<(), Failure> {
        let cases_file = default_cases(&self.source);
        if !cases_file.is_file() {
            return Ok(());
        }
        let suite = TestSuite::read(&cases_file, name)?;
        self.grants.check(&suite)?;
        let options = CaseOptions {
            limits: &self.limits,
            grants: self.grants,
        };
        let outcomes = run_cases(plugins, &suite, options, printer, cancel).await?;
        printer.message(&summary_line(&outcomes));
        Ok(())
    }
}
