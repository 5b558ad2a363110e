//! Errors of a build.

use std::{io, path::PathBuf};

use super::{EmbedError, Language, MissingTool, WitError};

/// An error of a build, such as of [`Build::run`](super::Build::run).
///
/// For most errors, [`suggestion`](BuildError::suggestion) returns a text that explains how to fix the error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The path is not a directory.
    #[error("`{}` is not a directory", .dir.display())]
    NotADirectory {
        /// The path.
        dir: PathBuf,
    },
    /// The directory does not contain a source that can be built.
    #[error("nothing to build in `{}`: no `Cargo.toml`, `app.py`, `app.js`, `app.ts`, `plugin.c`, `plugin.cpp`, `plugin.zig` or `go.mod`, no `[build]` in a `toolwit.toml`, no `.wasm` file", .dir.display())]
    NothingToBuild {
        /// The directory that was searched.
        dir: PathBuf,
    },
    /// The directory contains several WebAssembly files, and the configuration does not select one.
    #[error("several WebAssembly files in `{}`: {}", .dir.display(), .files.join(", "))]
    SeveralWasmFiles {
        /// The directory that was searched.
        dir: PathBuf,
        /// The names of the files.
        files: Vec<String>,
    },
    /// The directory contains the entry files of several languages.
    #[error("several languages in `{}`: {}", .dir.display(), .files.join(", "))]
    SeveralLanguages {
        /// The directory that was searched.
        dir: PathBuf,
        /// The entry files.
        files: Vec<&'static str>,
    },
    /// The project has no WIT. Its language needs bindings, which are generated from WIT.
    #[error("no WIT in `{}`; a project in {language} needs WIT", .path.display())]
    NoWit {
        /// The language of the project.
        language: Language,
        /// The expected path.
        path: PathBuf,
    },
    /// The WIT contains something that a language does not support.
    #[error("the WIT is not supported in {language}: {message}")]
    Bindings {
        /// The language of the project.
        language: Language,
        /// The unsupported part of the WIT, or the generator's message.
        message: String,
    },
    /// The WIT has async functions, streams or futures, and the runtime of the installed Go cannot be changed for them.
    #[error("async functions need a changed Go runtime, and Toolwit cannot change this version of `{}`", .path.display())]
    GoRuntime {
        /// The file of the runtime.
        path: PathBuf,
    },
    /// A program of the language's toolchain is not installed.
    #[error("`{}`, which builds {}, is not installed", .0.program, .0.language)]
    MissingTool(MissingTool),
    /// The project's `toolwit.toml` is not valid.
    #[error("`{}` is not valid: {message}", .path.display())]
    Configuration {
        /// The file.
        path: PathBuf,
        /// The cause, with its position if it is known.
        message: String,
    },
    /// A file could not be read or written.
    #[error("could not {action} `{}`", .path.display())]
    File {
        /// The attempted action, as a verb.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The WIT is not valid, cannot be encoded, or does not have the requested world.
    #[error(transparent)]
    Wit(#[from] WitError),
    /// The WIT cannot be embedded in the component.
    #[error("the WIT cannot be embedded in `{}`", .path.display())]
    Embed {
        /// The component.
        path: PathBuf,
        /// The cause.
        source: EmbedError,
    },
    /// A program could not be started.
    #[error("could not run `{program}`")]
    Start {
        /// The program.
        program: String,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The output of a program could not be read, or is too large.
    #[error("the output of `{program}` could not be read")]
    Output {
        /// The program.
        program: String,
        /// The cause.
        source: io::Error,
    },
    /// A program exited with an error.
    #[error("`{command}` failed ({status})")]
    Command {
        /// The command line.
        command: String,
        /// The exit status.
        status: String,
        /// The last lines of the program's diagnostics.
        output: String,
    },
    /// A program exceeded its time limit.
    #[error("`{command}` was stopped after {limit_s} s")]
    TimedOut {
        /// The command line.
        command: String,
        /// The limit, in seconds.
        limit_s: u64,
    },
    /// Another build held a lock for longer than this build waits.
    #[error("another build still holds `{}` after {limit_s} s", .path.display())]
    Locked {
        /// The lock file.
        path: PathBuf,
        /// The time for which this build waited, in seconds.
        limit_s: u64,
    },
    /// The source does not compile.
    #[error("`{package}` does not compile")]
    Compile {
        /// The package that was built.
        package: String,
        /// The last lines of the compiler's rendered diagnostics.
        diagnostics: String,
    },
    /// The package has no cargo target that can become a component.
    #[error("package `{package}` has no target that can become a component: {reason}")]
    NoTarget {
        /// The package.
        package: String,
        /// The reason, with the targets that were found.
        reason: String,
    },
    /// The manifest describes a workspace without a root package.
    #[error("`{}` is a workspace without a root package", .manifest.display())]
    Workspace {
        /// The manifest.
        manifest: PathBuf,
    },
    /// The build succeeded but produced no WebAssembly file.
    #[error("the build did not produce a WebAssembly file{}", .expected.as_ref().map(|path| format!(" at `{}`", path.display())).unwrap_or_default())]
    NoArtifact {
        /// The expected path, if it is known.
        expected: Option<PathBuf>,
    },
    /// The file is not WebAssembly.
    #[error("`{}` is not a WebAssembly component or module", .path.display())]
    NotWasm {
        /// The file.
        path: PathBuf,
    },
    /// A core module could not be converted to a component.
    #[error("`{}` cannot become a component: {message}", .path.display())]
    Componentize {
        /// The module.
        path: PathBuf,
        /// The encoder's message.
        message: String,
    },
    /// The Rust target is missing, and cannot be set up on this machine.
    #[error("the Rust target `wasm32-wasip2` is missing and cannot be set up: {}", .reasons.join("; "))]
    RustTarget {
        /// The reason why each attempt failed.
        reasons: Vec<String>,
    },
}

impl BuildError {
    /// Returns a suggestion for fixing the error, if there is one.
    #[must_use]
    pub fn suggestion(&self) -> Option<String> {
        let text = match self {
            Self::NothingToBuild { .. } => {
                "name the directory of a Rust package or of a project in another language, or a directory with a component \
                 next to its `wit` directory"
            }
            Self::SeveralLanguages { .. } => "remove all but one, or set the `[build]` table of a `toolwit.toml`",
            Self::GoRuntime { .. } => "install Go 1.27, with which async functions are tested",
            Self::NoWit { .. } => "declare the tools in `wit/plugin.wit`",
            Self::MissingTool(missing) => {
                return Some(format!("in the directory of the project: `{}`", missing.install));
            }
            Self::SeveralWasmFiles { .. } => {
                "remove all but one, or name the output in the `[build]` table of a `toolwit.toml`"
            }
            Self::NoTarget { .. } => {
                "add `[lib] crate-type = [\"cdylib\"]` to its Cargo.toml; a command-line program needs a `src/main.rs`, or \
                 `default-run` if the package has several programs"
            }
            Self::Workspace { .. } => "name the directory of a package of the workspace",
            Self::Wit(error) => return error.suggestion(),
            Self::Start { program, .. } if program.ends_with("cargo") || program.ends_with("rustc") => {
                "install Rust from https://rustup.rs"
            }
            Self::RustTarget { .. } => {
                "with rustup: `rustup target add wasm32-wasip2`; on Debian: \
                 `sudo apt-get install rustc-web cargo-web rust-web-src libstd-rust-web-dev wasi-libc`, then build again"
            }
            Self::Componentize { .. } => {
                "check that the module has all exports of its WIT world, and no imports except those of its world and of WASI \
                 preview 1"
            }
            Self::TimedOut { .. } => {
                "run the build again (cargo continues where it stopped), or raise the build's time limit"
            }
            Self::Locked { .. } => "wait until the other build has ended, or end it; then run this build again",
            _ => return None,
        };
        Some(text.to_owned())
    }

    /// Returns the last lines of a failed program's diagnostics, for callers that did not show them as progress. Returns
    /// `None` for any other error.
    #[must_use]
    pub fn output(&self) -> Option<&str> {
        match self {
            Self::Compile { diagnostics: text, .. } | Self::Command { output: text, .. } => Some(text),
            _ => None,
        }
    }

    /// Returns a function that converts an error of the operating system to [`BuildError::File`].
    pub(super) fn file(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { action, path, source }
    }
}
