//! The host's side of a compiler process: starts the process, passes the component to it, and reads the machine code.

use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::compile_job::{COMPILE_ARGUMENT, CompileJob, REPLY_MESSAGE_BYTES, ReplyHeader};
use super::engine::{Engine, address_space_bytes_max};
use super::host_setting::{address_space_error, check_host, thread_error};
use crate::inspect::profile::Profile;
use toolwit_core::limits::{ByteCount, EngineLimits, Span};
use toolwit_core::text::printable;
use toolwit_core::{Error, ErrorKind, ExceededLimit, Phase};

/// The memory limit of a compiler process before [`compile_job`] adds memory for its threads and the component, in bytes.
const MEMORY_BYTES_BASE: u64 = 256 << 20;

/// The additional memory for each thread, in bytes. A compiler process has one thread for each processor.
const MEMORY_BYTES_PER_THREAD: u64 = 4 << 20;

/// The additional memory for each byte of the component, in bytes. An interpreter of 18 MB needs 21 bytes of memory for each
/// byte of the component.
const MEMORY_BYTES_PER_COMPONENT_BYTE: u64 = 64;

/// The limit of processor time before [`compile_job`] adds time for the component, in seconds.
const PROCESSOR_SECONDS_BASE: u64 = 20;

/// The additional processor time for each MiB of the component, in seconds. Compiling an interpreter of 18 MB takes two seconds
/// in total.
const PROCESSOR_SECONDS_PER_MIB: u64 = 20;

/// The maximum size of the machine code for each byte of the component, in bytes, in addition to [`CODE_BYTES_BASE`]. The code of
/// a large component is two to four times as large as the component.
const CODE_BYTES_PER_COMPONENT_BYTE: u64 = 32;

/// The maximum size of the machine code of a tiny component, in bytes. The code of a small component can be much larger than the
/// component.
const CODE_BYTES_BASE: u64 = 16 << 20;

/// Compiles a component in a process that runs `program`, and returns the machine code. Dropping the future ends the process.
///
/// # Errors
/// [`ErrorKind::Unsupported`] if the compiler refuses the component, exceeds a limit, crashes or sends an invalid reply;
/// [`ErrorKind::Internal`] if the program cannot be started, is not a compiler of this version, or ends with an I/O error.
pub(super) async fn compile(
    program: &Path,
    engine: &Engine,
    profile: Profile,
    component: &[u8],
    limits: &EngineLimits,
) -> Result<Vec<u8>, Error> {
    let job = compile_job(engine, profile, component.len() as u64, limits);
    let mut child = start(program, &job).map_err(|error| not_started(program, error))?;
    let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(not_started(program, io::Error::other("it has no standard streams")));
    };
    let code_bytes_max = code_bytes_max(component.len() as u64, limits);
    let deadline = tokio::time::Instant::now() + limits.compile_wall_max;
    let exchange = exchange(stdin, stdout, component, code_bytes_max);
    let reply = match tokio::time::timeout_at(deadline, exchange).await {
        Ok(reply) => reply,
        Err(_) => return Err(too_slow(limits.compile_wall_max)),
    };
    match reply {
        Ok(CompilerReply::Code(code)) => Ok(code),
        Ok(CompilerReply::Refused(message)) => Err(Error::new(
            ErrorKind::Unsupported,
            Phase::Load,
            format!("it could not be compiled: {message}"),
        )),
        Ok(CompilerReply::TooLarge(bytes)) => Err(too_large(bytes, code_bytes_max)),
        Err(error) => {
            // The program may have closed its output and still run.
            let end = tokio::time::timeout_at(deadline, ended_without_reply(child, &job, error)).await;
            Err(end.unwrap_or_else(|_| too_slow(limits.compile_wall_max)))
        }
    }
}

fn compile_job(engine: &Engine, profile: Profile, component_bytes: u64, limits: &EngineLimits) -> CompileJob {
    let threads = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let memory_bytes = MEMORY_BYTES_PER_COMPONENT_BYTE
        .saturating_mul(component_bytes)
        .saturating_add(MEMORY_BYTES_BASE + threads * MEMORY_BYTES_PER_THREAD);
    CompileJob {
        profile,
        stack_bytes_max: limits.stack_bytes_max,
        reservation: engine.reservation,
        component_bytes,
        engine_hash: engine.compatibility_hash(),
        memory_bytes_max: memory_bytes.min(limits.compile_memory_bytes_max),
        processor_seconds_max: PROCESSOR_SECONDS_BASE + component_bytes.div_ceil(1 << 20) * PROCESSOR_SECONDS_PER_MIB,
    }
}

/// Returns the maximum size of the machine code of a component, in bytes.
fn code_bytes_max(component_bytes: u64, limits: &EngineLimits) -> u64 {
    let bytes_max = component_bytes
        .saturating_mul(CODE_BYTES_PER_COMPONENT_BYTE)
        .saturating_add(CODE_BYTES_BASE);
    bytes_max.min(limits.code_bytes_max)
}

fn start(program: &Path, job: &CompileJob) -> io::Result<Child> {
    Command::new(program)
        .arg(COMPILE_ARGUMENT)
        .arg(serde_json::to_string(job)?)
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
}

/// The reply of a compiler process.
enum CompilerReply {
    Code(Vec<u8>),
    /// The message of the compiler, which refused the component.
    Refused(String),
    /// The size of machine code that exceeds the limit, in bytes.
    TooLarge(u64),
}

