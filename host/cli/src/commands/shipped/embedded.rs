//! The source of the shipped plugins, embedded in the `toolwit` program for use without a clone of the repository.

use std::collections::BTreeSet;
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
    retain_profiles_of(&mut manifest, &compiled_packages()?);
    toml::to_string(&manifest).map_err(io::Error::other)
}

/// Removes the profile settings of packages that are not compiled: cargo prints a warning for each.
fn retain_profiles_of(manifest: &mut Table, packages: &BTreeSet<String>) {
    let Some(Value::Table(profiles)) = manifest.get_mut("profile") else {
        return;
    };
    for (_, profile) in profiles {
        if let Some(Value::Table(settings)) = profile.get_mut("package") {
            settings.retain(|spec, _| {
                let name = spec.split('@').next().unwrap_or(spec);
                spec == "*" || packages.contains(name)
            });
        }
    }
}

/// Returns the names of the embedded packages and of all packages that they depend on, from the lockfile.
fn compiled_packages() -> io::Result<BTreeSet<String>> {
    let (_, lock) = FILES
        .iter()
        .find(|(path, _)| *path == "Cargo.lock")
        .ok_or_else(|| io::Error::other("the lockfile is not embedded"))?;
    let lock: Table = lock.parse().map_err(io::Error::other)?;
    let locked: Vec<&Table> = lock
        .get("package")
        .and_then(Value::as_array)
        .map_or_else(Vec::new, |packages| {
            packages.iter().filter_map(Value::as_table).collect()
        });
    let mut pending: Vec<String> = FILES
        .iter()
        .filter(|(path, _)| path.ends_with("/Cargo.toml"))
        .filter_map(|(_, text)| {
            Some(
                text.parse::<Table>()
                    .ok()?
                    .get("package")?
                    .get("name")?
                    .as_str()?
                    .to_owned(),
            )
        })
        .collect();
    let mut compiled = BTreeSet::new();
    while let Some(name) = pending.pop() {
        for package in locked
            .iter()
            .filter(|package| package.get("name").and_then(Value::as_str) == Some(&name))
        {
            let dependencies = package.get("dependencies").and_then(Value::as_array);
            // An entry is `NAME`, or `NAME VERSION` if the lockfile has several versions.
            let names = dependencies
                .into_iter()
                .flatten()
                .filter_map(|entry| entry.as_str()?.split(' ').next());
            pending.extend(names.filter(|name| !compiled.contains(*name)).map(str::to_owned));
        }
        compiled.insert(name);
    }
    Ok(compiled)
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
    fn profiles_name_only_packages_that_are_compiled() {
        let manifest: Table = workspace_manifest().unwrap().parse().unwrap();
        let compiled = compiled_packages().unwrap();
        assert!(compiled.contains("wit-bindgen") && !compiled.contains("wasmtime"));
        let release = manifest["profile"]["release"]["package"].as_table().unwrap();
        assert!(release.contains_key("memchr"));
        let unknown: Vec<_> = release
            .keys()
            .filter(|spec| !compiled.contains(spec.split('@').next().unwrap()))
            .collect();
        assert!(unknown.is_empty(), "{unknown:?}");
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
