//! `toolwit test`: builds a plugin and runs its test cases.

use std::path::{Path, PathBuf};

use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::commands::build::build;
use crate::commands::compilation::compile_ahead;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::limits::LimitFlags;
use crate::input::plugins::PluginFlags;
use crate::input::wasi::WasiFlags;
use crate::output::page::{BAD, FAINT, GOOD, Page, counted};
use crate::output::printer::{Format, Printer};
use crate::output::tool_output::ToolOutput;
use toolwit::build::Build as BuildRequest;
use toolwit::testing::{CaseOutcome, CaseRunner, TestSuite};
use toolwit::{Error, ErrorKind, Phase, ToolContext};

/// The file with the cases, in the directory of the plugin.
pub(crate) const CASES_FILE: &str = "tests.toml";

const EXAMPLES: &str = "\
Examples:
  toolwit test                                  build the plugin in the current directory and run its tests.toml
  toolwit test weather --filter error           run the cases whose name contains `error`
  toolwit test weather.wasm --cases smoke.toml
  toolwit test weather --allow-grants           allow grants for other directories and the network

A case calls a tool, or several tools in one conversation:
  [[test]]
  name = \"add computes sums\"
  tool = \"add\"
  arguments = { a = 2, b = 3 }
  result = 5                                    or contains = \"TEXT\", or error = \"TEXT\"
  grants = { config = { unit = \"C\" } }          keys as in a grants file; default: no grants";

/// Build a plugin and run its test cases
///
/// The file tests.toml in the directory of the plugin contains the cases: tools, arguments, and the expected result or
/// error. Each case runs in a new conversation, and has only its own grants. Exits with 1 if a case fails.
///
/// Grants that reach outside of the directory of the cases are refused: other directories, variables and secrets of the
/// host, and the network. `--allow-grants` allows them.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Test {
    /// Source directory of the plugin, or a component
    #[arg(value_name = "DIR|FILE", default_value = ".")]
    source: PathBuf,
    /// Path to the cases [default: tests.toml in the directory of the plugin]
    #[arg(long, value_name = "FILE")]
    cases: Option<PathBuf>,
    /// Text in the names of the cases to run
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
    #[command(flatten)]
    wasi: WasiFlags,
    #[command(flatten)]
    grants: CaseGrantFlags,
    #[command(flatten)]
    limits: LimitFlags,
}

/// Options for the grants of test cases.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct CaseGrantFlags {
    /// Allow grants of the cases that reach outside of their directory: other directories, variables and secrets of the
    /// host, the network
    #[arg(long)]
    allow_grants: bool,
}

impl CaseGrantFlags {
    /// Checks that `--allow-grants` is set, or that no grant of a case reaches outside of the directory of the cases.
    pub(crate) fn check(self, suite: &TestSuite) -> Result<(), Error> {
        if self.allow_grants {
            return Ok(());
        }
        suite
            .require_grants_inside()
            .map_err(|error| error.with_suggestion("remove them, or allow all of them with `--allow-grants`"))
    }
}

impl Test {
    pub(crate) async fn run(self, printer: Printer, cancel: &CancellationToken) -> Result<Exit, Failure> {
        let cases = self.cases.clone().unwrap_or_else(|| default_cases(&self.source));
        // Reports an error in the cases before a long build. The build returns the name of the plugin; until then, the
        // name is `plugin`.
        self.suite(&cases, "plugin")?;
        let report = build(BuildRequest::new(&self.source), printer, cancel).await?;
        let suite = self.suite(&cases, &report.name)?;
        if suite.cases.is_empty() {
            let message = "no name of a test case contains the text of `--filter`";
            return Err(Error::new(ErrorKind::Configuration, Phase::Registry, message).into());
        }
        let plugins = PluginFlags::of_component(&report.component).with_wasi(self.wasi);
        compile_ahead(&plugins, &report.name, printer, cancel)
            .await?
            .require_loadable()?;
        let options = CaseOptions {
            limits: &self.limits,
            grants: self.grants,
        };
        let outcomes = run_cases(&plugins, &suite, options, printer, cancel).await?;
        let failed_count = outcomes.iter().filter(|outcome| outcome.failure.is_some()).count();
        match printer.format() {
            Format::Json => printer.document(&json!({
                "ok": failed_count == 0,
                "passed": outcomes.len() - failed_count,
                "failed": failed_count,
                "tests": outcomes.iter().map(outcome_document).collect::<Vec<_>>(),
            }))?,
            Format::Human => printer.print_page(&summary_line(&outcomes))?,
        }
        Ok(if failed_count == 0 { Exit::Success } else { Exit::Failed })
    }

