//! Runs an external program of a build, with a time limit. Dropping the future of [`run`] kills the program and the
//! programs that it started.

use std::{
    collections::VecDeque,
    ffi::OsStr,
    io,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader},
    process::{Child, Command},
};

use super::process_group::ProcessGroup;
use super::{BuildError, BuildEvent, Progress};

/// The maximum size of collected stdout. A cargo build of hundreds of crates reports less than 1 MiB.
const STDOUT_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// The maximum size of the diagnostics in an error. Longer diagnostics lose their first lines, because compilers print
/// their summary at the end.
const DIAGNOSTICS_BYTES_MAX: usize = 64 * 1024;

/// The maximum length of a forwarded line. A longer line is forwarded in parts.
const LINE_BYTES_MAX: u64 = 16 * 1024;

/// The maximum time for which the descendants of a program may keep its output open after the program has exited.
const DESCENDANT_OUTPUT_LIMIT: Duration = Duration::from_secs(2);

/// The destination of a program's standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stdout {
    /// The output is data and is returned.
    Collect,
    /// The output is diagnostics, like standard error, and is sent to the progress sink.
    Stream,
}

/// The result of a program that has exited.
#[derive(Debug)]
pub(super) struct FinishedCommand {
    /// The exit status.
    pub(super) status: ExitStatus,
    /// The standard output, if it was collected.
    pub(super) stdout: String,
    /// The last lines of the diagnostics: of standard output if it was streamed, followed by standard error.
    pub(super) diagnostics: String,
}

/// Runs `command` until it exits and streams its diagnostics.
///
/// The program has no standard input. It is killed when the returned future is dropped or after `limit`, so the files
/// that it writes may be incomplete. On Unix, its process group is killed too, even if the program itself has exited.
/// The group contains the programs that the program started, unless they have left the group.
///
/// # Errors
/// [`BuildError::Start`] if the program cannot be started, [`BuildError::Output`] if its output cannot be read or is
/// too large, and [`BuildError::TimedOut`]. An exit status other than success is not an error.
pub(super) async fn run(
    mut command: Command,
    stdout: Stdout,
    limit: Duration,
    progress: &dyn Progress,
) -> Result<FinishedCommand, BuildError> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    #[cfg(unix)]
    command.process_group(0);
    let command_line = command_line(&command);
    let program = command.as_std().get_program().to_string_lossy().into_owned();
    tracing::debug!(command = %command_line, "a build command starts");

    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(source) => return Err(BuildError::Start { program, source }),
    };
    let group = ProcessGroup::of(&child);
    let output = read_output(child.stdout.take(), child.stderr.take(), stdout, progress);
    match tokio::time::timeout(limit, wait_for_exit(&mut child, &group, output)).await {
        Ok(Ok((status, (stdout, diagnostics)))) => Ok(FinishedCommand {
            status,
            stdout,
            diagnostics,
        }),
        Ok(Err(source)) => Err(BuildError::Output { program, source }),
        Err(_) => Err(BuildError::TimedOut {
            command: command_line,
            limit_s: limit.as_secs(),
        }),
    }
}

/// Reads standard output and standard error to their ends. Returns the collected standard output, which is empty if it
/// was streamed, and the last lines of the diagnostics.
async fn read_output(
    stdout_pipe: Option<impl AsyncRead + Unpin>,
    stderr_pipe: Option<impl AsyncRead + Unpin>,
    destination: Stdout,
    progress: &dyn Progress,
) -> io::Result<(String, String)> {
    let stderr = stream_lines(stderr_pipe, progress);
    let (collected, diagnostics) = match destination {
        Stdout::Collect => tokio::try_join!(collect(stdout_pipe, STDOUT_BYTES_MAX), stderr)?,
        Stdout::Stream => {
            let (out_text, err_text) = tokio::try_join!(stream_lines(stdout_pipe, progress), stderr)?;
            (String::new(), out_text + &err_text)
        }
    };
    Ok((
        collected,
        last_lines(diagnostics.trim_end(), DIAGNOSTICS_BYTES_MAX).to_owned(),
    ))
}

/// Waits until the program has exited and its output has ended. After the exit, descendants that keep the output open
/// for longer than [`DESCENDANT_OUTPUT_LIMIT`] are killed.
async fn wait_for_exit<T>(
    child: &mut Child,
    group: &ProcessGroup,
    output: impl Future<Output = io::Result<T>>,
) -> io::Result<(ExitStatus, T)> {
    let mut output = std::pin::pin!(output);
    tokio::select! {
        output = &mut output => {
            let output = output?;
            Ok((child.wait().await?, output))
        }
        status = child.wait() => {
            let status = status?;
            let output = if let Ok(output) = tokio::time::timeout(DESCENDANT_OUTPUT_LIMIT, &mut output).await {
                output?
            } else {
                group.kill();
                output.await?
            };
            Ok((status, output))
        }
    }
}

