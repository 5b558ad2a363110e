//! The compiler process: compiles one component under limits of memory and processor time.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::process::ExitCode;

use super::compile_job::{COMPILE_ARGUMENT, CompileJob, REPLY_MESSAGE_BYTES, ReplyHeader};
use super::engine::{compatibility_hash, compiler_engine};

/// The exit code if this program cannot run the job, because the host and the program are of different versions.
const VERSION_MISMATCH_EXIT_CODE: u8 = 2;

/// Compiles one component and returns the exit code, if a host started this process as its compiler. Otherwise returns `None`
/// at once.
///
/// The program of [`Compiler::Process`](crate::Compiler::Process) calls this function at the start of `main`, before it starts
/// threads or reads its arguments:
///
/// ```no_run
/// use std::process::ExitCode;
///
/// fn main() -> ExitCode {
///     if let Some(exit_code) = toolwit_sandbox::run_compiler_if_asked() {
///         return exit_code;
///     }
///     // Run the program itself.
///     ExitCode::SUCCESS
/// }
/// ```
#[must_use]
pub fn run_compiler_if_asked() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != COMPILE_ARGUMENT {
        return None;
    }
    let exit_code = match read_job(arguments.next()) {
        Some(job) => limit_resources(&job).and_then(|()| compile(&job)),
        None => Ok(ExitCode::from(VERSION_MISMATCH_EXIT_CODE)),
    };
    Some(exit_code.unwrap_or(ExitCode::FAILURE))
}

fn read_job(argument: Option<OsString>) -> Option<CompileJob> {
    serde_json::from_str(argument?.to_str()?).ok()
}

/// Limits the resources of this process. The memory is limited only on Linux, because other Unix systems do not enforce the
/// limit. The process writes no files and no core dump.
#[cfg(unix)]
fn limit_resources(job: &CompileJob) -> io::Result<()> {
    use rustix::process::Resource;
    set_limit(Resource::Core, 0, 0)?;
    set_limit(Resource::Fsize, 0, 0)?;
    #[cfg(target_os = "linux")]
    {
        /// The address space in addition to the memory limit, in bytes. The program and the arenas of the allocator occupy
        /// address space without using as much memory.
        const EXTRA_ADDRESS_SPACE_BYTES: u64 = 4 << 30;
        let address_space_bytes = job.memory_bytes_max.saturating_add(EXTRA_ADDRESS_SPACE_BYTES);
        set_limit(Resource::Data, job.memory_bytes_max, job.memory_bytes_max)?;
        set_limit(Resource::As, address_space_bytes, address_space_bytes)?;
    }
    // The kernel sends SIGXCPU at the soft limit, and SIGKILL at the hard limit. The host recognizes SIGXCPU.
    set_limit(Resource::Cpu, job.processor_seconds_max, job.processor_seconds_max + 1)
}

/// Sets the soft and the hard limit of a resource. Neither becomes higher than the present hard limit.
#[cfg(unix)]
fn set_limit(resource: rustix::process::Resource, soft: u64, hard: u64) -> io::Result<()> {
    let present_hard_limit = rustix::process::getrlimit(resource).maximum.unwrap_or(u64::MAX);
    let limit = rustix::process::Rlimit {
        current: Some(soft.min(present_hard_limit)),
        maximum: Some(hard.min(present_hard_limit)),
    };
    rustix::process::setrlimit(resource, limit)?;
    Ok(())
}

/// Does nothing. On systems other than Unix, only the host limits the compilation: by its duration and the size of the code.
#[cfg(not(unix))]
fn limit_resources(_job: &CompileJob) -> io::Result<()> {
    Ok(())
}

fn compile(job: &CompileJob) -> io::Result<ExitCode> {
    let mut component = vec![0; usize::try_from(job.component_bytes).unwrap_or(usize::MAX)];
    io::stdin().read_exact(&mut component)?;
    exit_when_stdin_closes()?;
    let engine = match compiler_engine(job.profile, job.stack_bytes_max, job.reservation) {
        Ok(engine) if compatibility_hash(&engine) == job.engine_hash => engine,
        _ => return Ok(ExitCode::from(VERSION_MISMATCH_EXIT_CODE)),
    };
    match engine.precompile_component(&component) {
        Ok(code) => send_reply(true, &code)?,
        Err(error) => send_reply(false, error.root_cause().to_string().as_bytes())?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Starts a thread that ends this process when standard input is closed: by the host, or because the host has ended.
fn exit_when_stdin_closes() -> io::Result<()> {
    let wait_and_exit = || {
        // The host sends nothing after the component, so the read returns when standard input is closed.
        let _ = io::stdin().read(&mut [0]);
        exit_immediately();
    };
    std::thread::Builder::new().spawn(wait_and_exit).map(|_| ())
}

#[expect(
    clippy::disallowed_methods,
    reason = "nothing else runs in a compiler process, and its compiler cannot be interrupted"
)]
fn exit_immediately() {
    std::process::exit(1);
}

/// Writes the reply to standard output: machine code, or an error message, which is cut to its maximum length.
fn send_reply(is_code: bool, body: &[u8]) -> io::Result<()> {
    let body = if is_code {
        body
    } else {
        &body[..body.len().min(REPLY_MESSAGE_BYTES)]
    };
    let header = ReplyHeader {
        is_code,
        body_bytes: body.len() as u64,
    };
    let mut stdout = io::stdout().lock();
    stdout.write_all(&header.to_bytes())?;
    stdout.write_all(body)?;
    stdout.flush()
}
