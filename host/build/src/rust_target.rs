//! Finds a toolchain with the Rust target `wasm32-wasip2`, or installs the target.
//!
//! A build tries in order: the toolchain that cargo would use in the project's directory; the [`WasmSysroot`] of an
//! earlier build; `rustup target add`; and on Debian, a new [`WasmSysroot`]. An existing sysroot takes precedence over
//! rustup, so that an offline machine does not wait for the network at each build.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use tokio::process::Command;

use super::{
    BuildError, Progress, Silent, Step, TARGET,
    command::{Stdout, run, run_to_success},
    debian,
    environment::{program, use_default_toolchain, use_project_toolchain, use_system_toolchain},
    linkers::Linkers,
    wasm_sysroot::WasmSysroot,
};

/// The time limit for querying a compiler's host tuple and directories.
const QUERY_LIMIT: Duration = Duration::from_secs(60);

/// The time limit of `cargo --version`.
const VERSION_LIMIT: Duration = Duration::from_secs(10);

/// The time limit of `rustup`, which downloads about 20 MB. Without a network it fails much earlier.
const RUSTUP_LIMIT: Duration = Duration::from_secs(180);

/// A Rust toolchain (cargo and rustc) that supports the target.
#[derive(Clone, Debug)]
pub(super) enum RustToolchain {
    /// The toolchain of the cargo on `PATH`.
    Installed,
    /// Debian's toolchain with a sysroot that Toolwit built.
    Debian(WasmSysroot),
}

impl RustToolchain {
    /// Finds a toolchain for the package in `dir`, or sets one up.
    pub(super) async fn find(dir: &Path, cache_dir: &Path, progress: &dyn Progress) -> Result<Self, BuildError> {
        let installed = Rustc::query(dir).await;
        if installed.as_ref().is_ok_and(Rustc::has_target) {
            return Ok(Self::Installed);
        }
        let linkers = Linkers::find(installed.as_ref().ok().map(Rustc::private_bin).as_deref());
        if let Some(sysroot) = WasmSysroot::find(cache_dir, linkers.as_ref()).await {
            return Ok(Self::Debian(sysroot));
        }
        let mut reasons = Vec::new();
        match add_with_rustup(dir, progress).await {
            Ok(()) => return Ok(Self::Installed),
            Err(reason) => reasons.push(reason),
        }
        match debian::SetUp::plan(linkers).await {
            Ok(set_up) => Ok(Self::Debian(set_up.run(cache_dir, progress).await?)),
            Err(reason) => {
                reasons.push(reason);
                Err(BuildError::RustTarget { reasons })
            }
        }
    }

    /// Creates a cargo command that runs in `dir` with this toolchain.
    pub(super) fn cargo(&self, dir: &Path) -> Command {
        let mut command = match self {
            Self::Installed => program("cargo"),
            Self::Debian(sysroot) => Command::new(sysroot.cargo()),
        };
        match self {
            Self::Installed => use_project_toolchain(&mut command, dir),
            Self::Debian(sysroot) => {
                use_system_toolchain(&mut command, Some(&sysroot.linker_dir()));
                command.current_dir(dir).env("RUSTC", sysroot.rustc());
            }
        }
        command
    }
}

/// Returns the version of the user's cargo, such as `cargo 1.95.0 (f2d3ce0bd 2026-03-21)`.
///
/// A toolchain that a project in the current directory selects is ignored.
///
/// # Errors
/// [`BuildError::Start`] if cargo cannot be started, [`BuildError::Command`] if it fails, [`BuildError::Output`] if its
/// output cannot be read, [`BuildError::TimedOut`] if it takes more than ten seconds.
pub async fn cargo_version() -> Result<String, BuildError> {
    let mut cargo = program("cargo");
    use_default_toolchain(&mut cargo);
    cargo.arg("--version");
    let finished = run_to_success(cargo, Stdout::Collect, VERSION_LIMIT, &Silent).await?;
    Ok(finished.stdout.trim().to_owned())
}

/// The host tuple and the directories of the compiler that cargo would use.
#[derive(Debug)]
struct Rustc {
    host: String,
    sysroot: PathBuf,
    target_libdir: PathBuf,
}

impl Rustc {
    /// Queries the compiler that cargo would use in `dir`.
    async fn query(dir: &Path) -> Result<Self, BuildError> {
        let mut rustc = program("rustc");
        use_project_toolchain(&mut rustc, dir);
        rustc.args(["--target", TARGET]);
        rustc.args([
            "--print",
            "host-tuple",
            "--print",
            "sysroot",
            "--print",
            "target-libdir",
        ]);
        let output = run_to_success(rustc, Stdout::Collect, QUERY_LIMIT, &Silent)
            .await?
            .stdout;
        let mut lines = output.lines();
        let mut next_line = || lines.next().unwrap_or_default();
        Ok(Self {
            host: next_line().to_owned(),
            sysroot: next_line().into(),
            target_libdir: next_line().into(),
        })
    }

    fn has_target(&self) -> bool {
        self.target_libdir.is_dir()
    }

    /// Returns the directory of the toolchain's private programs.
    fn private_bin(&self) -> PathBuf {
        self.sysroot.join("lib/rustlib").join(&self.host).join("bin")
    }
}

/// Adds the target to the toolchain of `dir`, or returns the reason for the failure.
async fn add_with_rustup(dir: &Path, progress: &dyn Progress) -> Result<(), String> {
    let mut rustup = program("rustup");
    use_project_toolchain(&mut rustup, dir);
    rustup.env_remove("RUST_BACKTRACE").args(["target", "add", TARGET]);
    progress.step(Step::AddTarget);
    // The diagnostics, for example of a missing network, are hidden, because Debian's packages may still provide the target.
    match run(rustup, Stdout::Stream, RUSTUP_LIMIT, &Silent).await {
        Err(BuildError::Start { .. }) => Err("`rustup` is not installed".to_owned()),
        Err(error) => Err(error.to_string()),
        Ok(finished) if !finished.status.success() => Err(match first_error(&finished.diagnostics) {
            Some(error) => format!("`rustup target add` failed: {error}"),
            None => format!("`rustup target add` failed ({})", finished.status),
        }),
        Ok(_) => match Rustc::query(dir).await {
            Ok(rustc) if rustc.has_target() => Ok(()),
            _ => Err("`rustup` added the target, but the `rustc` on PATH does not have it".to_owned()),
        },
    }
}

/// Returns the message of the first error in the diagnostics of rustup.
fn first_error(diagnostics: &str) -> Option<&str> {
    diagnostics.lines().find_map(|line| line.strip_prefix("error: "))
}