/// Runs a command like [`run`], and returns [`BuildError::Command`] if the exit status is not success.
pub(super) async fn run_to_success(
    command: Command,
    stdout: Stdout,
    limit: Duration,
    progress: &dyn Progress,
) -> Result<FinishedCommand, BuildError> {
    let command_line = command_line(&command);
    let finished = run(command, stdout, limit, progress).await?;
    if finished.status.success() {
        return Ok(finished);
    }
    Err(BuildError::Command {
        command: command_line,
        status: finished.status.to_string(),
        output: finished.diagnostics,
    })
}

/// Returns the command line, for messages.
fn command_line(command: &Command) -> String {
    let command = command.as_std();
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
}

/// Reads a pipe to its end. Output of more than `bytes_max` bytes is an error.
async fn collect(pipe: Option<impl AsyncRead + Unpin>, bytes_max: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        pipe.take(bytes_max + 1).read_to_end(&mut bytes).await?;
    }
    if bytes.len() as u64 > bytes_max {
        return Err(io::Error::other(format!("the output is larger than {bytes_max} bytes")));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Forwards each line to the progress sink as it arrives, and returns the last lines that fit into
/// [`DIAGNOSTICS_BYTES_MAX`].
async fn stream_lines(pipe: Option<impl AsyncRead + Unpin>, progress: &dyn Progress) -> io::Result<String> {
    let Some(pipe) = pipe else { return Ok(String::new()) };
    let mut reader = BufReader::new(pipe);
    let mut line = Vec::new();
    let mut last_lines = VecDeque::<String>::new();
    let mut last_lines_bytes = 0;
    while (&mut reader).take(LINE_BYTES_MAX).read_until(b'\n', &mut line).await? > 0 {
        let text = String::from_utf8_lossy(&line).trim_end().to_owned();
        line.clear();
        progress.event(BuildEvent::Output(&text));
        last_lines_bytes += text.len() + 1;
        last_lines.push_back(text);
        while last_lines_bytes > DIAGNOSTICS_BYTES_MAX
            && let Some(oldest) = last_lines.pop_front()
        {
            last_lines_bytes -= oldest.len() + 1;
        }
    }
    let mut output = String::with_capacity(last_lines_bytes);
    for text in last_lines {
        output.push_str(&text);
        output.push('\n');
    }
    Ok(output)
}

/// Returns the text if it has at most `bytes_max` bytes, otherwise the last complete lines that fit.
fn last_lines(text: &str, bytes_max: usize) -> &str {
    let excess = text.len().saturating_sub(bytes_max);
    if excess == 0 {
        return text;
    }
    let line_end = text.as_bytes()[excess..].iter().position(|byte| *byte == b'\n');
    line_end.map_or("", |end| &text[excess + end + 1..])
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::Silent;

    fn sh(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[tokio::test]
    async fn output_and_diagnostics_are_separate() {
        let lines = Mutex::new(Vec::new());
        let sink = |event: BuildEvent<'_>| {
            if let BuildEvent::Output(line) = event {
                lines.lock().unwrap().push(line.to_owned());
            }
        };
        let finished = run(
            sh("echo data; echo diagnostics >&2"),
            Stdout::Collect,
            Duration::from_secs(10),
            &sink,
        )
        .await
        .unwrap();
        assert_eq!(finished.stdout, "data\n");
        assert_eq!(finished.diagnostics, "diagnostics");
        assert_eq!(*lines.lock().unwrap(), ["diagnostics"]);
    }

    #[tokio::test]
    async fn a_program_is_stopped_at_its_time_limit() {
        let error = run(
            sh("exec sleep 600"),
            Stdout::Collect,
            Duration::from_millis(50),
            &Silent,
        )
        .await
        .unwrap_err();
        assert!(matches!(error, BuildError::TimedOut { .. }), "{error:?}");
    }

    #[tokio::test]
    async fn long_diagnostics_are_truncated_at_the_start() {
        let script = "i=0; while [ $i -lt 9000 ]; do echo 0123456789; i=$((i+1)); done >&2; echo last >&2; exit 3";
        let error = run_to_success(sh(script), Stdout::Collect, Duration::from_secs(60), &Silent)
            .await
            .unwrap_err();
        let BuildError::Command { output, .. } = error else {
            panic!("{error:?}")
        };
        assert!(output.len() <= DIAGNOSTICS_BYTES_MAX);
        assert!(output.ends_with("\nlast"));
    }

    #[tokio::test]
    async fn a_line_without_an_end_is_forwarded_in_parts() {
        let longest_and_total = Mutex::new((0, 0));
        let sink = |event: BuildEvent<'_>| {
            if let BuildEvent::Output(line) = event {
                let mut lengths = longest_and_total.lock().unwrap();
                *lengths = (lengths.0.max(line.len()), lengths.1 + line.len());
            }
        };
        let script = "head -c 3000000 /dev/zero | tr '\\0' x";
        let finished = run(sh(script), Stdout::Stream, Duration::from_secs(60), &sink)
            .await
            .unwrap();
        let (longest, total) = *longest_and_total.lock().unwrap();
        assert_eq!((longest as u64, total), (LINE_BYTES_MAX, 3_000_000));
        let diagnostics_bytes = finished.diagnostics.len();
        assert!(
            (1..=DIAGNOSTICS_BYTES_MAX).contains(&diagnostics_bytes),
            "{diagnostics_bytes}"
        );
    }

    #[tokio::test]
    async fn diagnostics_of_both_outputs_together_are_truncated() {
        let script = "seq 20000; seq 20000 >&2; echo last >&2";
        let finished = run(sh(script), Stdout::Stream, Duration::from_secs(60), &Silent)
            .await
            .unwrap();
        assert!(
            finished.diagnostics.len() <= DIAGNOSTICS_BYTES_MAX,
            "{}",
            finished.diagnostics.len()
        );
        assert!(finished.diagnostics.ends_with("\nlast"));
    }

    #[tokio::test]
    async fn collected_output_over_the_limit_is_an_error() {
        assert_eq!(collect(Some(&b"data"[..]), 4).await.unwrap(), "data");
        assert!(collect(Some(&b"data+"[..]), 4).await.is_err());
        let script = format!("head -c {} /dev/zero", STDOUT_BYTES_MAX + 1);
        let error = run(sh(&script), Stdout::Collect, Duration::from_secs(60), &Silent)
            .await
            .unwrap_err();
        assert!(
            matches!(&error, BuildError::Output { program, .. } if program == "sh"),
            "{error:?}"
        );
    }

    /// Creates a named pipe. Returns a script that starts a background program with the pipe open for writing, and a
    /// task that reads the pipe until that program has exited.
    #[cfg(unix)]
    fn script_with_pipe(directory: &std::path::Path) -> (String, tokio::task::JoinHandle<io::Result<Vec<u8>>>) {
        let pipe = directory.join("pipe");
        assert!(
            std::process::Command::new("mkfifo")
                .arg(&pipe)
                .status()
                .unwrap()
                .success()
        );
        let script = format!("sleep 300 > '{}' &", pipe.display());
        (script, tokio::task::spawn_blocking(move || std::fs::read(pipe)))
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn background_programs_of_a_stopped_program_are_killed() {
        let directory = tempfile::tempdir().unwrap();
        let (script, pipe_reader) = script_with_pipe(directory.path());
        let script = format!("{script} wait");
        let error = run(sh(&script), Stdout::Collect, Duration::from_secs(1), &Silent)
            .await
            .unwrap_err();
        assert!(matches!(error, BuildError::TimedOut { .. }), "{error:?}");
        tokio::time::timeout(Duration::from_secs(60), pipe_reader)
            .await
            .unwrap()
            .unwrap()
            .unwrap();
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn background_programs_of_a_finished_program_are_killed_and_do_not_delay_the_result() {
        let directory = tempfile::tempdir().unwrap();
        let (script, pipe_reader) = script_with_pipe(directory.path());
        // The background program also keeps standard error open.
        let finished = run(
            sh(&format!("{script} echo data")),
            Stdout::Collect,
            Duration::from_secs(60),
            &Silent,
        )
        .await;
        let finished = finished.unwrap();
        assert_eq!((finished.stdout.as_str(), finished.status.success()), ("data\n", true));
        tokio::time::timeout(Duration::from_secs(60), pipe_reader)
            .await
            .unwrap()
            .unwrap()
            .unwrap();
    }

    #[tokio::test]
    async fn the_error_for_a_missing_program_names_it() {
        let error = run(
            Command::new("no-such-program"),
            Stdout::Stream,
            Duration::from_secs(1),
            &Silent,
        )
        .await;
        assert!(matches!(error, Err(BuildError::Start { program, .. }) if program == "no-such-program"));
    }
}
