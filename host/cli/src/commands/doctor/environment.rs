//! The environment of the command: metadata database, code cache, word vectors, and the toolchain for building plugins.

use std::process::Stdio;
use std::time::Duration;

use super::finding::Findings;
use crate::input::plugins::{AuthorityFlags, PluginFlags};
use crate::input::vectors::vector_directory;
use crate::output::page::{counted, size};
use toolwit::sandbox::{CodeCacheLocation, CodeCacheReport};

/// Timeout for `cargo --version`.
const VERSION_WALL_MAX: Duration = Duration::from_secs(10);

pub(super) async fn check(plugins: &PluginFlags, authority: &AuthorityFlags, findings: &mut Findings) {
    match plugins.store.check().await {
        Some((path, Ok(()))) => findings.ok("store", format!("the metadata database is {}", path.display())),
        Some((_, Err(error))) => findings.error("store", &error),
        None => {}
    }
    code_cache(findings).await;
    word_vectors(findings);
    if let (Ok(path), None) = (authority.grants.path(), authority.grants.existing().ok().flatten()) {
        findings.ok(
            "grants",
            format!("{} does not exist: plugins have no grants", path.display()),
        );
    }
    toolchain(findings).await;
}

async fn code_cache(findings: &mut Findings) {
    match CodeCacheLocation::User.manage(None).await {
        Ok(CodeCacheReport { usage, .. }) => {
            let (bytes, bytes_max) = (size(usage.bytes), size(usage.bytes_max));
            let components = counted(usage.entries, "component");
            findings.ok(
                "cache",
                format!("{components} in the code cache, {bytes} of {bytes_max}"),
            );
        }
        Err(error) => {
            let hint = error.suggestion.clone().unwrap_or_default();
            findings.warning("cache", "cache", error.message.clone(), hint);
        }
    }
}

/// Checks the word vectors, if there are any.
fn word_vectors(findings: &mut Findings) {
    match vector_directory().map(|directory| directory.open()) {
        Some(Ok(Some(vectors))) => {
            let (count, width) = (vectors.len(), vectors.width());
            findings.ok("vectors", format!("{count} word vectors with {width} components"));
        }
        Some(Err(error)) => {
            let hint = "`toolwit vectors add DIR` replaces them, `toolwit vectors remove` removes them";
            findings.warning("vectors", "vectors", error.message.clone(), hint);
        }
        Some(Ok(None)) | None => {}
    }
}

async fn toolchain(findings: &mut Findings) {
    let version = tokio::process::Command::new("cargo")
        .arg("--version")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .output();
    match tokio::time::timeout(VERSION_WALL_MAX, version).await {
        Ok(Ok(output)) if output.status.success() => {
            let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            findings.ok("toolchain", format!("Rust plugins can be built: {version}"));
        }
        _ => {
            let message = "cargo is not on PATH, so that Rust plugins cannot be built";
            let hint = "install a toolchain from https://rustup.rs; it is not needed to run plugins";
            findings.warning("toolchain", "cargo", message, hint);
        }
    }
}
