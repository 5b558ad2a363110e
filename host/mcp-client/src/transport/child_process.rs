//! A server that runs as a child process.

use std::borrow::Cow;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{JsonRpcMessage, RequestId, ServerJsonRpcMessage};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};
use zeroize::Zeroizing;

use super::diagnostics::Diagnostics;
use super::line_reader::LineReader;
use super::message::MessageError;
use super::program;
use super::rehearsed_answer::RehearsedAnswer;
use super::request_limit::RequestLimit;
use super::unusable_answer::{UnansweredRequests, parse_line};
use toolwit_core::limits::{ByteCount, MCP_MESSAGE_BYTES_MAX};

/// The maximum number of messages in the queue for a server that does not read its input.
const UNREAD_MESSAGES_MAX: usize = 256;

/// The maximum number of lines that are not messages, after which the connection ends. The limit is not 0, because some
/// servers print a banner.
const STRAY_LINES_MAX: usize = 1_000;

/// The time in which a process must exit after its input was closed, and again after the signal SIGTERM.
const EXIT_WALL_MAX: Duration = Duration::from_secs(2);

/// The program, arguments, environment and directory of a process to start.
pub(crate) struct ProcessCommand {
    pub(crate) program: String,
    pub(crate) arguments: Vec<Zeroizing<String>>,
    /// The complete environment of the process.
    pub(crate) variables: Vec<(String, Zeroizing<String>)>,
    /// The working directory. `None` for the directory of this process.
    pub(crate) directory: Option<PathBuf>,
}

/// A connection to a child process by its standard input and output. Dropping it ends the process.
pub(crate) struct ChildTransport {
    output: LineReader<ChildStdout>,
    /// The queue of the messages that [`write_messages`] writes to the input of the process.
    input: mpsc::Sender<Vec<u8>>,
    diagnostics: Diagnostics,
    /// The number of lines that were not messages.
    stray_lines: usize,
    request_limit: RequestLimit,
    unanswered: UnansweredRequests,
    /// An answer that the server has given before its request.
    rehearsed: Option<RehearsedAnswer>,
    /// The answer that [`Transport::receive`] returns next.
    next_answer: Option<ServerJsonRpcMessage>,
    /// A request whose answer is not returned.
    ignored_request: Option<RequestId>,
    /// Whether an answer was dropped because the server does not read its input.
    has_dropped_answer: bool,
    /// Ends the tasks of the connection when the transport is dropped.
    _end_on_drop: DropGuard,
}

/// The reason why a message could not be sent.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SendError {
    #[error("the message cannot be written as JSON")]
    NotJson,
    /// The queue of messages is full.
    #[error("the server does not read its input")]
    QueueFull,
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
            if !directory.is_dir() {
                return Err(format!("its directory `{}` does not exist", directory.display()));
            }
            command.current_dir(directory);
        }
        // The process leads a new process group, so that the children of a runner such as `npx` end with the runner.
        #[cfg(unix)]
        command.process_group(0);
        let mut child = command
            .spawn()
            .map_err(|error| format!("`{name}` cannot be started: {error}"))?;
        let (Some(stdin), Some(stdout), Some(stderr)) = (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err("its standard streams are missing".to_owned());
        };
        let (input, queued_messages) = mpsc::channel(UNREAD_MESSAGES_MAX);
        let connection_end = CancellationToken::new();
        tokio::spawn(write_messages(stdin, queued_messages, connection_end.clone()));
        tokio::spawn(read_stderr(stderr, diagnostics.clone()));
        tokio::spawn(ProcessGroup::new(child).supervise(connection_end.clone(), diagnostics.clone()));
        Ok(Self {
            output: LineReader::new(stdout, MCP_MESSAGE_BYTES_MAX),
            input,
            diagnostics,
            stray_lines: 0,
            request_limit: RequestLimit::default(),
            unanswered: UnansweredRequests::default(),
            rehearsed: None,
            next_answer: None,
            ignored_request: None,
            has_dropped_answer: false,
            _end_on_drop: connection_end.drop_guard(),
        })
    }
}

impl ChildTransport {
    /// Keeps an answer of the server for the next request that it answers.
    pub(crate) fn rehearse(&mut self, answer: RehearsedAnswer) {
        self.rehearsed = Some(answer);
    }

    /// Does not return the answer to a request, should it still come.
    pub(crate) fn ignore_answer(&mut self, id: RequestId) {
        self.unanswered.forget(&id);
        self.ignored_request = Some(id);
    }

