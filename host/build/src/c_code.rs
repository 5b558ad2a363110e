//! Chooses the compiler for C code in Rust packages, such as the SQLite library in a crate.
//!
//! The crate `cc` compiles such code in build scripts. It reads the compiler from the environment, and otherwise calls
//! a `clang` that has no C library for WASI. The compilers are those of plugins in C: the WASI SDK, or Zig.

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

/// The environment variables by which a user chooses the compiler.
const COMPILER_VARIABLES: [&str; 6] = [
    "CC_wasm32-wasip2",
    "CC_wasm32_wasip2",
    "TARGET_CC",
    "WASI_SDK_DIR",
    "WASI_SDK_PATH",
    "WASI_SYSROOT",
];

/// The start of an error of the crate `cc` in the output of a build script.
const ERROR_OF_CC: &str = "error occurred in cc-rs";

/// The script that starts Zig as a C compiler. `ZIG` in this script and in [`AR`] stands for the quoted path of Zig.
const CC: &str = include_str!("c_code/cc.sh");
/// The script that starts Zig as an archiver.
const AR: &str = include_str!("c_code/ar.sh");

/// The compiler of C code in a Rust package.
#[derive(Debug)]
pub(super) enum CCompiler {
    /// An environment variable names the compiler, the WASI SDK or its sysroot.
    Chosen,
    /// A compiler and an archiver that were found.
    Found { compiler: PathBuf, archiver: PathBuf },
    /// No compiler was found, which matters only for packages with C code.
    Missing(MissingTool),
}

impl CCompiler {
    /// Finds the compiler for the package in `dir`. If it is Zig, the scripts that start it are written to `cache_dir`.
    pub(super) fn find(dir: &Path, cache_dir: &Path) -> Result<Self, BuildError> {
        #[expect(clippy::disallowed_methods, reason = "the variables are those of the crate `cc`")]
        if COMPILER_VARIABLES.iter().any(|name| env::var_os(name).is_some()) {
            return Ok(Self::Chosen);
        }
        let zig = match find_c_tools(dir) {
            Ok(CTools::WasiSdk { compiler, archiver }) => return Ok(Self::Found { compiler, archiver }),
            Ok(CTools::Zig(zig)) => zig,
            Err(missing) => return Ok(Self::Missing(missing)),
        };
        let programs = cache_dir.join("c");
        let write = |name: &str, text: &str| {
            let path = programs.join(name);
            write_program(&path, &text.replace("ZIG", &shell_quoted(&zig)))
                .map_err(BuildError::file("write", &path))
                .map(|()| path)
        };
        Ok(Self::Found {
            compiler: write("cc", CC)?,
            archiver: write("ar", AR)?,
        })
    }

    /// Passes the compiler and archiver that were found to the build scripts that cargo runs.
    pub(super) fn configure(&self, cargo: &mut Command) {
        if let Self::Found { compiler, archiver } = self {
            cargo
                .env("CC_wasm32_wasip2", compiler)
                .env("AR_wasm32_wasip2", archiver);
        }
    }

    /// Replaces the error of a build that failed because no C compiler was found. Other errors are returned unchanged.
    pub(super) fn explain(self, error: BuildError) -> BuildError {
        match (self, &error) {
            (Self::Missing(missing), BuildError::Compile { .. } | BuildError::Command { .. })
                if error.output().is_some_and(|output| output.contains(ERROR_OF_CC)) =>
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

/// Writes an executable file atomically, unless it exists with this content. Several processes may do so at the same
/// time.
fn write_program(path: &Path, text: &str) -> io::Result<()> {
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
    fn c_code_without_a_compiler_names_the_missing_program() {
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
        let other = missing().explain(command_error("error: no matching package"));
        assert!(matches!(other, BuildError::Command { .. }), "another failure stays");
        let compiled = CCompiler::Chosen.explain(command_error("error occurred in cc-rs: a warning is an error"));
        assert!(
            matches!(compiled, BuildError::Command { .. }),
            "a compiler that fails is not missing"
        );
    }

    #[test]
    fn the_compiler_of_zig_drops_the_target_and_survives_odd_paths() {
        let dir = tempfile::tempdir().unwrap();
        let zig = dir.path().join("it's zig");
        write_program(&zig, "#!/bin/sh\nprintf '%s\\n' \"$@\"\n").unwrap();
        let cc = dir.path().join("c/cc");
        write_program(&cc, &CC.replace("ZIG", &shell_quoted(&zig))).unwrap();
        write_program(&cc, &CC.replace("ZIG", &shell_quoted(&zig))).unwrap();
        let arguments = ["-c", "--target=wasm32-wasip2", "a b.c", "-DX='1'"];
        let output = process::Command::new(cc).args(arguments).output().unwrap();
        let received = String::from_utf8(output.stdout).unwrap();
        assert_eq!(received, "cc\n-target\nwasm32-wasi\n-c\na b.c\n-DX='1'\n");
    }
}
