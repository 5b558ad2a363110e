//! Reads the lines that a person types while a question is open.

use std::io;

use async_trait::async_trait;

/// A line that has not ended after this number of bytes is too long.
const LINE_BYTES_MAX: usize = 1 << 20;

/// A source of typed lines.
#[async_trait]
pub(super) trait TypedLines: Send {
    /// Waits for a line. Returns `None` at the end of the input, after a read error, and for a line that is too long or
    /// not UTF-8.
    async fn next(&mut self) -> Option<String>;
}

#[cfg(test)]
#[async_trait]
impl TypedLines for std::str::Lines<'_> {
    async fn next(&mut self) -> Option<String> {
        Iterator::next(self).map(str::to_owned)
    }
}

/// Standard input, which is a terminal. On Unix, a read begins only when a line is available. A dropped
/// [`TypedLines::next`] therefore does not consume a line that another reader waits for.
pub(super) struct TypedInput;

#[async_trait]
impl TypedLines for TypedInput {
    async fn next(&mut self) -> Option<String> {
        let mut line = Vec::new();
        // One read from a terminal returns one line, or a part of a line that is longer than the terminal's buffer.
        while !line.ends_with(b"\n") && line.len() < LINE_BYTES_MAX {
            match read_chunk().await {
                Ok(chunk) if !chunk.is_empty() => line.extend(chunk),
                _ => return None,
            }
        }
        let is_complete = line.ends_with(b"\n") && line.len() <= LINE_BYTES_MAX;
        is_complete.then(|| String::from_utf8(line).ok())?
    }
}

/// Waits for input, and reads it once: a line, or a part of a long line.
async fn read_chunk() -> io::Result<Vec<u8>> {
    wait_for_input().await?;
    let task = tokio::task::spawn_blocking(|| {
        let mut chunk = vec![0; 4096];
        let count = read_unbuffered(&mut chunk)?;
        chunk.truncate(count);
        Ok(chunk)
    });
    task.await.map_err(io::Error::other)?
}

/// Waits until the terminal has a line. On systems other than Unix, returns at once; the read then waits for the line.
#[cfg(unix)]
async fn wait_for_input() -> io::Result<()> {
    use std::os::fd::AsFd;
    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;

    let stdin = io::stdin().as_fd().try_clone_to_owned()?;
    #[expect(
        deprecated,
        reason = "the constructors that are not deprecated are unsafe; an owned descriptor meets their conditions"
    )]
    let stdin = AsyncFd::with_interest(stdin, Interest::READABLE)?;
    stdin.readable().await.map(drop)
}

#[cfg(not(unix))]
async fn wait_for_input() -> io::Result<()> {
    Ok(())
}

#[cfg(unix)]
fn read_unbuffered(chunk: &mut [u8]) -> io::Result<usize> {
    Ok(rustix::io::retry_on_intr(|| {
        rustix::io::read(io::stdin(), &mut *chunk)
    })?)
}

#[cfg(not(unix))]
fn read_unbuffered(chunk: &mut [u8]) -> io::Result<usize> {
    io::Read::read(&mut io::stdin().lock(), chunk)
}

/// Discards typed input that was not read, so that it does not answer the next question. Does nothing on systems other
/// than Unix.
pub(super) fn discard_typed() {
    #[cfg(unix)]
    // `tcflush` fails if standard input is not a terminal. No person is asked then.
    let _ = rustix::termios::tcflush(io::stdin(), rustix::termios::QueueSelector::IFlush);
}
