//! Kills a program of a build together with the programs that it started.

use tokio::process::Child;

/// The process group of a program, which contains the programs that it started. It is killed on drop.
pub(super) struct ProcessGroup {
    #[cfg(unix)]
    id: Option<rustix::process::Pid>,
}

#[cfg(unix)]
impl ProcessGroup {
    /// Returns the group of a program that was started as the leader of its group.
    pub(super) fn of(child: &Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Self {
            id: id.and_then(rustix::process::Pid::from_raw),
        }
    }

    /// Kills the program, and those that it started and that have not left the group.
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
