//! Settings of the system that keep a host from running components. A component is never blamed for them.

use std::io;

use wasmtime::component::Component;

use super::engine::{MemoryReservation, address_space_bytes_max, compiler_engine};
use crate::inspect::profile::Profile;
use toolwit_core::limits::{ByteCount, EngineLimits};
use toolwit_core::{Error, ErrorKind, Phase};

/// A component with one core module, which has one function without instructions. To compile it, memory must become executable.
const TRIVIAL_COMPONENT: &[u8] =
    b"\0asm\x0d\0\x01\0\x01\x18\0asm\x01\0\0\0\x01\x04\x01\x60\0\0\x03\x02\x01\0\x0a\x04\x01\x02\0\x0b";

/// The number of threads that a host needs at least, in addition to those that run already.
const THREADS_MIN: usize = 4;

/// Returns the error of the host if the system refused memory or executable memory. `None` for any other error.
pub(crate) fn host_setting_error(error: &wasmtime::Error) -> Option<Error> {
    let setting_error = match os_error(error)? {
        io::ErrorKind::OutOfMemory => address_space_error(),
        io::ErrorKind::PermissionDenied => Error::new(
            ErrorKind::Configuration,
            Phase::Load,
            "the system does not allow the host to make memory executable, which machine code needs",
        )
        .with_suggestion("allow it: `MemoryDenyWriteExecute=no` of systemd, no `PR_SET_MDWE`, `execmem` of SELinux"),
        _ => return None,
    };
    Some(setting_error.with_source(format!("{error:#}")))
}

/// Returns the error of a host to which the system gives no more memory.
pub(super) fn address_space_error() -> Error {
    let limit =
        address_space_bytes_max().map(|bytes| format!(": its address space is limited to {}", ByteCount(bytes)));
    let message = format!("the system gives the host no more memory{}", limit.unwrap_or_default());
    Error::new(ErrorKind::Configuration, Phase::Load, message).with_suggestion(
        "raise the limit of address space (`ulimit -v`, `LimitAS=` of systemd) or of memory (`MemoryMax=`, the limit of the container)",
    )
}

/// Returns the kind of the error of the operating system that caused an error, if it has one.
fn os_error(error: &wasmtime::Error) -> Option<io::ErrorKind> {
    error.chain().find_map(|cause| {
        #[cfg(unix)]
        if let Some(number) = cause.downcast_ref::<rustix::io::Errno>() {
            return Some(number.kind());
        }
        cause.downcast_ref::<io::Error>().map(io::Error::kind)
    })
}

/// Checks whether the system allows this process to run components: executable memory, address space and threads. Returns an error
/// for each setting that prevents it, or makes it slow (in [`Phase::Instantiate`]). Runs no code of a plugin.
///
/// ```
/// for problem in toolwit_sandbox::check_host() {
///     println!("{}", problem.message);
/// }
/// ```
#[must_use]
pub fn check_host() -> Vec<Error> {
    let mut problems = Vec::new();
    if let Some(bytes) = address_space_bytes_max() {
        let message = format!(
            "the address space of the host is limited to {}: plugins run slower, and fewer at the same time",
            ByteCount(bytes)
        );
        problems.push(
            Error::new(ErrorKind::Configuration, Phase::Instantiate, message)
                .with_suggestion("remove the limit: `ulimit -v unlimited`, `LimitAS=infinity` of systemd"),
        );
    }
    let stack_bytes_max = EngineLimits::default().stack_bytes_max;
    let compiled = compiler_engine(Profile::Plain, stack_bytes_max, MemoryReservation::of_process())
        .and_then(|engine| Component::from_binary(&engine, TRIVIAL_COMPONENT).map(drop));
    if let Err(error) = compiled {
        problems.push(host_setting_error(&error).unwrap_or_else(|| {
            Error::new(ErrorKind::Internal, Phase::Load, "machine code cannot be used")
                .with_source(format!("{error:#}"))
        }));
    }
    problems.extend(require_threads(THREADS_MIN).err());
    problems
}

/// Checks that the system allows this process to start this many more threads.
///
/// # Errors
/// [`ErrorKind::Configuration`], with the limits to raise.
pub fn require_threads(count: usize) -> Result<(), Error> {
    start_threads(count).map_err(|error| thread_error(&error))
}

/// Starts this many threads at the same time, and ends them. Returns an error if the system does not allow so many.
///
/// # Errors
/// The error of starting a thread.
pub(super) fn start_threads(count: usize) -> io::Result<()> {
    std::thread::scope(|scope| {
        let (sender, receiver) = std::sync::mpsc::channel::<()>();
        let receiver = std::sync::Arc::new(std::sync::Mutex::new(receiver));
        let mut outcome = Ok(());
        for _ in 0..count {
            let receiver = receiver.clone();
            // The thread waits until the sender is dropped.
            let wait = move || drop(receiver.lock().map(|receiver| receiver.recv()));
            if let Err(error) = std::thread::Builder::new().spawn_scoped(scope, wait) {
                outcome = Err(error);
                break;
            }
        }
        drop(sender);
        outcome
    })
}

/// Returns the error of a host that cannot start a thread.
pub(crate) fn thread_error(error: &io::Error) -> Error {
    let message = format!("the host cannot start a thread: {error}");
    Error::new(ErrorKind::Configuration, Phase::Load, message).with_suggestion(
        "raise the limit of processes and threads: `ulimit -u`, `LimitNPROC=` and `TasksMax=` of systemd, `--pids-limit` of the container",
    )
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn the_error_names_the_setting_and_not_the_component() {
        use rustix::io::Errno;
        for (number, setting) in [(Errno::NOMEM, "ulimit -v"), (Errno::PERM, "MemoryDenyWriteExecute")] {
            let error = wasmtime::Error::from(number).context("it could not be instantiated");
            let error = host_setting_error(&error).unwrap();
            assert_eq!(error.kind, ErrorKind::Configuration);
            assert!(error.suggestion.as_deref().unwrap().contains(setting), "{error:?}");
        }
        assert!(host_setting_error(&wasmtime::Error::from(wasmtime::Trap::OutOfFuel)).is_none());
    }

    #[test]
    fn the_trivial_component_can_be_compiled() {
        let engine = compiler_engine(Profile::Plain, 1 << 20, MemoryReservation::Full).unwrap();
        Component::from_binary(&engine, TRIVIAL_COMPONENT).unwrap();
        start_threads(THREADS_MIN).unwrap();
    }
}