    fn is_ignored(&self, message: &ServerJsonRpcMessage) -> bool {
        let id = match message {
            JsonRpcMessage::Response(response) => Some(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            _ => None,
        };
        id.is_some() && id == self.ignored_request.as_ref()
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
        if let JsonRpcMessage::Request(request) = &item
            && let Some(answer) = self.rehearsed.take_if(|answer| answer.answers(&item))
        {
            self.next_answer = Some(answer.with_id(request.id.clone()));
            return std::future::ready(Ok(()));
        }
        let line = serde_json::to_vec(&item).map_err(|_| SendError::NotJson);
        let is_answer = matches!(item, JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_));
        self.unanswered.record_sent(&item);
        let queued = line.and_then(|mut line| {
            line.push(b'\n');
            self.input.try_send(line).map_err(|error| match error {
                mpsc::error::TrySendError::Full(_) => SendError::QueueFull,
                mpsc::error::TrySendError::Closed(_) => SendError::Closed,
            })
        });
        std::future::ready(match queued {
            // The dropped answer is reported as sent. Otherwise, the protocol library would log an error for each
            // dropped answer.
            Err(SendError::QueueFull) if is_answer => {
                if !std::mem::replace(&mut self.has_dropped_answer, true) {
                    tracing::warn!("an MCP server does not read the answers to its requests");
                }
                Ok(())
            }
            queued => queued,
        })
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        if let Some(answer) = self.next_answer.take() {
            return Some(answer);
        }
        loop {
            let line = match self.output.next().await {
                Ok(Some(line)) => line,
                Ok(None) => return None,
                Err(error) if error.kind() == std::io::ErrorKind::InvalidData => {
                    let max = ByteCount(MCP_MESSAGE_BYTES_MAX as u64);
                    self.diagnostics
                        .record_end_reason(format!("it sent a message of more than {max}"));
                    return None;
                }
                Err(error) => {
                    self.diagnostics
                        .record_end_reason(format!("its output cannot be read: {error}"));
                    return None;
                }
            };
            if line.trim_ascii().is_empty() {
                continue;
            }
            let unusable = match parse_line(line) {
                // A request beyond the limit is ignored.
                Ok(JsonRpcMessage::Request(_)) if !self.request_limit.admit() => continue,
                Ok(mut message) => {
                    self.unanswered.record_received(&mut message);
                    if self.is_ignored(&message) {
                        continue;
                    }
                    return Some(message);
                }
                Err(unusable) => unusable,
            };
            if let Some(answer) = self.unanswered.answer_to(&unusable) {
                return Some(answer);
            }
            match unusable.error {
                error @ MessageError::TooManyParts => {
                    self.diagnostics
                        .record_end_reason(format!("a message cannot be used: {error}"));
                    return None;
                }
                _ => {
                    self.stray_lines += 1;
                    if self.stray_lines > STRAY_LINES_MAX {
                        let why = format!("it wrote more than {STRAY_LINES_MAX} lines that are not messages");
                        self.diagnostics.record_end_reason(why);
                        return None;
                    }
                    tracing::debug!("an MCP server wrote a line that is not a message");
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        // The replacement drops the sender of the queue. `write_messages` then writes the queued messages and closes the
        // input of the server.
        let (closed_input, _) = mpsc::channel(1);
        self.input = closed_input;
        Ok(())
    }
}

/// Writes queued messages to the server's input, until the queue has no sender, a write fails, or the connection ends.
/// Then closes the server's input.
async fn write_messages(
    mut stdin: ChildStdin,
    mut queued_messages: mpsc::Receiver<Vec<u8>>,
    connection_end: CancellationToken,
) {
    loop {
        let message = tokio::select! {
            () = connection_end.cancelled() => return,
            message = queued_messages.recv() => message,
        };
        let Some(message) = message else { return };
        let written = tokio::select! {
            () = connection_end.cancelled() => return,
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

/// Reads standard error to its end, so that a full pipe does not block the server.
async fn read_stderr(mut stderr: ChildStderr, diagnostics: Diagnostics) {
    let mut buffer = vec![0; 4 << 10];
    while let Ok(byte_count) = stderr.read(&mut buffer).await {
        if byte_count == 0 {
            break;
        }
        diagnostics.add_stderr(&buffer[..byte_count]);
    }
    diagnostics.record_stderr_end();
}

/// A process and, on Unix, the process group that it leads. Dropping this value kills all processes that still run.
struct ProcessGroup {
    child: Child,
    #[cfg(unix)]
    group: Option<rustix::process::Pid>,
}

impl ProcessGroup {
    fn new(child: Child) -> Self {
        Self {
            #[cfg(unix)]
            group: child
                .id()
                .and_then(|id| i32::try_from(id).ok())
                .and_then(rustix::process::Pid::from_raw),
            child,
        }
    }

    /// Waits until the process exits. If the connection ends first, [`write_messages`] closes the input of the process. A
    /// process that does not exit within [`EXIT_WALL_MAX`] then gets SIGTERM (on Unix). A process that does not exit
    /// within the same time after SIGTERM is killed.
    async fn supervise(mut self, connection_end: CancellationToken, diagnostics: Diagnostics) {
        let exit_time_over = async {
            connection_end.cancelled().await;
            tokio::time::sleep(EXIT_WALL_MAX).await;
        };
        tokio::select! {
            status = self.child.wait() => {
                diagnostics.record_end_reason(match status {
                    Ok(status) => format!("its process has ended: {status}"),
                    Err(error) => format!("its process cannot be observed: {error}"),
                });
                return;
            }
            () = exit_time_over => {}
        }
        self.terminate();
        // At the end of this function, dropping `self` kills the processes that still run.
        drop(tokio::time::timeout(EXIT_WALL_MAX, self.child.wait()).await);
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
            // The error means that no process of the group runs.
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
    }
}
