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

/// The maximum size of the diagnostics that an error contains. The end is kept, where compilers print their summary.
const OUTPUT_BYTES_KEPT: usize = 64 * 1024;

/// The destination of a program's standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stdout {
    /// It is data and is returned.
    Collect,
    /// It is diagnostics, like standard error, and is sent to the progress sink.
    Stream,
}

/// The result of a program that has exited.
#[derive(Debug)]
pub(super) struct Finished {
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
) -> Result<Finished, BuildError> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let shown = shown(&command);
    let program = command.as_std().get_program().to_string_lossy().into_owned();
    let start_error = |source| BuildError::Start { program, source };
    tracing::debug!(command = %shown, "build runs");

    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(source) => return Err(start_error(source)),
    };
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let work = async {
        let talk = stream(err, progress);
        let (data, mut output) = match stdout {
            Stdout::Collect => tokio::try_join!(collect(out), talk)?,
            Stdout::Stream => {
                let (mut first, second) = tokio::try_join!(stream(out, progress), talk)?;
                first.push_str(&second);
                (String::new(), first)
            }
        };
        let status = child.wait().await?;
        output.truncate(output.trim_end().len());
        Ok(Finished {
            status,
            stdout: data,
            output,
        })
    };
    match tokio::time::timeout(limit, work).await {
        Ok(Ok(finished)) => Ok(finished),
        Ok(Err(source)) => Err(start_error(source)),
        Err(_) => Err(BuildError::TimedOut {
            command: shown,
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
) -> Result<Finished, BuildError> {
    let shown = shown(&command);
    let finished = run(command, stdout, limit, progress).await?;
    if finished.status.success() {
        return Ok(finished);
    }
    Err(BuildError::Command {
        command: shown,
        status: finished.status.to_string(),
        output: finished.output,
    })
}

/// Returns the command line, for messages.
fn shown(command: &Command) -> String {
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
    let mut kept = VecDeque::<String>::new();
    let mut kept_bytes = 0;
    while from.read_until(b'\n', &mut line).await? > 0 {
        let text = String::from_utf8_lossy(&line).trim_end().to_owned();
        line.clear();
        progress.event(BuildEvent::Output(&text));
        kept_bytes += text.len() + 1;
        kept.push_back(text);
        while kept_bytes > OUTPUT_BYTES_KEPT
            && let Some(oldest) = kept.pop_front()
        {
            kept_bytes -= oldest.len() + 1;
        }
    }
    let mut output = String::with_capacity(kept_bytes);
    for text in kept {
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
    async fn data_and_talk_are_kept_apart() {
        let lines = Mutex::new(Vec::new());
        let sink = |event: BuildEvent<'_>| {
            if let BuildEvent::Output(line) = event {
                lines.lock().unwrap().push(line.to_owned());
            }
        };
        let finished = run(
            sh("echo data; echo talk >&2"),
            Stdout::Collect,
            Duration::from_secs(10),
            &sink,
        )
        .await
        .unwrap();
        assert_eq!(finished.stdout, "data\n");
        assert_eq!(finished.output, "talk");
        assert_eq!(*lines.lock().unwrap(), ["talk"]);
    }

    #[tokio::test]
    async fn a_program_that_takes_too_long_is_ended() {
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
    async fn only_the_end_of_a_flood_is_kept() {
        let script = "i=0; while [ $i -lt 9000 ]; do echo 0123456789; i=$((i+1)); done >&2; echo last >&2; exit 3";
        let error = run_to_success(sh(script), Stdout::Collect, Duration::from_secs(60), &Silent)
            .await
            .unwrap_err();
        let BuildError::Command { output, .. } = error else {
            panic!("{error:?}")
        };
        assert!(output.len() <= OUTPUT_BYTES_KEPT);
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
