//! The buffer with a size limit for the output of a guest: standard output, standard error and log messages.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use tokio::io::AsyncWrite;
use wasmtime_wasi::async_trait;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamResult};

use crate::grants::redact::Redactor;
use toolwit_core::text::printable;

/// The maximum size of a single write of a guest, in bytes.
const WRITE_BYTES_MAX: usize = 64 << 10;

/// A buffer that stores bytes up to a limit, and only counts the bytes after the limit. So a guest can write any amount: it does
/// not block, and does not exhaust the host's memory.
#[derive(Clone, Debug)]
pub(crate) struct LogBuffer(Arc<Mutex<LimitedBytes>>);

#[derive(Debug)]
struct LimitedBytes {
    bytes: Vec<u8>,
    bytes_max: usize,
    /// The number of bytes that were dropped because the limit was reached.
    dropped_count: u64,
}

impl LogBuffer {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self(Arc::new(Mutex::new(LimitedBytes {
            bytes: Vec::new(),
            bytes_max,
            dropped_count: 0,
        })))
    }

    /// Sets the maximum number of stored bytes. Bytes that are already stored remain, even if they exceed the new maximum.
    pub(super) fn set_bytes_max(&self, bytes_max: usize) {
        self.lock().bytes_max = bytes_max;
    }

    fn lock(&self) -> MutexGuard<'_, LimitedBytes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores bytes up to the limit, and counts the dropped bytes.
    pub(super) fn push(&self, bytes: &[u8]) {
        let mut buffer = self.lock();
        let room = buffer.bytes_max.saturating_sub(buffer.bytes.len());
        let (stored, dropped) = bytes.split_at(room.min(bytes.len()));
        buffer.bytes.extend_from_slice(stored);
        buffer.dropped_count = buffer.dropped_count.saturating_add(dropped.len() as u64);
    }

    /// Returns the number of stored and dropped bytes.
    pub(crate) fn written_bytes(&self) -> u64 {
        let buffer = self.lock();
        buffer.dropped_count.saturating_add(buffer.bytes.len() as u64)
    }

    /// Takes the stored bytes as printable text without secrets, with the number of dropped bytes at the end. Returns `None` if
    /// no bytes were stored or dropped.
    pub(crate) fn take_text(&self, redactor: &Redactor) -> Option<Arc<str>> {
        let (bytes, dropped_count) = {
            let mut buffer = self.lock();
            let dropped_count = std::mem::take(&mut buffer.dropped_count);
            (std::mem::take(&mut buffer.bytes), dropped_count)
        };
        if bytes.is_empty() && dropped_count == 0 {
            return None;
        }
        let mut text = redact_output(&bytes, dropped_count > 0, redactor);
        if dropped_count > 0 {
            text.push_str(&format!("\n[{dropped_count} more bytes were dropped]"));
        }
        Some(text.into())
    }

    /// Returns the last `chars_max` characters of the stored text as one line without secrets, for the message of a trap. Omits
    /// the advice of Rust's panic handler to set `RUST_BACKTRACE`, because the reader of the message cannot set environment
    /// variables of a guest. Returns `None` if no text remains.
    pub(crate) fn end_of_text(&self, chars_max: usize, redactor: &Redactor) -> Option<String> {
        let text = {
            let buffer = self.lock();
            redact_output(&buffer.bytes, buffer.dropped_count > 0, redactor)
        };
        let lines = text
            .lines()
            .filter(|line| !line.starts_with("note: run with `RUST_BACKTRACE="));
        let words: Vec<_> = lines.flat_map(str::split_whitespace).collect();
        let line = words.join(" ");
        let start = line
            .char_indices()
            .rev()
            .nth(chars_max.checked_sub(1)?)
            .map_or(0, |(index, _)| index);
        (!line.is_empty()).then(|| line[start..].to_owned())
    }

    /// Takes the stored bytes. Secrets are not redacted, and the number of dropped bytes is not appended.
    pub(crate) fn take_bytes(&self) -> Vec<u8> {
        std::mem::take(&mut self.lock().bytes)
    }
}

/// Returns output as printable text without secrets. If the output was cut at the limit, also removes an end that could be
/// the beginning of a secret.
fn redact_output(output: &[u8], is_cut: bool, redactor: &Redactor) -> String {
    let text = printable(&String::from_utf8_lossy(output));
    let text = if is_cut {
        redactor.without_cut_secret(&text)
    } else {
        &text
    };
    redactor.redact_text(text).into_owned()
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
        let (log, redactor) = (LogBuffer::new(10), Redactor::default());
        log.push(b"\x1b[31mred\n");
        log.push(b"and more");
        assert_eq!(log.written_bytes(), 17);
        assert_eq!(
            &*log.take_text(&redactor).unwrap(),
            "[31mred\na\n[7 more bytes were dropped]"
        );
        assert_eq!(log.take_text(&redactor), None);
    }

    #[test]
    fn the_end_of_a_log_has_a_length_limit_and_no_line_breaks() {
        let (log, redactor) = (LogBuffer::new(100), Redactor::default());
        assert_eq!(log.end_of_text(10, &redactor), None);
        log.push("panicked at\n\x1b[1m  the cät\n".as_bytes());
        assert_eq!(log.end_of_text(100, &redactor).unwrap(), "panicked at [1m the cät");
        assert_eq!(log.end_of_text(3, &redactor).unwrap(), "cät");
        log.push(b"note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n");
        assert_eq!(
            log.end_of_text(3, &redactor).unwrap(),
            "cät",
            "the advice of the panic handler is omitted"
        );
    }

    // attack: K4
    #[test]
    fn no_part_of_a_secret_is_left_where_a_log_is_cut() {
        const SECRET: &str = "s3cr3t-of-the-operator";
        let redactor = Redactor::new(std::iter::once(SECRET));
        for cut in 1..SECRET.len() {
            let log = LogBuffer::new("token: ".len() + cut);
            log.push(format!("token: {SECRET} and more").as_bytes());
            let dropped = log.written_bytes() - ("token: ".len() + cut) as u64;
            assert_eq!(
                log.end_of_text(100, &redactor).unwrap(),
                "token:",
                "cut after {cut} bytes"
            );
            let text = log.take_text(&redactor).unwrap();
            assert_eq!(*text, format!("token: \n[{dropped} more bytes were dropped]"));
        }
        let log = LogBuffer::new(100);
        log.push(format!("token: {SECRET}").as_bytes());
        for chars_max in 1..SECRET.len() {
            let line = log.end_of_text(chars_max, &redactor).unwrap();
            assert!("token: [redacted]".ends_with(&line), "{line}");
        }
    }
}
