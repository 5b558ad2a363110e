//! The programs that Toolwit starts, and the environment variables that they inherit.
//!
//! Toolwit often runs under another cargo (`cargo run`, `cargo test`), which sets variables that do not apply to the
//! build of a plugin. It also often runs in a directory that contains untrusted files. Programs in that directory must
//! not be started by accident.

use std::{
    env,
    ffi::{OsStr, OsString},
    path::Path,
};

use tokio::process::Command;

/// The variables that are removed: settings of an outer cargo, and the user's settings for host builds.
///
/// Flags for the host are wrong for the guest: `-Ctarget-cpu=native` would break the build of the guest. A package
/// that needs flags sets them in its `.cargo/config.toml`.
const OUTER_VARIABLES: [&str; 12] = [
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

/// A directory that does not exist. It replaces an empty `PATH`, which would mean the current directory. Debian uses
/// this path as the home directory of users that have none.
const NO_DIRECTORIES: &str = "/nonexistent";

/// Creates a command for a program on `PATH`, or at a path.
///
/// A name is looked up only in the absolute directories of `PATH`, also by the programs that the program starts. A
/// relative directory, such as `.`, may belong to an untrusted project.
#[expect(
    clippy::disallowed_methods,
    reason = "a program is found where the shell would find it"
)]
pub(super) fn program(name: &str) -> Command {
    let mut command = Command::new(name);
    command.env("PATH", absolute_directories(&env::var_os("PATH").unwrap_or_default()));
    command
}

/// Returns a `PATH` without its relative directories, or [`NO_DIRECTORIES`] if none is left.
fn absolute_directories(path: &OsStr) -> OsString {
    let directories = env::split_paths(path).filter(|directory| directory.is_absolute());
    match env::join_paths(directories) {
        Ok(path) if !path.is_empty() => path,
        _ => NO_DIRECTORIES.into(),
    }
}

/// Makes the command use the user's default toolchain, independent of the current directory.
///
/// The command runs in the root directory. In another directory, rustup would start the toolchain that a file in this
/// directory or above selects. Such a file may select a program of an untrusted project.
pub(super) fn for_user(command: &mut Command) {
    remove_outer_variables(command);
    command.env_remove("RUSTUP_TOOLCHAIN").current_dir("/");
}

/// Makes the command run in `dir`, with the toolchain that a shell would use in `dir`.
pub(super) fn for_project(command: &mut Command, dir: &Path) {
    remove_outer_variables(command);
    // Under `cargo run`, `RUSTUP_TOOLCHAIN` selects the outer project's toolchain. It must not override the choice of
    // `dir`.
    let selects_toolchain = |dir: &Path| TOOLCHAIN_FILES.iter().any(|file| dir.join(file).is_file());
    if dir.ancestors().any(selects_toolchain) {
        command.env_remove("RUSTUP_TOOLCHAIN");
    }
    command.current_dir(dir);
}

/// Removes the settings of an outer cargo and of rustup, for a command of the system's toolchain. Puts the directory
/// `tools` first on its `PATH`.
#[expect(clippy::disallowed_methods, reason = "it adds to what the child inherits")]
pub(super) fn for_system(command: &mut Command, tools: Option<&Path>) {
    remove_outer_variables(command);
    command.env_remove("RUSTUP_TOOLCHAIN");
    // An outer cargo adds the libraries of its compiler to this path. They do not match the system's compiler.
    if env::var_os("CARGO").is_some() {
        command.env_remove("LD_LIBRARY_PATH");
    }
    if let Some(tools) = tools {
        let path = absolute_directories(&env::var_os("PATH").unwrap_or_default());
        let dirs = std::iter::once(tools.to_owned()).chain(env::split_paths(&path));
        // If the path of `tools` contains the separator `:`, the directory cannot be on `PATH` and is left out.
        command.env("PATH", env::join_paths(dirs).unwrap_or(path));
    }
}

fn remove_outer_variables(command: &mut Command) {
    for name in OUTER_VARIABLES {
        command.env_remove(name);
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    // attack: J1
    #[test]
    fn relative_directories_of_path_are_ignored() {
        for (path, expected) in [
            (".:/usr/bin::bin:/bin", "/usr/bin:/bin"),
            (".", NO_DIRECTORIES),
            ("", NO_DIRECTORIES),
        ] {
            assert_eq!(absolute_directories(OsStr::new(path)), expected);
        }
    }
}
