//! Checks of the command's environment: metadata database, code cache, word vectors, the existence of the grants file, the
//! limit of open files, and the toolchain for building plugins.

use std::io;

use super::finding::Findings;
use crate::input::plugins::{GrantAndSecretFlags, PluginFlags};
use crate::input::vectors::vector_directory;
use crate::output::page::{counted, size};
use toolwit::Phase;
use toolwit::build::{BuildError, cargo_version};
use toolwit::limits::EngineLimits;
use toolwit::sandbox::{CodeCacheLocation, CodeCacheReport, check_host, guest_files_max, process_files_max};

/// The number of files and connections below which plugins that use files or the network may fail.
const GUEST_FILES_MIN: u64 = 128;

pub(super) async fn check(plugins: &PluginFlags, grants_and_secrets: &GrantAndSecretFlags, findings: &mut Findings) {
    match plugins.store.check().await {
        Some((path, Ok(()))) => findings.add_ok("store", format!("the metadata database is {}", path.display())),
        Some((_, Err(error))) => findings.add_error("store", &error),
        None => {}
    }
    check_system(findings).await;
    check_code_cache(findings).await;
    check_word_vectors(findings);
    check_open_files(findings);
    if let (Ok(path), None) = (
        grants_and_secrets.grants.path(),
        grants_and_secrets.grants.applied_path().ok().flatten(),
    ) {
        findings.add_ok(
            "grants",
            format!("{} does not exist: plugins have no grants", path.display()),
        );
    }
    check_toolchain(findings).await;
}

/// Checks whether the settings of the system allow the host to run plugins.
async fn check_system(findings: &mut Findings) {
    let problems = tokio::task::spawn_blocking(check_host).await.unwrap_or_default();
    for problem in problems {
        if problem.phase == Phase::Instantiate {
            let hint = problem.suggestion.clone().unwrap_or_default();
            findings.add_warning("system", "system", problem.message.clone(), hint);
        } else {
            findings.add_error("system", &problem);
        }
    }
}

async fn check_code_cache(findings: &mut Findings) {
    match CodeCacheLocation::User.manage(None).await {
        Ok(CodeCacheReport {
            usage,
            directory,
            is_on_noexec_mount,
            ..
        }) => {
            let (bytes, bytes_max) = (size(usage.bytes), size(usage.bytes_max));
            let components = counted(usage.entries, "component");
            findings.add_ok(
                "cache",
                format!("{components} in the code cache, {bytes} of {bytes_max}"),
            );
            if is_on_noexec_mount {
                let message = format!(
                    "the code cache {} is on a file system that is mounted with `noexec`, so its code is copied into memory",
                    directory.display()
                );
                let hint = "set XDG_CACHE_HOME to a directory on another file system";
                findings.add_warning("cache", "cache", message, hint);
            }
        }
        Err(error) => {
            let hint = error.suggestion.clone().unwrap_or_default();
            findings.add_warning("cache", "cache", error.message.clone(), hint);
        }
    }
}

/// Checks the word vectors if the user has installed some.
fn check_word_vectors(findings: &mut Findings) {
    match vector_directory().map(|directory| directory.open()) {
        Some(Ok(Some(vectors))) => {
            let (count, width) = (vectors.count(), vectors.width());
            findings.add_ok("vectors", format!("{count} word vectors with {width} components"));
        }
        Some(Err(error)) => {
            let hint = "`toolwit vectors add DIR` replaces them, `toolwit vectors remove` removes them";
            findings.add_warning("vectors", "vectors", error.message.clone(), hint);
        }
        Some(Ok(None)) | None => {}
    }
}

/// Compares the number of files that plugins may have open with the limit of the process.
fn check_open_files(findings: &mut Findings) {
    let guests_max = guest_files_max(&EngineLimits::default());
    let Some(process_max) = process_files_max() else { return };
    let message = format!(
        "plugins may have {guests_max} files and connections open at once, and this process may have {process_max}"
    );
    if guests_max < GUEST_FILES_MIN {
        let hint = "raise the limit of open files, for example with `ulimit -n 1024`";
        findings.add_warning("files", "files", message, hint);
    } else {
        findings.add_ok("files", message);
    }
}

async fn check_toolchain(findings: &mut Findings) {
    let error = match cargo_version().await {
        Ok(version) => return findings.add_ok("toolchain", format!("Rust plugins can be built: {version}")),
        Err(error) => error,
    };
    let (reason, hint) = match &error {
        BuildError::Start { source, .. } if source.kind() == io::ErrorKind::NotFound => (
            "cargo is not on PATH".to_owned(),
            "install a toolchain from https://rustup.rs",
        ),
        error => {
            let output = error.output().and_then(|output| output.lines().next());
            let reason = output.map_or_else(|| error.to_string(), str::to_owned);
            let hint = "`rustup default stable` selects a toolchain";
            (format!("cargo on PATH does not work ({reason})"), hint)
        }
    };
    let message = format!("{reason}, so that Rust plugins cannot be built");
    let hint = format!("{hint}; it is not needed to run plugins");
    findings.add_warning("toolchain", "cargo", message, hint);
}
