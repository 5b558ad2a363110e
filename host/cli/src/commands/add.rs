//! `toolwit add`: copies a package into a plugin directory.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::json;

use crate::commands::refresh::discover;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::limits::LimitFlags;
use crate::input::plugins::{AuthorityFlags, PluginFlags};
use crate::output::atomic_file::write_atomically;
use crate::output::page::{FAINT, Page, counted};
use crate::output::printer::{Format, Printer};
use toolwit::registry::{DiscoveryTargets, DynamicDiscovery, Package, Registry};
use toolwit::sandbox::{CodeCacheLocation, Runtime, RuntimeOptions};
use toolwit::{Error, ErrorKind, Phase};

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
struct AddedPackage {
    name: String,
    path: String,
    digest: String,
    version: Option<String>,
    replaced: bool,
    tools: usize,
    /// Why the dynamic tools could not be discovered.
    #[serde(skip_serializing_if = "Option::is_none")]
    unasked: Option<String>,
    imports: bool,
}

/// The extensions of the files of a package. The component is copied last, because it makes the package visible.
pub(crate) const PACKAGE_EXTENSIONS: [&str; 3] = ["toml", "wit", "wasm"];

impl Add {
    pub(crate) async fn run(self, printer: Printer) -> Result<Exit, Failure> {
        let place = self.plugins.destination()?;
        let options = RuntimeOptions {
            code_cache: CodeCacheLocation::Off,
            ..RuntimeOptions::default()
        };
        let runtime = Runtime::new(options)?;
        let source = Registry::scan(&runtime, std::slice::from_ref(&self.source)).await?;
        let there = if place.is_dir() {
            Some(Registry::scan(&runtime, std::slice::from_ref(&place)).await?)
        } else {
            None
        };
        if source.packages().is_empty() {
            return Err(no_component_error(&self.source).into());
        }
        if let Some(reason) = source.packages().iter().find_map(Package::reason) {
            return Err(reason.clone().into());
        }
        for package in source.packages() {
            let earlier = there.as_ref().and_then(|there| existing_package(there, &package.name));
            if let Some(earlier) = earlier.filter(|_| !self.replace) {
                return Err(already_exists_error(earlier).into());
            }
        }
        let mut added = Vec::new();
        for package in source.packages() {
            let earlier = there.as_ref().and_then(|there| existing_package(there, &package.name));
            added.push(copy_package(package, earlier, &place)?);
        }
        let awaiting = source
            .packages()
            .iter()
            .filter(|package| package.discovery_error().is_some());
        let awaiting: Vec<_> = awaiting.map(|package| package.name.clone()).collect();
        if !awaiting.is_empty()
            && let Err(error) = self.discover(&awaiting, &mut added, printer).await
        {
            // The files are copied already. A failed discovery does not undo that.
            for one in added.iter_mut().filter(|one| awaiting.contains(&one.name)) {
                one.unasked = Some(error.message.clone());
            }
        }
        print(printer, &added)?;
        Ok(Exit::Success)
    }

    /// Discovers the dynamic tools of plugins. A plugin whose discovery fails stays added, because it may need a grant first.
    async fn discover(&self, names: &[String], added: &mut [AddedPackage], printer: Printer) -> Result<(), Error> {
        let host = self.plugins.granted(&LimitFlags::default(), &self.authority).await?;
        let host = host.dynamic_discovery(DynamicDiscovery::Never).build().await?;
        for asked in discover(&host, DiscoveryTargets::Named(names), printer).await? {
            let one = added.iter_mut().find(|added| added.name == asked.plugin);
            match (asked.tools, one) {
                (Ok(tools), Some(one)) => one.tools = tools,
                (Err(error), Some(one)) => one.unasked = Some(error.message.clone()),
                _ => {}
            }
        }
        Ok(())
    }
}

/// Finds the package with a name, or with one that has the same tool name prefix.
fn existing_package<'a>(registry: &'a Registry, name: &str) -> Option<&'a Package> {
    let alike = |other: &str| toolwit::tool::text::snake_case(other) == toolwit::tool::text::snake_case(name);
    registry.packages().iter().find(|package| alike(&package.name))
}

/// Copies the files of a package atomically, and deletes files that only its earlier version had.
fn copy_package(package: &Package, earlier: Option<&Package>, place: &Path) -> Result<AddedPackage, Error> {
    let target = match earlier {
        Some(earlier) => earlier.path.clone(),
        None => place.join(&package.name).with_added_extension("wasm"),
    };
    let unwritable = |error: std::io::Error| {
        let message = format!("{} could not be written: {error}", target.display());
        Error::new(ErrorKind::Io, Phase::Registry, message).with_plugin(&*package.name)
    };
    fs::create_dir_all(place).map_err(unwritable)?;
    for extension in PACKAGE_EXTENSIONS {
        let (from, to) = (package.path.with_extension(extension), target.with_extension(extension));
        if is_same_file(&from, &to) {
            continue;
        }
        if from.is_file() {
            fs::read(&from)
                .and_then(|bytes| write_atomically(&to, &bytes))
                .map_err(unwritable)?;
        } else if to.is_file() {
            fs::remove_file(&to).map_err(unwritable)?;
        }
    }
    let inspection = package.plugin().map(|plugin| plugin.inspection().clone());
    Ok(AddedPackage {
        name: package.name.clone(),
        path: target.display().to_string(),
        digest: inspection
            .as_ref()
            .map(|known| known.digest.clone())
            .unwrap_or_default(),
        version: package.manifest.as_ref().and_then(|manifest| manifest.version.clone()),
        replaced: earlier.is_some(),
        tools: inspection.as_ref().map_or(0, |known| known.tools.len()),
        unasked: None,
        imports: package
            .plugin()
            .is_some_and(|plugin| !plugin.declared().capabilities().is_empty()),
    })
}

fn is_same_file(from: &Path, to: &Path) -> bool {
    let real = |path: &Path| fs::canonicalize(path).ok();
    real(from).is_some_and(|from| Some(from) == real(to))
}

fn print(printer: Printer, added: &[AddedPackage]) -> Result<(), Failure> {
    if printer.format() == Format::Json {
        return printer.document(&json!({"ok": true, "added": added}));
    }
    let (mut paths, mut messages) = (Page::new(), Page::new());
    for one in added {
        paths.text(&one.path).end();
        let verb = if one.replaced { "replaced" } else { "added" };
        let tools = counted(one.tools, "tool");
        messages
            .styled(FAINT, format_args!("{verb} {}: {tools}", one.name))
            .end();
    }
    printer.message(&messages);
    printer.data(&paths)?;
    for one in added {
        if let Some(why) = &one.unasked {
            let name = &one.name;
            printer.hint(format_args!(
                "the dynamic tools of {name} are unknown: {why}; `toolwit refresh {name}` queries them again"
            ));
        }
    }
    for one in added.iter().filter(|one| one.imports) {
        printer.hint(format_args!(
            "`toolwit grant {}` shows the capabilities that it needs",
            one.name
        ));
    }
    Ok(())
}

fn no_component_error(source: &Path) -> Error {
    let message = format!("no component found in {}", source.display());
    Error::new(ErrorKind::Configuration, Phase::Registry, message)
        .with_suggestion("`toolwit build DIR` builds one from source")
}

fn already_exists_error(earlier: &Package) -> Error {
    let message = format!(
        "package `{}` already exists, in {}",
        earlier.name,
        earlier.path.display()
    );
    Error::new(ErrorKind::Configuration, Phase::Registry, message).with_suggestion("replace it with `--replace`")
}
