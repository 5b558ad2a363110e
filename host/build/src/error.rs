//! Why a build did not give a component.

use std::{io, path::PathBuf};

use super::{EmbedError, WitError};

/// An error of [`Build::run`](super::Build::run).
///
/// Its [`suggestion`](BuildError::suggestion) says what a person can do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// The path is not a directory.
    #[error("`{}` is not a directory", .dir.display())]
    NotADirectory {
        /// The path that was given.
        dir: PathBuf,
    },
    /// The directory holds nothing that is known how to build.
    #[error("nothing to build in `{}`: no `Cargo.toml`, no `[build]` in a `toolwit.toml`, no `.wasm` file", .dir.display())]
    NothingToBuild {
        /// The directory that was searched.
        dir: PathBuf,
    },
    /// The directory holds several WebAssembly files, and none is named as the one.
    #[error("several WebAssembly files in `{}`: {}", .dir.display(), .files.join(", "))]
    SeveralWasmFiles {
        /// The directory that was searched.
        dir: PathBuf,
        /// The names of the files.
        files: Vec<String>,
    },
    /// The project's `toolwit.toml` cannot be read.
    #[error("`{}` is not valid: {message}", .path.display())]
    Configuration {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, and where.
        message: String,
    },
    /// A file could not be read or written.
    #[error("could not {action} `{}`", .path.display())]
    File {
        /// What was tried, as a verb.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The operating system's reason.
        source: io::Error,
    },
    /// The WIT is not valid.
    #[error(transparent)]
    Wit(#[from] WitError),
    /// The component that came out cannot carry the WIT.
    #[error("`{}` cannot carry its WIT", .path.display())]
    Embed {
        /// The component.
        path: PathBuf,
        /// What is wrong with it.
        source: EmbedError,
    },
    /// A program could not be started.
    #[error("could not run `{program}`")]
    Start {
        /// The program.
        program: String,
        /// The operating system's reason.
        source: io::Error,
    },
    /// A program ended with an error.
    #[error("`{command}` failed ({status})")]
    Command {
        /// The command line.
        command: String,
        /// How it ended.
        status: String,
        /// The end of what it said.
        output: String,
    },
    /// A program took longer than it may.
    #[error("`{command}` was stopped after {limit_s} s")]
    TimedOut {
        /// The command line.
        command: String,
        /// The limit, in seconds.
        limit_s: u64,
    },
    /// The source does not compile.
    #[error("`{package}` does not compile")]
    Compile {
        /// The package that was built.
        package: String,
        /// The compiler's diagnostics, as it rendered them.
        diagnostics: String,
    },
    /// The manifest names nothing that can become a component.
    #[error("package `{package}` has no target that can become a component: {reason}")]
    NoTarget {
        /// The package.
        package: String,
        /// What was found in place of one.
        reason: String,
    },
    /// The manifest is that of a workspace.
    #[error("`{}` is a workspace without a package of its own", .manifest.display())]
    Workspace {
        /// The manifest.
        manifest: PathBuf,
    },
    /// The build ended well, and left no WebAssembly file.
    #[error("the build left no WebAssembly file{}", .expected.as_ref().map(|p| format!(" at `{}`", p.display())).unwrap_or_default())]
    NoArtifact {
        /// Where it was expected, if that is known.
        expected: Option<PathBuf>,
    },
    /// The file is not WebAssembly.
    #[error("`{}` is not a WebAssembly component or module", .path.display())]
    NotWasm {
        /// The file.
        path: PathBuf,
    },
    /// A core module could not be made into a component.
    #[error("`{}` cannot become a component: {message}", .path.display())]
    Componentize {
        /// The module.
        path: PathBuf,
        /// The reason, as the encoder puts it.
        message: String,
    },
    /// No compiler for WebAssembly can be had on this machine.
    #[error("the Rust target `wasm32-wasip2` is missing and cannot be set up: {}", .reasons.join("; "))]
    RustTarget {
        /// What was tried, and why it failed.
        reasons: Vec<String>,
    },
}

impl BuildError {
    /// Says what a person can do about it, where there is something to say.
    #[must_use]
    pub fn suggestion(&self) -> Option<String> {
        let text = match self {
            Self::NothingToBuild { .. } => {
                "name the directory of a Rust package, or one that holds a component beside its `wit` directory"
            }
            Self::SeveralWasmFiles { .. } => "leave one, or name the output in the `[build]` table of a `toolwit.toml`",
            Self::NoTarget { .. } => {
                "add `[lib] crate-type = [\"cdylib\"]` to its Cargo.toml, or a `src/main.rs` for a command-line program"
            }
            Self::Workspace { .. } => "name the directory of one of its packages",
            Self::Wit(error) => return error.suggestion(),
            Self::Start { program, .. } if program.ends_with("cargo") || program.ends_with("rustc") => {
                "install Rust from https://rustup.rs"
            }
            Self::RustTarget { .. } => {
                "with rustup: `rustup target add wasm32-wasip2`; on Debian: \
                 `sudo apt-get install rustc-web cargo-web rust-web-src libstd-rust-web-dev wasi-libc`, then build again"
            }
            Self::Componentize { .. } => {
                "check that the module exports what its WIT world promises, and that it was built without WASI preview 1 \
                 imports"
            }
            Self::TimedOut { .. } => "run it again: what was already built is kept; or raise the build's time limit",
            _ => return None,
        };
        Some(text.to_owned())
    }

    /// The end of what the tool said, where a tool failed: worth showing when it was not streamed.
    #[must_use]
    pub fn output(&self) -> Option<&str> {
        match self {
            Self::Compile { diagnostics: text, .. } | Self::Command { output: text, .. } => Some(text),
            _ => None,
        }
    }

    pub(super) fn file(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { action, path, source }
    }
}
