//! Runs an external program of a build: its output is streamed, its time is limited, and it is killed on drop.

use std::{
    collections::VecDeque,
    ffi::OsStr,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader},
    process::Command,
};

use super::{BuildError, BuildEvent, Progress};

/// The maximum size of collected stdout. A cargo build of hundreds of crates reports less than 1 MiB.
const STDOUT_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// The maximum size of the diagnostics in an error. Longer ones are truncated at the start, because compilers print their
/// summary at the end.
const DIAGNOSTICS_BYTES_MAX: usize = 64 * 1024;

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
    /// The end of its diagnostics.
    pub(super) output: String,
}

/// Runs `command` until it exits and streams its diagnostics.
///
/// The program has no standard input. It is killed when the returned future is dropped or after `limit`, so its output
/// files may be incomplete: it must write to temporary files, which the caller moves into place.
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
    let command_line = command_line(&command);
    let program = command.as_std().get_program().to_string_lossy().into_owned();
    let start_error = |source| BuildError::Start { program, source };
    tracing::debug!(command = %command_line, "a build command starts");

    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(source) => return Err(start_error(source)),
    };
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let work = async {
        let diagnostics = stream(err, progress);
        let (data, mut output) = match stdout {
            Stdout::Collect => tokio::try_join!(collect(out), diagnostics)?,
            Stdout::Stream => {
                let (mut first, second) = tokio::try_join!(stream(out, progress), diagnostics)?;
                first.push_str(&second);
                (String::new(), first)
            }
        };
        let status = child.wait().await?;
        output.truncate(output.trim_end().len());
        Ok(FinishedCommand {
            status,
            stdout: data,
            output,
        })
    };
    match tokio::time::timeout(limit, work).await {
        Ok(Ok(finished)) => Ok(finished),
        Ok(Err(source)) => Err(start_error(source)),
        Err(_) => Err(BuildError::TimedOut {
            command: command_line,
            limit_s: limit.as_secs(),
        }),
    }
}

/// Like [`run`], but returns an error if the exit status is not success.
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
        output: finished.output,
    })
}

/// Returns the command line, for messages.
fn command_line(command: &Command) -> String {
    let command = command.as_std();
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
}

async fn collect(from: Option<impl AsyncRead + Unpin>) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    if let Some(from) = from {
        from.take(STDOUT_BYTES_MAX).read_to_end(&mut bytes).await?;
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Forwards each line to the progress sink as it arrives, and returns the last lines.
async fn stream(from: Option<impl AsyncRead + Unpin>, progress: &dyn Progress) -> std::io::Result<String> {
    let Some(from) = from else { return Ok(String::new()) };
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    let mut last_lines = VecDeque::<String>::new();
    let mut last_lines_bytes = 0;
    while from.read_until(b'\n', &mut line).await? > 0 {
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
        assert_eq!(finished.output, "diagnostics");
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
    async fn a_missing_program_is_named() {
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
