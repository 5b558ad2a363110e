//! Finds and runs the programs of a language's toolchain.

use std::{
    env,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use tokio::process::Command;

use super::MissingTool;
use crate::{
    BuildError, Progress, Step,
    command::{Stdout, run_to_success},
    environment,
};

/// A program of a toolchain, with the first arguments and the environment variables of every run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ToolProgram {
    path: PathBuf,
    first_arguments: &'static [&'static str],
    variables: &'static [(&'static str, &'static str)],
}

impl ToolProgram {
    /// Finds a program in the directory `local_dir` of the project in `dir` or, if it is not there, on `PATH`.
    ///
    /// `dir` must be absolute, because a relative path would depend on the current directory of the child.
    pub(super) fn find(name: &str, dir: &Path, local_dir: &str) -> Option<Self> {
        Self::at(&dir.join(local_dir).join(name)).or_else(|| on_path(name).as_deref().and_then(Self::at))
    }

    /// Returns the program at a path, if it exists.
    pub(super) fn at(path: &Path) -> Option<Self> {
        path.is_file().then(|| Self {
            path: path.to_owned(),
            first_arguments: &[],
            variables: &[],
        })
    }

    /// Returns the path of the program.
    pub(super) fn into_path(self) -> PathBuf {
        self.path
    }

    /// Sets the arguments that precede those of each run.
    pub(super) fn with_first_arguments(mut self, arguments: &'static [&'static str]) -> Self {
        self.first_arguments = arguments;
        self
    }

    /// Sets environment variables of each run.
    pub(super) fn with_environment(mut self, variables: &'static [(&'static str, &'static str)]) -> Self {
        self.variables = variables;
        self
    }

    /// Runs the program in `dir` and streams its output. An exit status other than success is an error.
    pub(super) async fn run(
        &self,
        dir: &Path,
        arguments: Vec<OsString>,
        limit: Duration,
        progress: &dyn Progress,
    ) -> Result<(), BuildError> {
        progress.step(self.step());
        let command = self.command(dir, arguments);
        run_to_success(command, Stdout::Stream, limit, progress).await?;
        Ok(())
    }

    /// Runs the program like [`run`](Self::run), but writes its standard output to a file.
    pub(super) async fn run_to_file(
        &self,
        dir: &Path,
        arguments: Vec<OsString>,
        output: &Path,
        limit: Duration,
        progress: &dyn Progress,
    ) -> Result<(), BuildError> {
        progress.step(self.step());
        let text = self.output(dir, arguments, limit, progress).await?;
        fs::write(output, text).map_err(BuildError::file("write", output))
    }

    /// Runs the program in `dir` and returns its standard output. An exit status other than success is an error.
    pub(super) async fn output(
        &self,
        dir: &Path,
        arguments: Vec<OsString>,
        limit: Duration,
        progress: &dyn Progress,
    ) -> Result<String, BuildError> {
        let command = self.command(dir, arguments);
        let finished = run_to_success(command, Stdout::Collect, limit, progress).await?;
        Ok(finished.stdout)
    }

    /// Returns the step of a build that runs the program.
    fn step(&self) -> Step {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        Step::RunTool(name.into_owned())
    }

    fn command(&self, dir: &Path, arguments: Vec<OsString>) -> Command {
        let mut command = environment::program(&self.path.to_string_lossy());
        command.args(self.first_arguments).args(arguments).current_dir(dir);
        // A backtrace of the compiler would hide the error in the source.
        command.env("RUST_BACKTRACE", "0");
        command.envs(self.variables.iter().copied());
        command
    }
}

/// Finds a program in the absolute directories of `PATH`.
#[expect(clippy::disallowed_methods, reason = "programs are looked up on `PATH`")]
fn on_path(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path)
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join(name))
        .find(|file| file.is_file())
}

impl From<MissingTool> for BuildError {
    fn from(missing: MissingTool) -> Self {
        Self::MissingTool(missing)
    }
}