    /// Reads the cases to run, and checks their grants.
    fn suite(&self, cases: &Path, plugin: &str) -> Result<TestSuite, Error> {
        let mut suite = TestSuite::read(cases, plugin)?;
        if let Some(filter) = &self.filter {
            suite.retain_named(filter);
        }
        self.grants.check(&suite)?;
        Ok(suite)
    }
}

/// The limits and grants of a run of test cases.
#[derive(Clone, Copy)]
pub(crate) struct CaseOptions<'a> {
    pub(crate) limits: &'a LimitFlags,
    pub(crate) grants: CaseGrantFlags,
}

/// Returns the default path of the cases of a plugin. `source` is the directory of the plugin, or its component.
pub(crate) fn default_cases(source: &Path) -> PathBuf {
    let directory = if source.is_file() {
        source.parent().unwrap_or(source)
    } else {
        source
    };
    directory.join(CASES_FILE)
}

/// Runs the cases of a component. Prints the outcome of each case when the case ends, except for JSON output.
pub(crate) async fn run_cases(
    plugins: &PluginFlags,
    suite: &TestSuite,
    options: CaseOptions<'_>,
    printer: Printer,
    cancel: &CancellationToken,
) -> Result<Vec<CaseOutcome>, Failure> {
    let context = ToolContext::new()
        .with_cancel_token(cancel.clone())
        .with_output(std::sync::Arc::new(ToolOutput(printer)));
    let mut runner = CaseRunner::new(|| plugins.builder_without_grants(options.limits), context);
    if options.grants.allow_grants {
        runner = runner.allow_outside_grants();
    }
    let mut outcomes = Vec::with_capacity(suite.cases.len());
    for case in &suite.cases {
        if cancel.is_cancelled() {
            let message = "the tests were interrupted";
            return Err(Error::new(ErrorKind::Cancelled, Phase::Execute, message).into());
        }
        let outcome = runner.run(case).await?;
        if printer.format() == Format::Human {
            printer.print_page(&outcome_line(&outcome))?;
        }
        outcomes.push(outcome);
    }
    Ok(outcomes)
}

/// Returns the counts of passed and failed cases, with the names of the failed ones.
pub(crate) fn summary_line(outcomes: &[CaseOutcome]) -> Page {
    let failed: Vec<_> = outcomes.iter().filter(|outcome| outcome.failure.is_some()).collect();
    let counts = format_args!(
        "{}: {} passed, {} failed",
        counted(outcomes.len(), "test"),
        outcomes.len() - failed.len(),
        failed.len()
    )
    .to_string();
    let mut page = Page::new();
    page.styled(if failed.is_empty() { GOOD } else { BAD }, counts);
    for (index, outcome) in failed.iter().enumerate() {
        page.text(if index == 0 { ": " } else { ", " }).text(&outcome.name);
    }
    page.end();
    page
}

fn outcome_line(outcome: &CaseOutcome) -> Page {
    let mut page = Page::new();
    let wall_text = format!("  {:.1} ms", outcome.wall.as_secs_f64() * 1e3);
    match &outcome.failure {
        None => page.styled(GOOD, "ok    "),
        Some(_) => page.styled(BAD, "failed"),
    };
    page.text("  ").text(&outcome.name).styled(FAINT, wall_text).end();
    if let Some(failure) = &outcome.failure {
        page.spaces(8).text(failure).end();
    }
    page
}

fn outcome_document(outcome: &CaseOutcome) -> serde_json::Value {
    json!({
        "name": outcome.name,
        "ok": outcome.failure.is_none(),
        "failure": outcome.failure,
        "wall_ms": outcome.wall.as_secs_f64() * 1e3,
    })
}
