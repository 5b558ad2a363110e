//! `toolwit add`: copies a package into a plugin directory.

use std::path::PathBuf;

use serde::Serialize;
use serde_json::json;

use crate::commands::refresh::discover;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::hint;
use crate::input::limits::LimitFlags;
use crate::input::plugins::{AuthorityFlags, PluginFlags};
use crate::output::package::wit_warning;
use crate::output::page::{FAINT, Page, counted};
use crate::output::printer::{Format, Printer};
use crate::shell::SuggestedCommand;
use toolwit::Error;
use toolwit::registry::{AddedPackage, DiscoveryTargets, DynamicDiscovery, NameConflict, add_packages};

const EXAMPLES: &str = "\
Examples:
  toolwit add target/plugins/calc.wasm                add a component to the directory `tools`
  toolwit add weather --plugins ~/tools               add all packages of a directory
  toolwit add calc.wasm --replace                     replace the package `calc`";

/// Add a component to a plugin directory
///
/// Checks the component and copies it with its manifest (.toml) and WIT (.wit). If one package of a directory is broken, none
/// is added. A host that watches the plugin directory has the new tools in the next turn.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Add {
    /// Component file, or directory of packages
    #[arg(value_name = "FILE|DIR")]
    source: PathBuf,
    /// Replace a package of the same name
    #[arg(long)]
    replace: bool,
    #[command(flatten)]
    plugins: PluginFlags,
    #[command(flatten)]
    authority: AuthorityFlags,
}

/// The report about one added package.
#[derive(Serialize)]
struct Report {
    name: String,
    path: String,
    digest: String,
    version: Option<String>,
    replaced: bool,
    tools: usize,
    /// The reason why the dynamic tools could not be discovered.
    #[serde(skip_serializing_if = "Option::is_none")]
    discovery_error: Option<String>,
    /// The reason why the WIT file next to it does not describe it.
    #[serde(skip_serializing_if = "Option::is_none")]
    wit_problem: Option<String>,
    needs_grants: bool,
}

impl From<&AddedPackage> for Report {
    fn from(package: &AddedPackage) -> Self {
        Self {
            name: package.name.clone(),
            path: package.path.display().to_string(),
            digest: package.digest.clone(),
            version: package.version.clone(),
            replaced: package.is_replacement,
            tools: package.tool_count,
            discovery_error: None,
            wit_problem: package.wit_problem.clone(),
            needs_grants: package.needs_grants,
        }
    }
}

impl Add {
    pub(crate) async fn run(self, printer: Printer) -> Result<Exit, Failure> {
        let directory = self.plugins.destination()?;
        let conflict = if self.replace {
            NameConflict::Replace
        } else {
            NameConflict::Refuse
        };
        let added = add_packages(&self.source, &directory, conflict)
            .await
            .map_err(hint::add_error)?;
        let mut reports: Vec<_> = added.iter().map(Report::from).collect();
        let undiscovered = added.iter().filter(|package| package.has_undiscovered_tools);
        let undiscovered: Vec<_> = undiscovered.map(|package| package.name.clone()).collect();
        if !undiscovered.is_empty()
            && let Err(error) = self.discover(&undiscovered, &mut reports, printer).await
        {
            // The files are copied already. A failed discovery does not undo that.
            for report in reports.iter_mut().filter(|report| undiscovered.contains(&report.name)) {
                report.discovery_error = Some(error.message.clone());
            }
        }
        print(printer, &reports)?;
        Ok(Exit::Success)
    }

    /// Discovers the dynamic tools of plugins. A plugin whose discovery fails stays added, because it may need a grant first.
    async fn discover(&self, names: &[String], reports: &mut [Report], printer: Printer) -> Result<(), Error> {
        let host = self.plugins.granted(&LimitFlags::default(), &self.authority)?;
        let host = host.dynamic_discovery(DynamicDiscovery::Never).build().await?;
        for outcome in discover(&host, DiscoveryTargets::Named(names), printer).await? {
            let report = reports.iter_mut().find(|report| report.name == outcome.plugin);
            match (outcome.tools, report) {
                (Ok(tools), Some(report)) => report.tools = tools,
                (Err(error), Some(report)) => report.discovery_error = Some(error.message.clone()),
                _ => {}
            }
        }
        Ok(())
    }
}

fn print(printer: Printer, reports: &[Report]) -> Result<(), Failure> {
    if printer.format() == Format::Json {
        return printer.document(&json!({"ok": true, "added": reports}));
    }
    let (mut paths, mut messages) = (Page::new(), Page::new());
    for report in reports {
        paths.text(&report.path).end();
        let verb = if report.replaced { "replaced" } else { "added" };
        let tools = counted(report.tools, "tool");
        messages
            .styled(FAINT, format_args!("{verb} {}: {tools}", report.name))
            .end();
    }
    printer.message(&messages);
    printer.data(&paths)?;
    for report in reports {
        if let Some(problem) = &report.wit_problem {
            printer.warn(wit_warning(&report.name, problem));
        }
        if let Some(reason) = &report.discovery_error {
            let name = &report.name;
            let refresh = SuggestedCommand::new("refresh").operand(name);
            printer.hint(format_args!(
                "the dynamic tools of {name} are unknown: {reason}; `{refresh}` queries them again"
            ));
        }
    }
    for report in reports.iter().filter(|report| report.needs_grants) {
        let grant = SuggestedCommand::new("grant").operand(&report.name);
        printer.hint(format_args!("`{grant}` shows the capabilities that it needs"));
    }
    Ok(())
}
