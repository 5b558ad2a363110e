//! Chooses the compiler for C code in the dependencies of a Rust package, such as the source of SQLite.
//!
//! The build scripts of such dependencies compile the C code with the crate `cc`. The crate reads the path of the compiler
//! from environment variables. If they are not set, it calls `clang`, which has no C library for WASI. So this module
//! sets them to the compiler that also builds plugins in C: the `clang` of the WASI SDK, or Zig.

use std::{
    env, fs, io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process,
};

use tokio::process::Command;

use super::{
    BuildError, MissingTool,
    language::{CTools, find_c_tools},
};

/// The environment variables with which a user chooses the compiler.
const COMPILER_VARIABLES: [&str; 6] = [
    "CC_wasm32-wasip2",
    "CC_wasm32_wasip2",
    "TARGET_CC",
    "WASI_SDK_DIR",
    "WASI_SDK_PATH",
    "WASI_SYSROOT",
];

/// The start of each error message of the crate `cc` in the output of a build script.
const CC_CRATE_ERROR: &str = "error occurred in cc-rs";

/// The script that starts Zig as a C compiler. `ZIG` in this script and in [`ZIG_AR_SCRIPT`] stands for the quoted path of
/// Zig.
const ZIG_CC_SCRIPT: &str = include_str!("c_code/cc.sh");
/// The script that starts Zig as an archiver.
const ZIG_AR_SCRIPT: &str = include_str!("c_code/ar.sh");

/// The compiler of the C code in a Rust package and its dependencies.
#[derive(Debug)]
pub(super) enum CCompiler {
    /// The user has set one of the [`COMPILER_VARIABLES`], which the crate `cc` reads.
    SetByUser,
    /// The programs of the WASI SDK, or the scripts that start Zig.
    Found { compiler: PathBuf, archiver: PathBuf },
    /// No compiler was found. Packages without C code can be built.
    Missing(MissingTool),
}

impl CCompiler {
    /// Finds the compiler for the package in `dir`. If the compiler is Zig, writes the scripts that start Zig to
    /// `cache_dir`.
    pub(super) fn find(dir: &Path, cache_dir: &Path) -> Result<Self, BuildError> {
        #[expect(clippy::disallowed_methods, reason = "the variables are those of the crate `cc`")]
        if COMPILER_VARIABLES.iter().any(|name| env::var_os(name).is_some()) {
            return Ok(Self::SetByUser);
        }
        let zig = match find_c_tools(dir) {
            Ok(CTools::WasiSdk { compiler, archiver }) => return Ok(Self::Found { compiler, archiver }),
            Ok(CTools::Zig(zig)) => zig,
            Err(missing) => return Ok(Self::Missing(missing)),
        };
        let script_dir = cache_dir.join("c");
        let write_script = |name: &str, text: &str| {
            let path = script_dir.join(name);
            write_executable(&path, &text.replace("ZIG", &shell_quoted(&zig)))
                .map_err(BuildError::file("write", &path))
                .map(|()| path)
        };
        Ok(Self::Found {
            compiler: write_script("cc", ZIG_CC_SCRIPT)?,
            archiver: write_script("ar", ZIG_AR_SCRIPT)?,
        })
    }

    /// Sets the environment variables for the build scripts that `cargo` runs, if a compiler was found.
    pub(super) fn configure(&self, cargo: &mut Command) {
        if let Self::Found { compiler, archiver } = self {
            cargo
                .env("CC_wasm32_wasip2", compiler)
                .env("AR_wasm32_wasip2", archiver);
        }
    }

    /// Replaces the error of a build that failed because no C compiler was found. Returns other errors unchanged.
    pub(super) fn explain(self, error: BuildError) -> BuildError {
        match (self, &error) {
            (Self::Missing(missing), BuildError::Compile { .. } | BuildError::Command { .. })
                if error.output().is_some_and(|output| output.contains(CC_CRATE_ERROR)) =>
            {
                BuildError::MissingTool(missing)
            }
            _ => error,
        }
    }
}

/// Quotes a path for a POSIX shell.
fn shell_quoted(path: &Path) -> String {
    format!("'{}'", path.to_string_lossy().replace('\'', r"'\''"))
}

/// Writes an executable file, unless the file already has this content. The file is written atomically, because several
/// processes may write it at the same time.
fn write_executable(path: &Path, text: &str) -> io::Result<()> {
    if fs::read_to_string(path).is_ok_and(|existing| existing == text) {
        return Ok(());
    }
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    let temporary = path.with_added_extension(process::id().to_string());
    fs::write(&temporary, text)?;
    fs::set_permissions(&temporary, fs::Permissions::from_mode(0o755))?;
    fs::rename(&temporary, path)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::Language;

    fn command_error(output: &str) -> BuildError {
        BuildError::Command {
            command: "cargo build".to_owned(),
            status: "exit status: 101".to_owned(),
            output: output.to_owned(),
        }
    }

    #[test]
    fn only_an_error_of_the_cc_crate_without_a_compiler_is_a_missing_tool() {
        let missing = || {
            CCompiler::Missing(MissingTool {
                language: Language::C,
                program: "zig",
                install: "install it".to_owned(),
            })
        };
        let error = missing().explain(command_error(
            "--- stderr\n\n\nerror occurred in cc-rs: failed to find tool \"clang\"",
        ));
        assert_eq!(error.to_string(), "`zig`, which builds C, is not installed");
        let error = missing().explain(command_error("error: no matching package"));
        assert!(
            matches!(error, BuildError::Command { .. }),
            "other errors are returned unchanged"
        );
        let error = CCompiler::SetByUser.explain(command_error("error occurred in cc-rs: a warning is an error"));
        assert!(
            matches!(error, BuildError::Command { .. }),
            "a compiler that fails is not missing"
        );
    }

    #[test]
    fn the_zig_script_replaces_the_target_and_supports_paths_with_quotes_and_spaces() {
        let dir = tempfile::tempdir().unwrap();
        let zig = dir.path().join("it's zig");
        write_executable(&zig, "#!/bin/sh\nprintf '%s\\n' \"$@\"\n").unwrap();
        let cc = dir.path().join("c/cc");
        write_executable(&cc, &ZIG_CC_SCRIPT.replace("ZIG", &shell_quoted(&zig))).unwrap();
        write_executable(&cc, &ZIG_CC_SCRIPT.replace("ZIG", &shell_quoted(&zig))).unwrap();
        let arguments = ["-c", "--target=wasm32-wasip2", "a b.c", "-DX='1'"];
        let output = process::Command::new(cc).args(arguments).output().unwrap();
        let received = String::from_utf8(output.stdout).unwrap();
        assert_eq!(received, "cc\n-target\nwasm32-wasi\n-c\na b.c\n-DX='1'\n");
    }
}
