//! The environment variables that programs of a build inherit from Toolwit.
//!
//! Toolwit often runs under another cargo (`cargo run`, `cargo test`), whose settings its child processes inherit.

use std::{env, path::Path};

use tokio::process::Command;

/// Variables that are removed: settings of an outer cargo, or of the user for the host's compiler.
///
/// Flags for the host's target are wrong for the guest: `-Ctarget-cpu=native` would break its build. A package that
/// needs flags sets them in its `.cargo/config.toml`.
const OUTER: [&str; 12] = [
    "CARGO",
    "CARGO_BUILD_RUSTC",
    "CARGO_BUILD_RUSTFLAGS",
    "CARGO_BUILD_TARGET",
    "CARGO_ENCODED_RUSTFLAGS",
    "CARGO_MAKEFLAGS",
    "CARGO_MANIFEST_DIR",
    "MAKEFLAGS",
    "RUSTC",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTC_WRAPPER",
    "RUSTFLAGS",
];

/// The files in which a project selects its toolchain.
const TOOLCHAIN_FILES: [&str; 2] = ["rust-toolchain.toml", "rust-toolchain"];

/// Makes the command run in `dir`, with the toolchain that a shell would use in `dir`.
pub(super) fn for_project(command: &mut Command, dir: &Path) {
    remove_outer(command);
    // Under `cargo run` the variable selects the outer project's toolchain. It must not override the choice of `dir`.
    let chosen = |dir: &Path| TOOLCHAIN_FILES.iter().any(|file| dir.join(file).is_file());
    if dir.ancestors().any(chosen) {
        command.env_remove("RUSTUP_TOOLCHAIN");
    }
    command.current_dir(dir);
}

/// Makes the command use the system's compiler, with the directory `tools` first on its `PATH`.
#[expect(clippy::disallowed_methods, reason = "it adds to what the child inherits")]
pub(super) fn for_system(command: &mut Command, tools: Option<&Path>) {
    remove_outer(command);
    command.env_remove("RUSTUP_TOOLCHAIN");
    // An outer cargo adds the libraries of its own compiler, which do not match the system's.
    if env::var_os("CARGO").is_some() {
        command.env_remove("LD_LIBRARY_PATH");
    }
    if let Some(tools) = tools {
        let path = env::var_os("PATH").unwrap_or_default();
        let dirs = std::iter::once(tools.to_owned()).chain(env::split_paths(&path));
        // A directory with a separator in its name cannot be on `PATH`.
        command.env("PATH", env::join_paths(dirs).unwrap_or(path));
    }
}

fn remove_outer(command: &mut Command) {
    for name in OUTER {
        command.env_remove(name);
    }
}
