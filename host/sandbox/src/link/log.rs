//! What a guest writes to its standard output and error, kept up to a bound.

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

/// The most that a guest may hand over in one write, in bytes.
const WRITE_BYTES_MAX: usize = 64 << 10;

/// Keeps the first bytes and counts the rest: a guest that writes for ever neither blocks nor fills the host.
#[derive(Clone, Debug)]
pub(crate) struct LogBuffer(Arc<Mutex<Kept>>);

#[derive(Debug)]
struct Kept {
    bytes: Vec<u8>,
    bytes_max: usize,
    dropped: u64,
}

impl LogBuffer {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self(Arc::new(Mutex::new(Kept {
            bytes: Vec::new(),
            bytes_max,
            dropped: 0,
        })))
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, bytes: &[u8]) {
        let mut kept = self.lock();
        let room = kept.bytes_max.saturating_sub(kept.bytes.len()).min(bytes.len());
        kept.bytes.extend_from_slice(&bytes[..room]);
        kept.dropped = kept.dropped.saturating_add((bytes.len() - room) as u64);
    }

    /// How many bytes were written, kept or not.
    pub(crate) fn written(&self) -> u64 {
        let kept = self.lock();
        kept.dropped.saturating_add(kept.bytes.len() as u64)
    }

    /// Takes out what was kept, as text without control characters, and says how much was dropped.
    pub(crate) fn take_text(&self) -> Option<Arc<str>> {
        let (bytes, dropped) = {
            let mut kept = self.lock();
            (std::mem::take(&mut kept.bytes), std::mem::take(&mut kept.dropped))
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

    /// Reads the end of what was kept as one line, so that a trap can say what the guest wrote before it.
    pub(crate) fn last_words(&self, chars_max: usize) -> Option<String> {
        let kept = self.lock();
        let text = printable(&String::from_utf8_lossy(&kept.bytes));
        let words: Vec<_> = text.split_whitespace().collect();
        let line = words.join(" ");
        let from = line
            .char_indices()
            .rev()
            .nth(chars_max.checked_sub(1)?)
            .map_or(0, |(at, _)| at);
        (!line.is_empty()).then(|| line[from..].to_owned())
    }

    /// Takes out the bytes as they were written, up to the bound.
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
    fn a_log_keeps_its_bound_and_drops_control_characters() {
        let log = LogBuffer::new(10);
        log.push(b"\x1b[31mred\n");
        log.push(b"and more");
        assert_eq!(log.written(), 17);
        assert_eq!(&*log.take_text().unwrap(), "[31mred\na\n[7 more bytes were dropped]");
        assert_eq!(log.take_text(), None);
    }

    #[test]
    fn last_words_are_one_bounded_line() {
        let log = LogBuffer::new(100);
        assert_eq!(log.last_words(10), None);
        log.push("panicked at\n\x1b[1m  the cät\n".as_bytes());
        assert_eq!(log.last_words(100).unwrap(), "panicked at [1m the cät");
        assert_eq!(log.last_words(3).unwrap(), "cät");
    }
}