/// Passes the component and reads the reply. Keeps standard input open until the reply is complete, because the process ends when
/// its standard input is closed.
async fn exchange(
    mut stdin: ChildStdin,
    mut stdout: ChildStdout,
    component: &[u8],
    code_bytes_max: u64,
) -> io::Result<CompilerReply> {
    let write = async {
        // Writing fails if the process has ended. Reading the reply then reports the error.
        let _: io::Result<()> = stdin.write_all(component).await;
        stdin
    };
    let (stdin, reply) = tokio::join!(write, read_reply(&mut stdout, code_bytes_max));
    drop(stdin);
    reply
}

async fn read_reply(stdout: &mut ChildStdout, code_bytes_max: u64) -> io::Result<CompilerReply> {
    let mut header = [0; ReplyHeader::BYTES];
    stdout.read_exact(&mut header).await?;
    let invalid = |reason: &str| io::Error::new(io::ErrorKind::InvalidData, reason.to_owned());
    let header = ReplyHeader::from_bytes(header).ok_or_else(|| invalid("its reply has an unknown format"))?;
    if header.is_code && header.body_bytes > code_bytes_max {
        return Ok(CompilerReply::TooLarge(header.body_bytes));
    }
    if !header.is_code && header.body_bytes > REPLY_MESSAGE_BYTES as u64 {
        return Err(invalid("its message is too long"));
    }
    // The length in the header is untrusted, so `read_to_end` allocates memory only as the bytes arrive.
    let mut reply = Vec::new();
    stdout.take(header.body_bytes).read_to_end(&mut reply).await?;
    if reply.len() as u64 != header.body_bytes {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(if header.is_code {
        CompilerReply::Code(reply)
    } else {
        CompilerReply::Refused(printable(&String::from_utf8_lossy(&reply)))
    })
}

fn not_started(program: &Path, error: io::Error) -> Error {
    // The system returns this error at its limit of processes and threads.
    if error.kind() == io::ErrorKind::WouldBlock {
        return thread_error(&error);
    }
    let message = format!("the compiler process `{}` could not be started", program.display());
    Error::new(ErrorKind::Internal, Phase::Load, message)
        .with_suggestion("check the program of `Compiler::Process`")
        .with_source(error)
}

fn too_slow(wall_max: Duration) -> Error {
    let message = format!("compiling it takes longer than {}", Span(wall_max));
    let ms = u64::try_from(wall_max.as_millis()).unwrap_or(u64::MAX);
    unsupported(message).with_limit(ExceededLimit::new("compile_wall_max", ms, ms))
}

fn too_large(bytes: u64, bytes_max: u64) -> Error {
    let message = format!(
        "its machine code takes {}, more than {}",
        ByteCount(bytes),
        ByteCount(bytes_max)
    );
    unsupported(message).with_limit(ExceededLimit::new("code_bytes_max", bytes_max, bytes))
}

/// Returns the error for a compiler process that sent no valid reply. `error` is the error of reading the reply.
async fn ended_without_reply(mut child: Child, job: &CompileJob, error: io::Error) -> Error {
    if error.kind() == io::ErrorKind::InvalidData {
        return unsupported(format!("its compiler process failed: {error}"));
    }
    match child.wait().await {
        Ok(status) if has_exceeded_processor_time(status) => unsupported(format!(
            "compiling it takes more than {} s of processor time",
            job.processor_seconds_max
        )),
        Ok(status) if status.code().is_none() && has_too_little_address_space(job) => {
            address_space_error().with_source(status.to_string())
        }
        Ok(status) if status.code().is_none() => unsupported(format!(
            "compiling it takes more than {} of memory, or crashes the compiler",
            ByteCount(job.memory_bytes_max)
        ))
        .with_limit(ExceededLimit::new(
            "compile_memory_bytes_max",
            job.memory_bytes_max,
            job.memory_bytes_max,
        ))
        .with_source(status.to_string()),
        // A setting of the system, such as a limit of threads, can end the process as well.
        Ok(status) => check_host().pop().unwrap_or_else(|| {
            Error::new(
                ErrorKind::Internal,
                Phase::Load,
                format!("the compiler process failed, or is of another version: it ended with {status}"),
            )
            .with_suggestion("call `run_compiler_if_asked` at the start of `main` of the program")
        }),
        Err(error) => Error::new(
            ErrorKind::Internal,
            Phase::Load,
            "the end of the compiler process could not be awaited",
        )
        .with_source(error),
    }
}

fn unsupported(message: String) -> Error {
    Error::new(ErrorKind::Unsupported, Phase::Load, message).with_suggestion("report it to the author of the plugin")
}

/// Returns whether the address space of this process, and so of its compiler process, is smaller than the memory that the compiler
/// process may use.
fn has_too_little_address_space(job: &CompileJob) -> bool {
    address_space_bytes_max().is_some_and(|bytes| bytes < job.memory_bytes_max)
}

#[cfg(unix)]
fn has_exceeded_processor_time(status: ExitStatus) -> bool {
    use std::os::unix::process::ExitStatusExt;
    status.signal() == Some(rustix::process::Signal::XCPU.as_raw())
}

#[cfg(not(unix))]
fn has_exceeded_processor_time(_status: ExitStatus) -> bool {
    false
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn too_much_machine_code_is_reported_with_the_limit_and_the_size() {
        let error = too_large(300, 200);
        let limit = error.limit.as_ref().unwrap();
        assert_eq!((limit.limit, limit.max, limit.used), ("code_bytes_max", 200, 300));
    }
}
