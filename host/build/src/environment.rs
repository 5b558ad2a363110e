//! The programs that Toolwit starts, and the environment variables that they inherit.
//!
//! Toolwit often runs under another cargo (`cargo run`, `cargo test`), which sets variables that do not apply to the
//! build of a plugin. Toolwit also often runs in a directory that contains untrusted files. Programs in that directory
//! must not be started by accident.

use std::{
    env,
    ffi::{OsStr, OsString},
    path::Path,
};

use tokio::process::Command;

/// The variables that are removed: settings of an outer cargo, and the user's settings for host builds.
///
/// Flags for the host do not apply to the guest: for example, `-Ctarget-cpu=native` would break the build of the guest.
/// A package that needs flags sets them in its `.cargo/config.toml`.
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

/// A path at which no directory can exist. It replaces an empty `PATH`, with which programs would be looked up in the current
/// directory.
const NONEXISTENT_DIRECTORY: &str = "/dev/null";

/// Creates a command for a program on `PATH`, or at a path.
///
/// The command gets a `PATH` without the relative directories of the inherited `PATH`. A relative directory, such as `.`,
/// may belong to an untrusted project. `Command` looks up the program in the `PATH` that is set here, and the program
/// inherits this `PATH`.
#[expect(clippy::disallowed_methods, reason = "programs are looked up on `PATH`")]
pub(super) fn program(name: &str) -> Command {
    let mut command = Command::new(name);
    command.env("PATH", absolute_directories(&env::var_os("PATH").unwrap_or_default()));
    command
}

/// Removes the relative directories from a `PATH`. Returns [`NONEXISTENT_DIRECTORY`] if no directory is left.
fn absolute_directories(path: &OsStr) -> OsString {
    let directories = env::split_paths(path).filter(|directory| directory.is_absolute());
    match env::join_paths(directories) {
        Ok(path) if !path.is_empty() => path,
        _ => NONEXISTENT_DIRECTORY.into(),
    }
}

/// Makes the command use the user's default toolchain, independent of the current directory.
///
/// The command runs in the root directory. In any other directory, a toolchain file there or in a parent directory would
/// select the toolchain that rustup starts. Such a file may select a program of an untrusted project.
pub(super) fn use_default_toolchain(command: &mut Command) {
    remove_outer_variables(command);
    command.env_remove("RUSTUP_TOOLCHAIN").current_dir("/");
}

/// Makes the command run in `dir`, with the toolchain of the project in `dir`.
///
/// If `dir` or a parent directory has a toolchain file, `RUSTUP_TOOLCHAIN` is removed, so that the file selects the
/// toolchain. Without such a file, the command inherits `RUSTUP_TOOLCHAIN`.
pub(super) fn use_project_toolchain(command: &mut Command, dir: &Path) {
    remove_outer_variables(command);
    // Under `cargo run`, `RUSTUP_TOOLCHAIN` selects the outer project's toolchain. This variable must not override the
    // toolchain file of `dir`.
    let selects_toolchain = |dir: &Path| TOOLCHAIN_FILES.iter().any(|file| dir.join(file).is_file());
    if dir.ancestors().any(selects_toolchain) {
        command.env_remove("RUSTUP_TOOLCHAIN");
    }
    command.current_dir(dir);
}

/// Makes a command of the system's toolchain independent of an outer cargo and of rustup. Puts the directory
/// `tool_dir` first on its `PATH`.
#[expect(clippy::disallowed_methods, reason = "the function extends the inherited `PATH`")]
pub(super) fn use_system_toolchain(command: &mut Command, tool_dir: Option<&Path>) {
    remove_outer_variables(command);
    command.env_remove("RUSTUP_TOOLCHAIN");
    // An outer cargo adds the libraries of its own compiler to `LD_LIBRARY_PATH`. They do not match the system's compiler.
    if env::var_os("CARGO").is_some() {
        command.env_remove("LD_LIBRARY_PATH");
    }
    if let Some(tool_dir) = tool_dir {
        let path = absolute_directories(&env::var_os("PATH").unwrap_or_default());
        let dirs = std::iter::once(tool_dir.to_owned()).chain(env::split_paths(&path));
        // If the path `tool_dir` contains the separator `:`, it cannot be added to `PATH` and is left out.
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
            (".", NONEXISTENT_DIRECTORY),
            ("", NONEXISTENT_DIRECTORY),
        ] {
            assert_eq!(absolute_directories(OsStr::new(path)), expected);
        }
    }
}
