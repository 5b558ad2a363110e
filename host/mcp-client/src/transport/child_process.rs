//! A server that runs as a child process.

use std::borrow::Cow;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::JsonRpcMessage;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};
use zeroize::Zeroizing;

use super::diagnostics::Diagnostics;
use super::line_reader::LineReader;
use super::message::{self, MessageError};
use super::program;
use super::request_limit::RequestLimit;
use toolwit_core::limits::{ByteCount, MCP_MESSAGE_BYTES_MAX};

/// The maximum number of messages that are queued for a server that does not read its input.
const UNREAD_MESSAGES_MAX: usize = 256;

/// The maximum number of lines that are not messages. Beyond it, the connection ends. Some servers print a banner.
const STRAY_LINES_MAX: usize = 1_000;

/// The time that a server has to end after its input was closed, and again after the signal to terminate.
const END_WALL_MAX: Duration = Duration::from_secs(2);

/// A process to start.
pub(crate) struct ProcessCommand {
    pub(crate) program: String,
    pub(crate) arguments: Vec<Zeroizing<String>>,
    /// The complete environment of the process.
    pub(crate) variables: Vec<(String, Zeroizing<String>)>,
    pub(crate) directory: Option<PathBuf>,
}

/// A connection to a child process by its standard input and output. Dropping it ends the process.
pub(crate) struct ChildTransport {
    output: LineReader<ChildStdout>,
    input: mpsc::Sender<Vec<u8>>,
    diagnostics: Diagnostics,
    stray_lines: usize,
    requests: RequestLimit,
    /// Whether an answer was dropped because the server does not read its input.
    has_dropped_answer: bool,
    /// Ends the connection when the transport is dropped.
    _end: DropGuard,
}

/// The reason why a message could not be sent.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SendError {
    #[error("the message cannot be written as JSON")]
    NotJson,
    #[error("the server does not read its input")]
    Unread,
    #[error("the server has closed its input")]
    Closed,
}

impl ChildTransport {
    /// Starts a process.
    ///
    /// # Errors
    /// The reason why the process did not start.
    pub(crate) fn start(process: &ProcessCommand, diagnostics: Diagnostics) -> Result<Self, String> {
        let path = process.variables.iter().find(|(name, _)| name == "PATH");
        let path = path.map(|(_, path)| path.as_str());
        let name = &process.program;
        let program = program::find(name, path, process.directory.as_deref())
            .ok_or_else(|| format!("the program `{name}` does not exist, or cannot be executed"))?;
        let mut command = Command::new(program);
        command
            .args(process.arguments.iter().map(|argument| argument.as_str()))
            .env_clear()
            .envs(process.variables.iter().map(|(name, value)| (name, value.as_str())))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        if let Some(directory) = &process.directory {
            command.current_dir(directory);
        }
        // A process group of its own, so that the children of a runner such as `npx` end with the runner.
        #[cfg(unix)]
        command.process_group(0);
        let mut child = command
            .spawn()
            .map_err(|error| format!("`{name}` cannot be started: {error}"))?;
        let (Some(stdin), Some(stdout), Some(stderr)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err("its standard streams are missing".to_owned());
        };
        let (input, messages) = mpsc::channel(UNREAD_MESSAGES_MAX);
        let end = CancellationToken::new();
        tokio::spawn(write_messages(stdin, messages, end.clone()));
        tokio::spawn(read_stderr(stderr, diagnostics.clone()));
        tokio::spawn(ProcessGroup::of(child).supervise(end.clone(), diagnostics.clone()));
        Ok(Self {
            output: LineReader::new(stdout, MCP_MESSAGE_BYTES_MAX),
            input,
            diagnostics,
            stray_lines: 0,
            requests: RequestLimit::default(),
            has_dropped_answer: false,
            _end: end.drop_guard(),
        })
    }
}

impl Transport<RoleClient> for ChildTransport {
    type Error = SendError;

