//! Kills a program of a build, and the programs that it started.

use tokio::process::Child;

/// The process group of a program, which contains the programs that it started. Dropping this value kills the group.
pub(super) struct ProcessGroup {
    #[cfg(unix)]
    id: Option<rustix::process::Pid>,
}

#[cfg(unix)]
impl ProcessGroup {
    /// Returns the group of a program that was started as a group leader.
    pub(super) fn of(child: &Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Self {
            id: id.and_then(rustix::process::Pid::from_raw),
        }
    }

    /// Kills all processes of the group. A process that has left the group is not killed.
    pub(super) fn kill(&self) {
        if let Some(id) = self.id {
            // The call fails if all processes of the group have exited.
            let _ = rustix::process::kill_process_group(id, rustix::process::Signal::KILL);
        }
    }
}

/// Other platforms have no process groups: only the program itself is killed, by `kill_on_drop`.
#[cfg(not(unix))]
impl ProcessGroup {
    pub(super) fn of(_child: &Child) -> Self {
        Self {}
    }

    pub(super) fn kill(&self) {}
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.kill();
    }
}
