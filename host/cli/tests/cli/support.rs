//! Runs the command in a temporary directory.

use std::fmt::{self, Write as _};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

/// The command under test.
pub(crate) const TOOLWIT: &str = env!("CARGO_BIN_EXE_toolwit");

/// A temporary directory in which the command runs, with a plugin directory `tools`.
pub(crate) struct Workspace {
    directory: tempfile::TempDir,
    variables: Vec<(&'static str, String)>,
}

/// The exit code and output of a run.
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Workspace {
    /// Creates a workspace without plugins.
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("tools")).unwrap();
        Self {
            directory,
            variables: Vec::new(),
        }
    }

    /// Creates a workspace with one plugin.
    pub(crate) fn with(name: &str, wat: &str) -> Self {
        Self::new().and(name, wat)
    }

    /// Adds a plugin to `tools`.
    pub(crate) fn and(self, name: &str, wat: &str) -> Self {
        let bytes = wat::parse_str(wat).expect("the guest is well-formed");
        self.file(&format!("tools/{name}.wasm"), bytes)
    }

    /// Adds a file.
    pub(crate) fn file(self, path: &str, bytes: impl AsRef<[u8]>) -> Self {
        let path = self.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
        self
    }

    /// Adds an executable shell script to the only directory on the command's `PATH`.
    #[cfg(unix)]
    pub(crate) fn program(self, name: &str, script: &str) -> Self {
        use std::os::unix::fs::PermissionsExt;
        let workspace = self.file(&format!(".bin/{name}"), format!("#!/bin/sh\n{script}\n"));
        let file = workspace.path().join(".bin").join(name);
        fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
        workspace
    }

    /// Sets an environment variable of the command.
    pub(crate) fn variable(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.variables.push((name, value.into()));
        self
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Runs the command to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Run {
        self.run_with_input(arguments, "")
    }

    /// Runs the command with text on standard input.
    pub(crate) fn run_with_input(&self, arguments: &[&str], input: &str) -> Run {
        let mut child = self.start(arguments);
        // The command may end without having read it.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        child.wait_with_output().unwrap().into()
    }

    /// Runs the command, which must print exactly one JSON document to standard output.
    pub(crate) fn json(&self, arguments: &[&str]) -> (Option<i32>, Value) {
        let run = self.run(arguments);
        let document = serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error} in {run}"));
        (run.code, document)
    }

    /// Starts the command.
    pub(crate) fn start(&self, arguments: &[&str]) -> Child {
        self.command(arguments).spawn().expect("the command starts")
    }

    /// Returns the command with an environment that does not depend on the machine.
    ///
    /// The home directory and `PATH` are in the workspace: no configuration file, grant, secret or toolchain of the machine is found.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(TOOLWIT);
        command
            .args(arguments)
            .current_dir(self.path())
            .env_clear()
            .env("HOME", self.path().join(".home"))
            .env("PATH", self.path().join(".bin"))
            .env("XDG_CACHE_HOME", cache())
            .env("XDG_DATA_HOME", self.path().join(".data"))
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }
}

/// Accepts what the project in a workspace proposes.
pub(crate) fn accept(workspace: &Workspace) {
    let (_, proposal) = workspace.json(&["trust", "--json"]);
    let accepted = workspace.run(&["trust", "--accept", proposal["digest"].as_str().unwrap()]);
    assert_eq!(accepted.code, Some(0), "{accepted}");
}

/// Returns the code cache that all tests and test runs share.
fn cache() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache")
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).expect("standard output is text"),
            stderr: String::from_utf8(output.stderr).expect("standard error is text"),
        }
    }
}

/// Formats the exit code and both streams, as in `exit: 0`.
impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.code {
            Some(code) => writeln!(f, "exit: {code}")?,
            None => writeln!(f, "ended by a signal")?,
        }
        for (name, text) in [("stdout", &self.stdout), ("stderr", &self.stderr)] {
            if !text.is_empty() {
                f.write_char('\n')?;
                writeln!(f, "--- {name}")?;
                f.write_str(text)?;
            }
        }
        Ok(())
    }
}