    fn name() -> Cow<'static, str> {
        "child process".into()
    }

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let line = serde_json::to_vec(&item).map_err(|_| SendError::NotJson);
        let is_answer = matches!(item, JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_));
        let sent = line.and_then(|mut line| {
            line.push(b'\n');
            self.input.try_send(line).map_err(|error| match error {
                mpsc::error::TrySendError::Full(_) => SendError::Unread,
                mpsc::error::TrySendError::Closed(_) => SendError::Closed,
            })
        });
        std::future::ready(match sent {
            // Reported as sent, because the protocol library would log an error for each answer.
            Err(SendError::Unread) if is_answer => {
                if !std::mem::replace(&mut self.has_dropped_answer, true) {
                    tracing::warn!("an MCP server does not read the answers to its requests");
                }
                Ok(())
            }
            sent => sent,
        })
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let line = match self.output.next().await {
                Ok(Some(line)) => line,
                Ok(None) => return None,
                Err(error) if error.kind() == std::io::ErrorKind::InvalidData => {
                    let max = ByteCount(MCP_MESSAGE_BYTES_MAX as u64);
                    self.diagnostics
                        .record_end(format!("it sent a message of more than {max}"));
                    return None;
                }
                Err(error) => {
                    self.diagnostics
                        .record_end(format!("its output cannot be read: {error}"));
                    return None;
                }
            };
            if line.trim_ascii().is_empty() {
                continue;
            }
            match message::parse(line) {
                // A request beyond the limit is ignored.
                Ok(JsonRpcMessage::Request(_)) if !self.requests.admit() => {}
                Ok(message) => return Some(message),
                Err(error @ MessageError::TooManyParts) => {
                    self.diagnostics
                        .record_end(format!("a message cannot be used: {error}"));
                    return None;
                }
                Err(MessageError::NotJson | MessageError::NotAMessage | MessageError::TooManyRequests) => {
                    self.stray_lines += 1;
                    if self.stray_lines > STRAY_LINES_MAX {
                        let why = format!("it wrote more than {STRAY_LINES_MAX} lines that are not messages");
                        self.diagnostics.record_end(why);
                        return None;
                    }
                    tracing::debug!("an MCP server wrote a line that is not a message");
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        // Without a sender, `write_messages` writes the queued messages and then closes the input of the server.
        let (closed_input, _) = mpsc::channel(1);
        self.input = closed_input;
        Ok(())
    }
}

/// Writes messages until there are no more, a write fails, or the connection ends. Then the server's input is closed.
async fn write_messages(mut stdin: ChildStdin, mut messages: mpsc::Receiver<Vec<u8>>, end: CancellationToken) {
    loop {
        let message = tokio::select! {
            () = end.cancelled() => return,
            message = messages.recv() => message,
        };
        let Some(message) = message else { return };
        let written = tokio::select! {
            () = end.cancelled() => return,
            written = async {
                stdin.write_all(&message).await?;
                stdin.flush().await
            } => written,
        };
        if written.is_err() {
            return;
        }
    }
}

/// Reads standard error to its end, so that the server never waits for a reader.
async fn read_stderr(mut stderr: ChildStderr, diagnostics: Diagnostics) {
    let mut buffer = vec![0; 4 << 10];
    while let Ok(read) = stderr.read(&mut buffer).await {
        if read == 0 {
            return;
        }
        diagnostics.add_stderr(&buffer[..read]);
    }
}

/// A process and, on Unix, the processes of its process group. Dropping it kills those that still run.
struct ProcessGroup {
    child: Child,
    #[cfg(unix)]
    group: Option<rustix::process::Pid>,
}

impl ProcessGroup {
    fn of(child: Child) -> Self {
        Self {
            #[cfg(unix)]
            group: child
                .id()
                .and_then(|id| i32::try_from(id).ok())
                .and_then(rustix::process::Pid::from_raw),
            child,
        }
    }

    /// Waits until the process ends by itself. If the connection ends first, the input of the process is closed. A
    /// process that then does not end gets the signal to terminate (on Unix). If it still runs after that, it is
    /// killed.
    async fn supervise(mut self, end: CancellationToken, diagnostics: Diagnostics) {
        let connection_and_grace = async {
            end.cancelled().await;
            tokio::time::sleep(END_WALL_MAX).await;
        };
        tokio::select! {
            status = self.child.wait() => {
                diagnostics.record_end(match status {
                    Ok(status) => format!("its process has ended: {status}"),
                    Err(error) => format!("its process cannot be observed: {error}"),
                });
                return;
            }
            () = connection_and_grace => {}
        }
        self.terminate();
        // Dropping the group kills the processes that are left.
        drop(tokio::time::timeout(END_WALL_MAX, self.child.wait()).await);
    }

    fn terminate(&self) {
        #[cfg(unix)]
        if let Some(group) = self.group {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::TERM);
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        #[cfg(unix)]
        if let Some(group) = self.group {
            // Fails if no process of the group is left.
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
    }
}
