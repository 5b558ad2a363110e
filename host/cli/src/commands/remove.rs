//! `toolwit remove`: a package out of a plugin directory.

use std::fs;

use serde_json::json;

use crate::commands::add::FILES;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input::grants::GrantFlags;
use crate::input::limits::LimitFlags;
use crate::input::plugins::PluginFlags;
use crate::output::page::Page;
use crate::output::printer::{Format, Printer};
use toolwit::registry::{Package, Registry};
use toolwit::{Error, ErrorKind, Phase};

/// Remove a package from a plugin directory
///
/// Its component goes, with the manifest (.toml) and the WIT (.wit) beside it. Calls that run end; what is granted to it and
/// what it kept stays, for when it comes back.
#[derive(Debug, clap::Args)]
pub(crate) struct Remove {
    /// The plugin's name, as `toolwit list` shows it; it may be broken
    plugin: String,
    #[command(flatten)]
    plugins: PluginFlags,
    #[command(flatten)]
    grants: GrantFlags,
}

impl Remove {
    pub(crate) async fn run(self, printer: Printer) -> Result<Exit, Failure> {
        let host = self.plugins.load(&LimitFlags::default()).await?;
        let registry = host.registry();
        let package = find(&registry, &self.plugin)?;
        let files = delete(package)?;
        // The store forgets it as well, now rather than at the next start.
        host.live_registry().refresh().await?;
        match printer.format() {
            Format::Json => printer.document(&json!({"ok": true, "removed": package.name, "files": files}))?,
            Format::Human => {
                let mut page = Page::new();
                for file in &files {
                    page.text("removed ").text(file).end();
                }
                printer.message(&page);
            }
        }
        let grants = self.grants.read()?;
        if printer.format() == Format::Human && grants.grants.iter().any(|grant| grant.plugin == package.name) {
            printer.hint(format_args!(
                "its grants stay; `toolwit revoke {}` takes them back",
                package.name
            ));
        }
        Ok(Exit::Success)
    }
}

fn find<'a>(registry: &'a Registry, name: &str) -> Result<&'a Package, Error> {
    let named: Vec<_> = registry
        .packages()
        .iter()
        .filter(|package| package.name == name)
        .collect();
    let refused = |message: String, suggestion: String| {
        Err(Error::new(ErrorKind::Configuration, Phase::Registry, message).with_suggestion(suggestion))
    };
    match named.as_slice() {
        [package] => Ok(package),
        [] => {
            let names: Vec<_> = registry
                .packages()
                .iter()
                .map(|package| format!("`{}`", package.name))
                .collect();
            let there = if names.is_empty() {
                "none".to_owned()
            } else {
                names.join(", ")
            };
            refused(
                format!("there is no package `{name}`"),
                format!("the packages are {there}"),
            )
        }
        several => {
            let paths: Vec<_> = several
                .iter()
                .map(|package| package.path.display().to_string())
                .collect();
            refused(
                format!("{} packages are called `{name}`", several.len()),
                format!("remove one of the files yourself: {}", paths.join(", ")),
            )
        }
    }
}

/// Deletes the files of a package: the component first, so that there is no half of one. Returns them.
fn delete(package: &Package) -> Result<Vec<String>, Error> {
    let failed = |error: std::io::Error| {
        let message = format!("{} could not be removed: {error}", package.path.display());
        Error::new(ErrorKind::Io, Phase::Registry, message).with_plugin(&*package.name)
    };
    let mut deleted = Vec::new();
    for extension in FILES.iter().rev() {
        let file = package.path.with_extension(extension);
        // A link goes, not what it leads to.
        if fs::symlink_metadata(&file).is_ok_and(|metadata| !metadata.is_dir()) {
            fs::remove_file(&file).map_err(failed)?;
            deleted.push(file.display().to_string());
        }
    }
    if deleted.is_empty() {
        return Err(failed(std::io::Error::other("it is a directory")));
    }
    // A folder of its own goes with the last file in it, and stays when there is more.
    if let Some(folder) = package.path.parent()
        && folder.file_name() == package.path.file_stem()
    {
        let _ = fs::remove_dir(folder);
    }
    Ok(deleted)
}
