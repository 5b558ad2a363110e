//! Debian's packages: what is installed, and installing more.

use std::{path::Path, process::Stdio, time::Duration};

use tokio::process::Command;

use super::{
    BuildError, Progress, Silent, Step,
    command::{Stdout, run, run_to_success},
};

/// How long a question to the package database may take.
const QUERY_LIMIT: Duration = Duration::from_secs(20);

/// How long an installation may take, the download of about 150 MB included.
const INSTALL_LIMIT: Duration = Duration::from_secs(15 * 60);

/// Whether, and how, this user may install packages without being asked anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Privilege {
    /// The user is root.
    Root,
    /// `sudo` works without a password.
    Sudo,
}

impl Privilege {
    pub(super) async fn find() -> Option<Self> {
        let mut id = Command::new("id");
        id.arg("-u");
        if let Ok(finished) = run(id, Stdout::Collect, QUERY_LIMIT, &Silent).await
            && finished.stdout.trim() == "0"
        {
            return Some(Self::Root);
        }
        let mut sudo = Command::new("sudo");
        sudo.args(["-n", "true"]);
        let allowed = run(sudo, Stdout::Collect, QUERY_LIMIT, &Silent).await;
        allowed
            .is_ok_and(|finished| finished.status.success())
            .then_some(Self::Sudo)
    }

    fn apt_get(self) -> Command {
        let mut command = match self {
            Self::Root => Command::new("env"),
            Self::Sudo => {
                let mut sudo = Command::new("sudo");
                sudo.args(["-n", "env"]);
                sudo
            }
        };
        // Another apt may be at work; a package that would push out another one is not worth it.
        command.args([
            "DEBIAN_FRONTEND=noninteractive",
            "apt-get",
            "-q",
            "-o",
            "DPkg::Lock::Timeout=300",
        ]);
        command.args(["--no-remove", "--no-install-recommends", "-y"]);
        command.stdin(Stdio::null());
        command
    }
}

/// Says whether this system has Debian's package manager.
pub(super) fn is_available() -> bool {
    Path::new("/usr/bin/apt-get").exists() && Path::new("/usr/bin/dpkg-query").exists()
}

/// Returns those of the packages that are not installed.
pub(super) async fn missing(packages: &[&'static str]) -> Result<Vec<&'static str>, BuildError> {
    let mut query = Command::new("dpkg-query");
    query
        .args(["-W", "-f", "${Package} ${db:Status-Status}\\n"])
        .args(packages);
    // It fails when one package is unknown, and answers for the others all the same.
    let known = run(query, Stdout::Collect, QUERY_LIMIT, &Silent).await?.stdout;
    let installed = |package: &str| known.lines().any(|line| line == format!("{package} installed"));
    Ok(packages.iter().copied().filter(|package| !installed(package)).collect())
}

/// Refreshes the package lists and installs the packages.
pub(super) async fn install(
    packages: &[&'static str],
    privilege: Privilege,
    progress: &dyn Progress,
) -> Result<(), BuildError> {
    progress.step(Step::InstallPackages(
        packages.iter().map(|&package| package.to_owned()).collect(),
    ));
    let mut update = privilege.apt_get();
    update.arg("update");
    // One unreachable source must not stop what the others can give.
    let _finished = run(update, Stdout::Stream, INSTALL_LIMIT, progress).await?;
    let mut install = privilege.apt_get();
    install.arg("install").args(packages);
    run_to_success(install, Stdout::Stream, INSTALL_LIMIT, progress).await?;
    Ok(())
}
