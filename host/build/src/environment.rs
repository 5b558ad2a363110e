//! What a build's programs may see of the environment that Toolwit itself runs in.
//!
//! Toolwit often runs under another cargo (`cargo run`, `cargo test`), which leaves its own settings to its children.

use std::{env, path::Path};

use tokio::process::Command;

/// Settings of an outer cargo, or of a person for their own machine.
///
/// Flags for the host's compiler make no sense to the guest's: `-Ctarget-cpu=native` would break it. A package that
/// needs flags names them in its `.cargo/config.toml`.
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

/// The files by which a project chooses its toolchain.
const TOOLCHAIN_FILES: [&str; 2] = ["rust-toolchain.toml", "rust-toolchain"];

/// Makes the command run in `dir`, with the toolchain that `dir` would get from a person's shell.
pub(super) fn for_project(command: &mut Command, dir: &Path) {
    remove_outer(command);
    // Under `cargo run` this is the toolchain of the outer project, which is as good as any other but for a choice.
    let chosen = |dir: &Path| TOOLCHAIN_FILES.iter().any(|file| dir.join(file).is_file());
    if dir.ancestors().any(chosen) {
        command.env_remove("RUSTUP_TOOLCHAIN");
    }
    command.current_dir(dir);
}

/// Makes the command fit for the system's own compiler, with the directory `tools` leading its `PATH`.
#[expect(clippy::disallowed_methods, reason = "it adds to what the child inherits")]
pub(super) fn for_system(command: &mut Command, tools: Option<&Path>) {
    remove_outer(command);
    command.env_remove("RUSTUP_TOOLCHAIN");
    // An outer cargo adds the libraries of its own compiler, which are not this one's.
    if env::var_os("CARGO").is_some() {
        command.env_remove("LD_LIBRARY_PATH");
    }
    if let Some(tools) = tools {
        let path = env::var_os("PATH").unwrap_or_default();
        let dirs = std::iter::once(tools.to_owned()).chain(env::split_paths(&path));
        // A directory with a separator in its name cannot be on any PATH.
        command.env("PATH", env::join_paths(dirs).unwrap_or(path));
    }
}

fn remove_outer(command: &mut Command) {
    for name in OUTER {
        command.env_remove(name);
    }
}
