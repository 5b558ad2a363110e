//! A component file in a plugin directory, usable or broken.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::manifest::ui_pages::UiPages;
use crate::manifest::{Manifest, Tier};
use crate::requested::RequestedPermissions;
use toolwit_core::text::snake_case;
use toolwit_core::{Error, ErrorKind, Phase};
use toolwit_sandbox::Plugin;

/// The extension of component files.
pub(crate) const EXTENSION: &str = "wasm";

/// Reserved names: the ids of native tools, of tools of MCP servers and of the host's own tools start with them.
const RESERVED_NAMES: [&str; 3] = ["host", "mcp", "native"];

/// A component file in a plugin directory, with its manifest.
#[derive(Clone)]
#[non_exhaustive]
pub struct Package {
    /// The plugin's name: the file name without its extension.
    pub name: String,
    /// The component file.
    pub path: PathBuf,
    /// The manifest: from the file next to the component if that file exists, otherwise from the component itself. If the
    /// manifest lacks the version or the description, the standard sections of the component provide it.
    pub manifest: Option<Arc<Manifest>>,
    /// Whether the package can be used.
    pub status: PackageStatus,
    /// The error of the last discovery of its dynamic tools, if it failed.
    pub(crate) discovery_failure: Option<Arc<Error>>,
}

/// Whether a package can be used.
#[derive(Clone)]
pub enum PackageStatus {
    /// The component is valid. It is compiled when it is first called.
    Ready(Arc<Plugin>),
    /// It cannot be used. Other packages are not affected.
    Broken(Error),
}

impl Package {
    /// Returns the plugin, unless the package is broken.
    #[must_use]
    pub fn plugin(&self) -> Option<&Arc<Plugin>> {
        match &self.status {
            PackageStatus::Ready(plugin) => Some(plugin),
            PackageStatus::Broken(_) => None,
        }
    }

    /// Returns the reason why the package is broken, or `None` if it is usable.
    #[must_use]
    pub fn broken_reason(&self) -> Option<&Error> {
        match &self.status {
            PackageStatus::Ready(_) => None,
            PackageStatus::Broken(error) => Some(error),
        }
    }

    /// Reads a UI page by its file name. A UI page is an HTML document in the component that shows the results of tools. `None`
    /// if the component has no such document, or if the package is broken. Blocks.
    ///
    /// # Errors
    /// If the component cannot be read or has changed since it was inspected, or if its UI pages are invalid.
    pub fn read_ui_page(&self, name: &str) -> Result<Option<String>, Error> {
        let Some(plugin) = self.plugin() else { return Ok(None) };
        let ui_pages = UiPages::embedded(&plugin.read_component()?)?;
        Ok(ui_pages.into_document(name))
    }

    /// Reads the permissions that the package requests in the format of another host; see [`RequestedPermissions::read`]. `None`
    /// if the package requests no permissions in such a format, or if it is broken.
    ///
    /// # Errors
    /// Those of [`RequestedPermissions::read`]; [`ErrorKind::Internal`] if the reading task panics.
    pub async fn read_requested_permissions(&self) -> Result<Option<RequestedPermissions>, Error> {
        let Some(plugin) = self.plugin().cloned() else {
            return Ok(None);
        };
        let path = self.path.clone();
        let reading = tokio::task::spawn_blocking(move || RequestedPermissions::read(&plugin, &path));
        reading.await.unwrap_or_else(|error| {
            let message = "reading the requested permissions failed unexpectedly";
            Err(Error::new(ErrorKind::Internal, Phase::Registry, message).with_source(error))
        })
    }

    /// Returns how complete its manifest is: [`Tier::Minimal`] without a manifest.
    #[must_use]
    pub fn tier(&self) -> Tier {
        self.manifest.as_deref().map(Manifest::tier).unwrap_or_default()
    }

    /// Creates a package that cannot be used. If the file name without its extension is not a valid plugin name, the package
    /// has the complete file name as its name.
    pub(crate) fn broken(path: &Path, error: Error) -> Self {
        let name =
            name_of(path).unwrap_or_else(|_| path.file_name().unwrap_or_default().to_string_lossy().into_owned());
        Self {
            name: name.clone(),
            path: path.to_owned(),
            manifest: None,
            status: PackageStatus::Broken(error.with_plugin(name)),
            discovery_failure: None,
        }
    }
}

/// Returns the path by which the [`Store`](crate::store::Store) of package metadata identifies a component file. The path is
/// absolute, so that it does not depend on the working directory.
pub(crate) fn stored_path(path: &Path) -> String {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    absolute.to_string_lossy().into_owned()
}

/// Returns the plugin name of a component file: the file name without its extension.
pub(crate) fn name_of(path: &Path) -> Result<String, Error> {
    let stem = path.file_stem().unwrap_or_default().to_str();
    let valid_name = stem
        .ok_or("is not valid Unicode")
        .and_then(|stem| check_name(stem).map(|()| stem));
    valid_name.map(str::to_owned).map_err(|why| {
        let message = format!("its file name {why}");
        Error::new(ErrorKind::Configuration, Phase::Registry, message)
            .with_suggestion("rename it with letters, digits, `-`, `_` and `.`")
    })
}

/// Checks a plugin name. It is part of ids, grants, file names and commands, so only letters, digits, `-`, `_` and `.` are
/// allowed. The error is the end of a sentence that begins with the name, such as `starts with a dot`.
pub(crate) fn check_name(name: &str) -> Result<(), &'static str> {
    const BYTES_MAX: usize = 64;
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || !name.chars().all(is_allowed) {
        return Err("is empty or contains characters that are not allowed in a plugin's name");
    }
    if name.starts_with('.') {
        return Err("starts with a dot");
    }
    if RESERVED_NAMES.contains(&snake_case_form(name).as_str()) {
        return Err("is reserved: the ids of tools that are not from plugins begin with it");
    }
    if name.len() > BYTES_MAX {
        return Err("is longer than 64 bytes");
    }
    Ok(())
}

/// Returns whether two plugin names have the same snake-case form. Tool names contain this form, so a model cannot distinguish
/// the two plugins.
pub(crate) fn has_same_snake_case_form(one: &str, other: &str) -> bool {
    snake_case_form(one) == snake_case_form(other)
}

/// Returns the snake-case form of a plugin name, which tool names contain. It must be unique among the plugins of a registry.
/// Different names can have the same form, such as `My-Tool` and `my_tool`.
pub(crate) fn snake_case_form(name: &str) -> String {
    snake_case(name)
}
