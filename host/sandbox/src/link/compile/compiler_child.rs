//! The compiler process: compiles one component under limits of memory and processor time.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::process::ExitCode;

use super::compile_job::{COMPILE_ARGUMENT, CompileJob, REPLY_MESSAGE_BYTES, ReplyHeader};
use super::engine::{compatibility_hash, compiler_engine};

/// The exit code for a job that this program cannot run, because the host and the program are of different versions.
const OTHER_VERSION: u8 = 2;

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
///     if let Some(exit) = toolwit_sandbox::run_compiler_if_asked() {
///         return exit;
///     }
///     // The program itself.
///     ExitCode::SUCCESS
/// }
/// ```
#[must_use]
pub fn run_compiler_if_asked() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != COMPILE_ARGUMENT {
        return None;
    }
    let exit = match read_job(arguments.next()) {
        Some(job) => limit_process(&job).and_then(|()| compile(&job)),
        None => Ok(ExitCode::from(OTHER_VERSION)),
    };
    Some(exit.unwrap_or(ExitCode::FAILURE))
}

fn read_job(argument: Option<OsString>) -> Option<CompileJob> {
    serde_json::from_str(argument?.to_str()?).ok()
}

/// Limits the resources of this process. The memory is limited only on Linux, because other systems do not enforce the limit.
#[cfg(unix)]
fn limit_process(job: &CompileJob) -> io::Result<()> {
    use rustix::process::Resource;
    lower_limit(Resource::Core, 0, 0)?;
    lower_limit(Resource::Fsize, 0, 0)?;
    #[cfg(target_os = "linux")]
    {
        /// The address space in addition to the memory limit, in bytes: for the program, and for arenas that the allocator
        /// reserves without using them.
        const RESERVED_BYTES: u64 = 4 << 30;
        let reserved = job.memory_bytes_max.saturating_add(RESERVED_BYTES);
        lower_limit(Resource::Data, job.memory_bytes_max, job.memory_bytes_max)?;
        lower_limit(Resource::As, reserved, reserved)?;
    }
    // The kernel sends SIGXCPU at the first value, and SIGKILL at the second.
    lower_limit(Resource::Cpu, job.processor_seconds_max, job.processor_seconds_max + 1)
}

/// Lowers the current and the maximum value of a limit.
#[cfg(unix)]
fn lower_limit(resource: rustix::process::Resource, current: u64, maximum: u64) -> io::Result<()> {
    let hard_limit = rustix::process::getrlimit(resource).maximum.unwrap_or(u64::MAX);
    let limit = rustix::process::Rlimit {
        current: Some(current.min(hard_limit)),
        maximum: Some(maximum.min(hard_limit)),
    };
    rustix::process::setrlimit(resource, limit)?;
    Ok(())
}

#[cfg(not(unix))]
fn limit_process(_job: &CompileJob) -> io::Result<()> {
    Ok(())
}

fn compile(job: &CompileJob) -> io::Result<ExitCode> {
    let mut component = vec![0; usize::try_from(job.component_bytes).unwrap_or(usize::MAX)];
    io::stdin().read_exact(&mut component)?;
    end_with_host()?;
    let engine = match compiler_engine(job.profile, job.stack_bytes_max) {
        Ok(engine) if compatibility_hash(&engine) == job.engine => engine,
        _ => return Ok(ExitCode::from(OTHER_VERSION)),
    };
    match engine.precompile_component(&component) {
        Ok(code) => send_reply(true, &code)?,
        Err(error) => send_reply(false, error.root_cause().to_string().as_bytes())?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Ends this process when standard input is closed: by the host, or because the host has ended.
fn end_with_host() -> io::Result<()> {
    let wait = || {
        // The host sends nothing after the component, so the read returns when standard input is closed.
        let _ = io::stdin().read(&mut [0]);
        exit_immediately();
    };
    std::thread::Builder::new().spawn(wait).map(|_| ())
}

#[expect(
    clippy::disallowed_methods,
    reason = "nothing else runs in a compiler process, and its compiler cannot be interrupted"
)]
fn exit_immediately() {
    std::process::exit(1);
}

/// Sends machine code, or the message of an error.
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
