//! The source of the shipped plugins, embedded in the `toolwit` program for use without a clone of the repository.

use std::fs;
use std::io;
use std::path::Path;

use toml::{Table, Value};

/// The source files of the plugins and of the SDK that they use: path in the repository, and text. The build script
/// generates the list.
const FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/shipped_files.rs"));

/// The manifest of the repository's workspace, from which the plugins inherit.
const WORKSPACE_MANIFEST: &str = include_str!("../../../../../Cargo.toml");

/// Writes the source to `root` as a workspace. Unchanged files are not written, because a new modification time would
/// make cargo build them again.
pub(super) fn unpack(root: &Path) -> io::Result<()> {
    for (path, text) in FILES {
        write_if_changed(&root.join(path), text)?;
    }
    write_if_changed(&root.join("Cargo.toml"), &workspace_manifest()?)
}

/// Returns the manifest of a workspace that has only the embedded packages.
fn workspace_manifest() -> io::Result<String> {
    let mut manifest: Table = WORKSPACE_MANIFEST.parse().map_err(io::Error::other)?;
    if let Some(Value::Table(workspace)) = manifest.get_mut("workspace") {
        for key in ["default-members", "exclude"] {
            workspace.remove(key);
        }
        // Only embedded packages are members, because `root` may contain packages that an earlier version wrote.
        let members = FILES.iter().filter_map(|(path, _)| path.strip_suffix("/Cargo.toml"));
        let members: Vec<_> = members.map(Value::from).collect();
        workspace.insert("members".to_owned(), members.into());
    }
    toml::to_string(&manifest).map_err(io::Error::other)
}

/// Lists the embedded plugins, with the descriptions of their packages.
pub(super) fn descriptions() -> Vec<(&'static str, String)> {
    let plugins = FILES.iter().filter_map(|(path, text)| {
        let name = path.strip_prefix("plugins/")?.strip_suffix("/Cargo.toml")?;
        let manifest: Table = text.parse().ok()?;
        let description = manifest.get("package")?.get("description")?.as_str()?;
        // Removes the prefix `A Toolwit plugin: `, which is for readers of the package registry.
        let description = description.split_once(": ").map_or(description, |(_, summary)| summary);
        Some((name, description.to_owned()))
    });
    plugins.collect()
}

fn write_if_changed(path: &Path, text: &str) -> io::Result<()> {
    if fs::read_to_string(path).is_ok_and(|existing_text| existing_text == text) {
        return Ok(());
    }
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    fs::write(path, text)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn every_plugin_of_the_repository_is_embedded_with_a_description() {
        let plugins = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugins");
        let mut names: Vec<_> = fs::read_dir(plugins)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        let mut embedded: Vec<_> = descriptions().into_iter().map(|(name, _)| name).collect();
        embedded.sort_unstable();
        assert_eq!(embedded, names);
        assert!(
            FILES
                .iter()
                .any(|(path, _)| *path == "plugins/customers/seed/orders.tsv")
        );
    }

    #[test]
    fn unpack_writes_a_workspace_and_does_not_write_unchanged_files() {
        let root = tempfile::tempdir().unwrap();
        unpack(root.path()).unwrap();
        let manifest = root.path().join("Cargo.toml");
        let table: Table = fs::read_to_string(&manifest).unwrap().parse().unwrap();
        let members = table["workspace"]["members"].as_array().unwrap();
        assert!(members.contains(&"plugins/customers".into()) && members.contains(&"sdk/rust".into()));
        assert!(table["workspace"]["dependencies"].get("strsim").is_some());
        let modified = || fs::metadata(&manifest).unwrap().modified().unwrap();
        let first = modified();
        unpack(root.path()).unwrap();
        assert_eq!(modified(), first);
    }
}
