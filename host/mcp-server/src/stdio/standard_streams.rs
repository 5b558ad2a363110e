//! Standard input and output as asynchronous streams, without additional threads where that is possible.

use tokio::io::{AsyncRead, AsyncWrite};

/// The input of a client.
pub(super) type Input = Box<dyn AsyncRead + Send + Unpin>;

/// The output to a client.
pub(super) type Output = Box<dyn AsyncWrite + Send + Unpin>;

/// Returns standard input. It is usually a pipe or a socket, for which the event loop can wait. For other files, Tokio
/// reads on additional threads, which takes longer. This function must be called in the Tokio runtime that reads the
/// input.
pub(super) fn standard_input() -> Input {
    #[cfg(unix)]
    if let Some(input) = unix::input() {
        return input;
    }
    Box::new(tokio::io::stdin())
}

/// Returns standard output, without additional threads if it is a pipe or a socket; see [`standard_input`].
pub(super) fn standard_output() -> Output {
    #[cfg(unix)]
    if let Some(output) = unix::output() {
        return output;
    }
    Box::new(tokio::io::stdout())
}

#[cfg(unix)]
mod unix {
    use std::fs::File;
    use std::io;
    use std::os::fd::{AsFd, OwnedFd};
    use std::os::unix::fs::{FileTypeExt, MetadataExt};

    use tokio::net::UnixStream;
    use tokio::net::unix::pipe;

    use super::{Input, Output};

    /// Returns standard input if it is a pipe or a socket.
    pub(super) fn input() -> Option<Input> {
        let file = duplicate(io::stdin()).ok()?;
        let file_type = file.metadata().ok()?.file_type();
        if file_type.is_fifo() {
            return Some(Box::new(pipe::Receiver::from_file(file).ok()?));
        }
        file_type
            .is_socket()
            .then(|| socket(file))
            .flatten()
            .map(|socket| Box::new(socket) as Input)
    }

    /// Returns standard output if it is a pipe or a socket, and is not the same file as standard error. The output becomes
    /// non-blocking, and standard error must stay blocking.
    pub(super) fn output() -> Option<Output> {
        let file = duplicate(io::stdout()).ok()?;
        let metadata = file.metadata().ok()?;
        let stderr = duplicate(io::stderr()).and_then(|stderr| stderr.metadata());
        if stderr.is_ok_and(|stderr| (stderr.dev(), stderr.ino()) == (metadata.dev(), metadata.ino())) {
            return None;
        }
        let file_type = metadata.file_type();
        if file_type.is_fifo() {
            return Some(Box::new(pipe::Sender::from_file(file).ok()?));
        }
        file_type
            .is_socket()
            .then(|| socket(file))
            .flatten()
            .map(|socket| Box::new(socket) as Output)
    }

    fn duplicate(stream: impl AsFd) -> io::Result<File> {
        stream.as_fd().try_clone_to_owned().map(File::from)
    }

    fn socket(file: File) -> Option<UnixStream> {
        let socket = std::os::unix::net::UnixStream::from(OwnedFd::from(file));
        socket.set_nonblocking(true).ok()?;
        UnixStream::from_std(socket).ok()
    }
}
