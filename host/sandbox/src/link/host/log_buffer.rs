//! The buffer for a guest's standard output and error, up to a limit.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use tokio::io::AsyncWrite;
use wasmtime_wasi::async_trait;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamResult};

use toolwit_core::text::printable;

/// The maximum size of a single write of a guest, in bytes.
const WRITE_BYTES_MAX: usize = 64 << 10;

/// A buffer that stores the first bytes and counts the rest. A guest that writes continuously neither blocks nor exhausts the
/// host's memory.
#[derive(Clone, Debug)]
pub(crate) struct LogBuffer(Arc<Mutex<LimitedBytes>>);

#[derive(Debug)]
struct LimitedBytes {
    bytes: Vec<u8>,
    bytes_max: usize,
    dropped: u64,
}

impl LogBuffer {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self(Arc::new(Mutex::new(LimitedBytes {
            bytes: Vec::new(),
            bytes_max,
            dropped: 0,
        })))
    }

    fn lock(&self) -> MutexGuard<'_, LimitedBytes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores bytes up to the limit, and counts the rest.
    pub(super) fn push(&self, bytes: &[u8]) {
        let mut buffer = self.lock();
        let room = buffer.bytes_max.saturating_sub(buffer.bytes.len()).min(bytes.len());
        buffer.bytes.extend_from_slice(&bytes[..room]);
        buffer.dropped = buffer.dropped.saturating_add((bytes.len() - room) as u64);
    }

    /// Returns the number of written bytes, including the dropped ones.
    pub(crate) fn written(&self) -> u64 {
        let buffer = self.lock();
        buffer.dropped.saturating_add(buffer.bytes.len() as u64)
    }

    /// Takes the stored bytes as printable text, with the number of dropped bytes at the end. Returns `None` if nothing was
    /// written.
    pub(crate) fn take_text(&self) -> Option<Arc<str>> {
        let (bytes, dropped) = {
            let mut buffer = self.lock();
            (std::mem::take(&mut buffer.bytes), std::mem::take(&mut buffer.dropped))
        };
        if bytes.is_empty() && dropped == 0 {
            return None;
        }
        let mut text = printable(&String::from_utf8_lossy(&bytes));
        if dropped > 0 {
            text.push_str(&format!("\n[{dropped} more bytes were dropped]"));
        }
        Some(text.into())
    }

    /// Returns the end of the stored text as one line, for the message of a trap. The advice of Rust's panic handler is left out:
    /// the reader cannot set the variables of a guest.
    pub(crate) fn last_line(&self, chars_max: usize) -> Option<String> {
        let buffer = self.lock();
        let text = printable(&String::from_utf8_lossy(&buffer.bytes));
        let lines = text
            .lines()
            .filter(|line| !line.starts_with("note: run with `RUST_BACKTRACE="));
        let words: Vec<_> = lines.flat_map(str::split_whitespace).collect();
        let line = words.join(" ");
        let from = line
            .char_indices()
            .rev()
            .nth(chars_max.checked_sub(1)?)
            .map_or(0, |(at, _)| at);
        (!line.is_empty()).then(|| line[from..].to_owned())
    }

    /// Takes the stored bytes unchanged.
    pub(crate) fn take_bytes(&self) -> Vec<u8> {
        std::mem::take(&mut self.lock().bytes)
    }
}

impl IsTerminal for LogBuffer {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for LogBuffer {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.clone())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

#[async_trait]
impl Pollable for LogBuffer {
    async fn ready(&mut self) {}
}

#[async_trait]
impl OutputStream for LogBuffer {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.push(&bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(WRITE_BYTES_MAX)
    }
}

impl AsyncWrite for LogBuffer {
    fn poll_write(self: Pin<&mut Self>, _context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.push(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    // attack: B12, attack: C21
    #[test]
    fn a_log_respects_its_limit_and_drops_control_characters() {
        let log = LogBuffer::new(10);
        log.push(b"\x1b[31mred\n");
        log.push(b"and more");
        assert_eq!(log.written(), 17);
        assert_eq!(&*log.take_text().unwrap(), "[31mred\na\n[7 more bytes were dropped]");
        assert_eq!(log.take_text(), None);
    }

    #[test]
    fn the_last_line_is_limited_and_has_no_line_breaks() {
        let log = LogBuffer::new(100);
        assert_eq!(log.last_line(10), None);
        log.push("panicked at\n\x1b[1m  the cät\n".as_bytes());
        assert_eq!(log.last_line(100).unwrap(), "panicked at [1m the cät");
        assert_eq!(log.last_line(3).unwrap(), "cät");
        log.push(b"note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n");
        assert_eq!(log.last_line(3).unwrap(), "cät", "the advice is left out");
    }
}
