//! Queries and installs Debian packages.

use std::{path::Path, process::Stdio, time::Duration};

use tokio::process::Command;

use super::{
    BuildError, Progress, Silent, Step,
    command::{Stdout, run, run_to_success},
    environment::program,
};

/// The time limit of a query, such as for the user id or for the installed packages.
const QUERY_LIMIT: Duration = Duration::from_secs(20);

/// The time limit of an installation, which downloads about 150 MB, and of an update of the package lists.
const INSTALL_LIMIT: Duration = Duration::from_secs(15 * 60);

/// The way in which this user can install packages without a password prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Privilege {
    /// The user is root.
    Root,
    /// `sudo` works without a password.
    Sudo,
}

impl Privilege {
    /// Returns the privilege of this user, or `None` if the user cannot install packages without a password prompt.
    pub(super) async fn find() -> Option<Self> {
        let mut id = program("id");
        id.arg("-u");
        if let Ok(finished) = run(id, Stdout::Collect, QUERY_LIMIT, &Silent).await
            && finished.stdout.trim() == "0"
        {
            return Some(Self::Root);
        }
        let mut sudo = program("sudo");
        sudo.args(["-n", "true"]);
        let finished = run(sudo, Stdout::Collect, QUERY_LIMIT, &Silent).await;
        finished
            .is_ok_and(|finished| finished.status.success())
            .then_some(Self::Sudo)
    }

    /// Returns an `apt-get` command that runs with this privilege. The caller adds the subcommand.
    fn apt_get(self) -> Command {
        let mut command = match self {
            Self::Root => program("env"),
            Self::Sudo => {
                let mut sudo = program("sudo");
                sudo.args(["-n", "env"]);
                sudo
            }
        };
        // `apt-get` waits up to 300 s for the lock of another apt process. It fails if it would have to remove a package.
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

/// Returns whether this system has the package manager of Debian.
pub(super) fn is_available() -> bool {
    Path::new("/usr/bin/apt-get").exists() && Path::new("/usr/bin/dpkg-query").exists()
}

/// Returns the packages in `packages` that are not installed.
pub(super) async fn missing(packages: &[&'static str]) -> Result<Vec<&'static str>, BuildError> {
    let mut query = program("dpkg-query");
    query
        .args(["-W", "-f", "${Package} ${db:Status-Status}\\n"])
        .args(packages);
    // The exit status is ignored: if one package is unknown, the query fails but prints the status of the other packages.
    let statuses = run(query, Stdout::Collect, QUERY_LIMIT, &Silent).await?.stdout;
    let is_installed = |package: &str| statuses.lines().any(|line| line == format!("{package} installed"));
    Ok(packages
        .iter()
        .copied()
        .filter(|package| !is_installed(package))
        .collect())
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
    // The exit status is ignored: the packages may be available although one package source is unreachable.
    let _finished = run(update, Stdout::Stream, INSTALL_LIMIT, progress).await?;
    let mut install = privilege.apt_get();
    install.arg("install").args(packages);
    run_to_success(install, Stdout::Stream, INSTALL_LIMIT, progress).await?;
    Ok(())
}
