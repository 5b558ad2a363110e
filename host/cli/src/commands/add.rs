//! `toolwit add`: a package into a plugin directory.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::json;

use crate::commands::refresh::ask;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::limits::LimitFlags;
use crate::input::plugins::{AuthorityFlags, PluginFlags};
use crate::output::atomic_file::write_whole;
use crate::output::page::{FAINT, Page, counted};
use crate::output::printer::{Format, Printer};
use toolwit::registry::{DiscoveryTargets, DynamicDiscovery, Package, Registry};
use toolwit::sandbox::{CodeCacheLocation, Runtime, RuntimeOptions};
use toolwit::{Error, ErrorKind, Phase};

const EXAMPLES: &str = "\
Examples:
  toolwit add target/plugins/calc.wasm                into the directory `tools`
  toolwit add weather --plugins ~/tools               every package of a directory, or one in a folder of its own
  toolwit add calc.wasm --replace";

/// Add a component to a plugin directory
///
/// The component is checked first; nothing is added of a directory in which a package is broken. Its manifest (.toml) and its
/// WIT (.wit) go with it. A host that watches the directory has the tools with the next question.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Add {
    /// A component file, or a directory of packages
    #[arg(value_name = "FILE|DIR")]
    source: PathBuf,
    /// Put it in the place of a package of the same name
    #[arg(long)]
    replace: bool,
    #[command(flatten)]
    plugins: PluginFlags,
    #[command(flatten)]
    authority: AuthorityFlags,
}

/// A package that was added.
#[derive(Serialize)]
struct Added {
    name: String,
    path: String,
    digest: String,
    version: Option<String>,
    replaced: bool,
    tools: usize,
    /// Why the tools are not known that it tells when it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    unasked: Option<String>,
    imports: bool,
}

/// The files of a package, by extension. The component comes last: until it is there, there is no package.
pub(crate) const FILES: [&str; 3] = ["toml", "wit", "wasm"];

impl Add {
    pub(crate) async fn run(self, printer: Printer) -> Result<Exit, Failure> {
        let place = self.plugins.destination()?;
        let options = RuntimeOptions {
            code_cache: CodeCacheLocation::Off,
            ..RuntimeOptions::default()
        };
        let runtime = Runtime::new(options)?;
        let source = Registry::scan(&runtime, std::slice::from_ref(&self.source)).await?;
        let there = match place.is_dir() {
            true => Some(Registry::scan(&runtime, std::slice::from_ref(&place)).await?),
            false => None,
        };
        if source.packages().is_empty() {
            return Err(nothing_to_add(&self.source).into());
        }
        if let Some(reason) = source.packages().iter().find_map(Package::reason) {
            return Err(reason.clone().into());
        }
        for package in source.packages() {
            let earlier = there.as_ref().and_then(|there| claimed(there, &package.name));
            if let Some(earlier) = earlier.filter(|_| !self.replace) {
                return Err(is_there(earlier).into());
            }
        }
        let mut added = Vec::new();
        for package in source.packages() {
            let earlier = there.as_ref().and_then(|there| claimed(there, &package.name));
            added.push(put(package, earlier, &place)?);
        }
        let awaiting = source
            .packages()
            .iter()
            .filter(|package| package.discovery_error().is_some());
        let awaiting: Vec<_> = awaiting.map(|package| package.name.clone()).collect();
        if !awaiting.is_empty()
            && let Err(error) = self.ask(&awaiting, &mut added, printer).await
        {
            // The files are there, whatever else is wrong.
            for one in added.iter_mut().filter(|one| awaiting.contains(&one.name)) {
                one.unasked = Some(error.message.clone());
            }
        }
        tell(printer, &added)?;
        Ok(Exit::Success)
    }

    /// Asks plugins for the tools that they tell only when they run. One that does not answer is added all the same: it may
    /// need a grant first.
    async fn ask(&self, names: &[String], added: &mut [Added], printer: Printer) -> Result<(), Error> {
        let host = self.plugins.granted(&LimitFlags::default(), &self.authority).await?;
        let host = host.dynamic_discovery(DynamicDiscovery::Never).build().await?;
        for asked in ask(&host, DiscoveryTargets::Named(names), printer).await? {
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

/// Finds the package of a name, or of one that a model could not tell from it.
fn claimed<'a>(registry: &'a Registry, name: &str) -> Option<&'a Package> {
    let alike = |other: &str| toolwit::tool::text::snake_case(other) == toolwit::tool::text::snake_case(name);
    registry.packages().iter().find(|package| alike(&package.name))
}

/// Copies the files of a package, each as a whole, and drops those that its earlier version had and it has not.
fn put(package: &Package, earlier: Option<&Package>, place: &Path) -> Result<Added, Error> {
    let target = match earlier {
        Some(earlier) => earlier.path.clone(),
        None => place.join(&package.name).with_added_extension("wasm"),
    };
    let unwritable = |error: std::io::Error| {
        let message = format!("{} could not be written: {error}", target.display());
        Error::new(ErrorKind::Io, Phase::Registry, message).with_plugin(&*package.name)
    };
    fs::create_dir_all(place).map_err(unwritable)?;
    for extension in FILES {
        let (from, to) = (package.path.with_extension(extension), target.with_extension(extension));
        if is_one(&from, &to) {
            continue;
        }
        if from.is_file() {
            fs::read(&from)
                .and_then(|bytes| write_whole(&to, &bytes))
                .map_err(unwritable)?;
        } else if to.is_file() {
            fs::remove_file(&to).map_err(unwritable)?;
        }
    }
    let inspection = package.plugin().map(|plugin| plugin.inspection().clone());
    Ok(Added {
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

fn is_one(from: &Path, to: &Path) -> bool {
    let real = |path: &Path| fs::canonicalize(path).ok();
    real(from).is_some_and(|from| Some(from) == real(to))
}

fn tell(printer: Printer, added: &[Added]) -> Result<(), Failure> {
    if printer.format() == Format::Json {
        return printer.document(&json!({"ok": true, "added": added}));
    }
    let (mut paths, mut talk) = (Page::new(), Page::new());
    for one in added {
        paths.text(&one.path).end();
        let verb = if one.replaced { "replaced" } else { "added" };
        let tools = counted(one.tools, "tool");
        talk.styled(FAINT, format_args!("{verb} {}: {tools}", one.name)).end();
    }
    printer.message(&talk);
    printer.data(&paths)?;
    for one in added {
        if let Some(why) = &one.unasked {
            let name = &one.name;
            printer.hint(format_args!(
                "{name} told no tools: {why}; `toolwit refresh {name}` asks it again"
            ));
        }
    }
    for one in added.iter().filter(|one| one.imports) {
        printer.hint(format_args!("`toolwit grant {}` shows what it asks for", one.name));
    }
    Ok(())
}

fn nothing_to_add(source: &Path) -> Error {
    let message = format!("there is no component in {}", source.display());
    Error::new(ErrorKind::Configuration, Phase::Registry, message)
        .with_suggestion("`toolwit build DIR` makes one of a plugin's source")
}

fn is_there(earlier: &Package) -> Error {
    let message = format!(
        "there is a package `{}` already, in {}",
        earlier.name,
        earlier.path.display()
    );
    Error::new(ErrorKind::Configuration, Phase::Registry, message)
        .with_suggestion("put this one in its place with `--replace`")
}
