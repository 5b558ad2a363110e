//! Embeds the source of the shipped plugins, so that an installed command can build them without a clone of the repository.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Files and directories of the repository, without which no shipped plugin builds.
const EMBEDDED: [&str; 3] = ["Cargo.lock", "plugins", "sdk"];

/// Directories that a build does not read.
const SKIPPED: [&str; 4] = ["tests", "examples", "benches", "target"];

fn main() -> io::Result<()> {
    // Read when it runs: a shared target directory may hold this script from a clone that is gone.
    let root = directory("CARGO_MANIFEST_DIR")?.join("../..");
    let mut files = Vec::new();
    for name in EMBEDDED {
        println!("cargo::rerun-if-changed={}", root.join(name).display());
        collect(&root, &PathBuf::from(name), &mut files)?;
    }
    files.sort();
    let mut list = "&[\n".to_owned();
    for name in files {
        let file = fs::canonicalize(root.join(&name))?;
        // Paths of Windows have backslashes, which the names in the command do not.
        let name = name.to_string_lossy().replace('\\', "/");
        let _ = writeln!(list, "    ({name:?}, include_str!({:?})),", file.to_string_lossy());
    }
    list.push_str("]\n");
    fs::write(directory("OUT_DIR")?.join("shipped_files.rs"), list)
}

#[expect(clippy::disallowed_methods, reason = "cargo passes directories in variables")]
fn directory(variable: &str) -> io::Result<PathBuf> {
    std::env::var_os(variable)
        .map(PathBuf::from)
        .ok_or_else(|| io::Error::other(format!("{variable} is not set")))
}

/// Collects the files below a path. Links to files are followed: the WIT of `toolwit:plugin` is one.
fn collect(root: &Path, name: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    let path = root.join(name);
    if path.is_file() {
        files.push(name.to_owned());
        return Ok(());
    }
    for entry in fs::read_dir(path)? {
        let entry = entry?.file_name();
        let is_skipped = SKIPPED.iter().any(|skipped| entry == *skipped);
        if !is_skipped && !entry.to_string_lossy().starts_with('.') {
            collect(root, &name.join(entry), files)?;
        }
    }
    Ok(())
}
