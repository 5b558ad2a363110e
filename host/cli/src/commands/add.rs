//! `toolwit add`: adds packages to a plugin directory.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::commands::compilation::CompileFlags;
use crate::commands::refresh::discover;
use crate::commands::shipped::{self, ShippedPlugins};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::hint;
use crate::input::index::IndexFlags;
use crate::input::limits::LimitFlags;
use crate::input::plugins::{GrantAndSecretFlags, PluginFlags};
use crate::output::package::wit_warning;
use crate::output::page::{FAINT, Page, counted};
use crate::output::printer::{Format, Printer};
use crate::output::progress::with_spinner;
use crate::shell::SuggestedCommand;
use toolwit::download::HttpDownloader;
use toolwit::limits::{DOWNLOAD_WALL_MAX, Span};
use toolwit::registry::{AddedPackage, DiscoveryTargets, DynamicDiscovery, Installation, NameConflict, PackageSource};
use toolwit::{Error, ErrorKind, Phase};

const EXAMPLES: &str = "\
Examples:
  toolwit add target/plugins/calc.wasm                add a component to the directory `tools`
  toolwit add weather --plugins ~/tools               add all packages of a directory
  toolwit add calc.wasm --replace                     replace the package `calc`
  toolwit add calc                                    add the newest `calc` of the index
  toolwit add calc@1.2 --index https://example.com/index.json
  toolwit add https://example.com/calc.wasm#sha256=DIGEST
  toolwit add --shipped                               list the plugins that ship with Toolwit
  toolwit add --shipped files                         build the shipped plugin `files` and add it";

/// Add a component to a plugin directory
///
/// Checks the component and copies it with its manifest (.toml) and WIT (.wit). If one package of a directory is
/// broken, none is added. A download is written only if its SHA-256 digest is that of the index or of the URL. A host
/// that watches the plugin directory has the new tools in the next turn. The component is then compiled for this
/// machine, so that its first call does not wait.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Add {
    /// Component file, directory of packages, URL, or package of the index
    ///
    /// The URL ends with #sha256=DIGEST. A package is NAME, for its newest version, or NAME@VERSION with a version such
    /// as 1.2.0, 1.2 or ^1.2. An existing file or directory takes precedence.
    #[arg(value_name = "FILE|DIR|URL|NAME[@VERSION]", required_unless_present = "shipped")]
    source: Option<OsString>,
    /// Build a plugin that ships with Toolwit and add it; without NAME, list those plugins
    ///
    /// The source is part of this program. The build needs Rust, and downloads the dependencies of the plugin once.
    #[arg(long, value_name = "NAME", num_args = 0..=1, conflicts_with = "source")]
    shipped: Option<Option<String>>,
    /// Replace a package of the same name
    #[arg(long)]
    replace: bool,
    /// Maximum time of each download, such as 30s [default: 120s]
    #[arg(long, value_name = "TIME")]
    timeout: Option<Span>,
    #[command(flatten)]
    compile: CompileFlags,
    #[command(flatten)]
    index: IndexFlags,
    #[command(flatten)]
    plugins: PluginFlags,
    #[command(flatten)]
    grants_and_secrets: GrantAndSecretFlags,
}

/// The report about one added package.
#[derive(Serialize)]
struct Report {
    name: String,
    path: String,
    /// The URL from which the package was downloaded.
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    digest: String,
    version: Option<String>,
    replaced: bool,
    tools: usize,
    /// The reason why the dynamic tools of the package could not be discovered.
    #[serde(skip_serializing_if = "Option::is_none")]
    discovery_error: Option<String>,
    /// The reason why the WIT file next to the component is not used.
    #[serde(skip_serializing_if = "Option::is_none")]
    wit_problem: Option<String>,
    needs_grants: bool,
    /// Whether the compiled code is in the code cache.
    compiled: bool,
    /// The reason why the component cannot be compiled for this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    compile_warning: Option<String>,
}

impl From<&AddedPackage> for Report {
    fn from(package: &AddedPackage) -> Self {
        Self {
            name: package.name.clone(),
            path: package.path.display().to_string(),
            url: package.url.clone(),
            digest: package.digest.clone(),
            version: package.version.clone(),
            replaced: package.is_replacement,
            tools: package.tool_count,
            discovery_error: None,
            wit_problem: package.wit_problem.clone(),
            needs_grants: package.needs_grants,
            compiled: false,
            compile_warning: None,
        }
    }
}

impl Add {
    pub(crate) async fn run(self, printer: Printer, cancel: &CancellationToken) -> Result<Exit, Failure> {
        if let Some(None) = self.shipped {
            print_shipped(printer)?;
            return Ok(Exit::Success);
        }
        let added_packages = self.add(printer, cancel).await?;
        let mut reports: Vec<_> = added_packages.iter().map(Report::from).collect();
        for (package, report) in added_packages.iter().zip(&mut reports) {
            let compilation = self
                .compile
                .compile(&package.path, self.plugins.wasi, printer, cancel)
                .await?;
            report.compiled = compilation.is_compiled();
            report.compile_warning = compilation.warning(&package.name);
        }
        let undiscovered = added_packages.iter().filter(|package| package.has_undiscovered_tools);
        let undiscovered_names: Vec<_> = undiscovered.map(|package| package.name.clone()).collect();
        if !undiscovered_names.is_empty()
            && let Err(error) = self.discover(&undiscovered_names, &mut reports, printer).await
        {
            // The packages have been added. A failed discovery does not remove them.
            for report in reports
                .iter_mut()
                .filter(|report| undiscovered_names.contains(&report.name))
            {
                report.discovery_error = Some(error.message.clone());
            }
        }
        print_reports(printer, &reports)?;
        Ok(Exit::Success)
    }

    /// Copies the packages into the plugin directory. Downloads or builds them first, if necessary.
    async fn add(&self, printer: Printer, cancel: &CancellationToken) -> Result<Vec<AddedPackage>, Error> {
        let source = match (&self.shipped, &self.source) {
            (Some(Some(name)), _) => PackageSource::Path(build_shipped(name, printer, cancel).await?),
            (_, Some(source)) => PackageSource::parse(source)?,
            (_, None) => {
                return Err(Error::new(
                    ErrorKind::Configuration,
                    Phase::Registry,
                    "no package is named",
                ));
            }
        };
        let mut installation = Installation::new(self.plugins.destination()?);
        if self.replace {
            installation = installation.conflict(NameConflict::Replace);
        }
        if matches!(source, PackageSource::Path(_)) {
            return installation.run(&source).await.map_err(hint::convert_add_error);
        }
        let wall_max = self.timeout.map_or(DOWNLOAD_WALL_MAX, |Span(wall_max)| wall_max);
        installation = installation.downloader(Arc::new(HttpDownloader::new(wall_max)?));
        if let Some(index) = self.index.index()? {
            installation = installation.index(index);
        }
        let download = with_spinner(printer, "downloading", installation.run(&source));
        tokio::select! {
            biased;
            packages = download => packages.map_err(hint::convert_add_error),
            () = cancel.cancelled() => {
                Err(Error::new(ErrorKind::Cancelled, Phase::Registry, "interrupted during the download; nothing was added"))
            }
        }
    }

    /// Discovers the dynamic tools of the named plugins. A plugin stays added if its discovery fails, because it may need
    /// a grant first.
    async fn discover(&self, names: &[String], reports: &mut [Report], printer: Printer) -> Result<(), Error> {
        let host = self
            .plugins
            .builder_with_grants(&LimitFlags::default(), &self.grants_and_secrets)?;
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

/// Builds a shipped plugin, and returns the path of the component.
async fn build_shipped(name: &str, printer: Printer, cancel: &CancellationToken) -> Result<PathBuf, Error> {
    if shipped::list().iter().any(|(shipped_name, _)| *shipped_name == name) {
        return ShippedPlugins::find()?.build(name, printer, cancel).await;
    }
    let message = format!("no plugin `{name}` ships with Toolwit");
    let names: Vec<_> = shipped::list()
        .into_iter()
        .map(|(shipped_name, _)| shipped_name)
        .collect();
    let hint = format!(
        "the shipped plugins are {}; `toolwit add --shipped` describes them",
        names.join(", ")
    );
    Err(Error::new(ErrorKind::Configuration, Phase::Registry, message).with_suggestion(hint))
}

/// Prints the shipped plugins.
fn print_shipped(printer: Printer) -> Result<(), Failure> {
    let plugins = shipped::list();
    if printer.format() == Format::Json {
        let plugins = plugins
            .iter()
            .map(|(name, description)| json!({"name": name, "description": description}));
        return printer.document(&json!({"ok": true, "shipped": plugins.collect::<Vec<_>>()}));
    }
    let width = plugins.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut page = Page::new();
    for (name, description) in plugins {
        page.text(format_args!("{name:width$}  {description}")).end();
    }
    printer.print_page(&page)?;
    printer.hint("`toolwit add --shipped NAME` builds one and adds it");
    Ok(())
}

fn print_reports(printer: Printer, reports: &[Report]) -> Result<(), Failure> {
    if printer.format() == Format::Json {
        return printer.document(&json!({"ok": true, "added": reports}));
    }
    let (mut paths, mut messages) = (Page::new(), Page::new());
    for report in reports {
        paths.text(&report.path).end();
        let verb = if report.replaced { "replaced" } else { "added" };
        let tools = counted(report.tools, "tool");
        messages.styled(FAINT, format_args!("{verb} {}: {tools}", report.name));
        if let Some(version) = report.version.as_ref().filter(|_| report.url.is_some()) {
            messages.styled(FAINT, format_args!(", version {version}"));
        }
        if let Some(url) = &report.url {
            messages.styled(FAINT, format_args!(", from {url}"));
        }
        messages.end();
    }
    printer.message(&messages);
    printer.print_page(&paths)?;
    for report in reports {
        if let Some(warning) = &report.compile_warning {
            printer.warn(warning);
        }
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
