//! Diagnostics of a connection, for the error if it fails.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use crate::value::Redaction;
use toolwit_core::text::printable;

/// The maximum number of bytes of the end of standard error that are kept.
const STDERR_BYTES_MAX: usize = 8 << 10;

/// The maximum number of the last lines of standard error that an error quotes.
const LAST_LINES_MAX: usize = 3;

/// The maximum length of the last lines of standard error in an error, in characters.
const LAST_CHARS_MAX: usize = 500;

/// The maximum time to wait for the reason why a connection has ended.
const END_REASON_WALL_MAX: Duration = Duration::from_millis(300);

/// The end of a server's standard error, and the reason why its connection ended. Clones share both.
#[derive(Clone, Debug, Default)]
pub(crate) struct Diagnostics(Arc<SharedDiagnostics>);

#[derive(Debug, Default)]
struct SharedDiagnostics {
    record: Mutex<DiagnosticsRecord>,
    /// Notifies the waiting calls of [`Diagnostics::end_reason`] when a reason is recorded.
    end_reason_recorded: Notify,
    /// Notifies the waiting calls of [`Diagnostics::last_words`] when standard error has ended.
    stderr_ended: Notify,
}

#[derive(Debug, Default)]
struct DiagnosticsRecord {
    /// The end of standard error.
    stderr: VecDeque<u8>,
    /// Whether `stderr` lacks the beginning of standard error.
    is_stderr_cut: bool,
    /// Whether standard error has ended.
    has_stderr_ended: bool,
    /// The first recorded reason why the connection ended.
    end_reason: Option<String>,
}

impl Diagnostics {
    /// Adds output of the server's standard error. Only its end is kept.
    pub(super) fn add_stderr(&self, bytes: &[u8]) {
        let mut record = self.lock();
        record.is_stderr_cut |= record.stderr.len() + bytes.len() > STDERR_BYTES_MAX;
        let bytes = &bytes[bytes.len().saturating_sub(STDERR_BYTES_MAX)..];
        let excess = (record.stderr.len() + bytes.len()).saturating_sub(STDERR_BYTES_MAX);
        record.stderr.drain(..excess);
        record.stderr.extend(bytes);
    }

    /// Records the reason why the connection ended, unless a reason is already recorded.
    pub(crate) fn record_end_reason(&self, why: impl Into<String>) {
        self.lock().end_reason.get_or_insert_with(|| why.into());
        self.0.end_reason_recorded.notify_waiters();
    }

    /// Returns the reason why the connection ended, or `None` if no reason is recorded. Waits for the reason for a short
    /// time, because the end of a process may be observed later than the end of its output.
    pub(crate) async fn end_reason(&self) -> Option<String> {
        let notification = self.0.end_reason_recorded.notified();
        if self.lock().end_reason.is_none() {
            drop(tokio::time::timeout(END_REASON_WALL_MAX, notification).await);
        }
        self.lock().end_reason.clone()
    }

    /// Records that standard error has ended.
    pub(super) fn record_stderr_end(&self) {
        self.lock().has_stderr_ended = true;
        self.0.stderr_ended.notify_waiters();
    }

    /// Returns a note with the last lines of standard error, without control characters and secrets. `None` if the server wrote
    /// nothing. If the process has ended, waits for a short time until its output was read.
    pub(crate) async fn last_words(&self, redaction: &Redaction) -> Option<String> {
        let notification = self.0.stderr_ended.notified();
        let is_incomplete = {
            let record = self.lock();
            record.end_reason.is_some() && !record.has_stderr_ended
        };
        if is_incomplete {
            drop(tokio::time::timeout(END_REASON_WALL_MAX, notification).await);
        }
        let stderr = self.stderr(redaction)?;
        let lines: Vec<_> = stderr.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let last_lines = lines[lines.len().saturating_sub(LAST_LINES_MAX)..].join("; ");
        let excess = last_lines.chars().count().saturating_sub(LAST_CHARS_MAX);
        let end: String = last_lines.chars().skip(excess).collect();
        Some(format!("its standard error ends with `{end}`"))
    }

    /// Returns the end of standard error, without control characters and secrets. `None` if it has no visible text.
    pub(crate) fn stderr(&self, redaction: &Redaction) -> Option<String> {
        let record = self.lock();
        let bytes: Vec<u8> = record.stderr.iter().copied().collect();
        let text = String::from_utf8_lossy(&bytes);
        let text = if record.is_stderr_cut {
            // The cut may be inside the first character.
            let text = printable(text.trim_start_matches(char::REPLACEMENT_CHARACTER));
            redaction.redact_text(redaction.without_partial_secret_at_start(&text).to_owned())
        } else {
            redaction.printable(&text)
        };
        (!text.trim().is_empty()).then(|| text.trim().to_owned())
    }

    fn lock(&self) -> MutexGuard<'_, DiagnosticsRecord> {
        self.0.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // attack: G9
    #[test]
    fn only_the_end_of_long_standard_error_is_kept() {
        let diagnostics = Diagnostics::default();
        for _ in 0..1_000 {
            diagnostics.add_stderr(&[b'x'; 1_000]);
        }
        diagnostics.add_stderr(b"\x1b[31mlast\n");
        let output = diagnostics.stderr(&Redaction::default()).unwrap_or_default();
        assert!(
            output.len() <= STDERR_BYTES_MAX && output.ends_with("x[31mlast"),
            "{}",
            output.len()
        );
    }

    // attack: G9
    #[test]
    fn the_end_of_standard_error_has_no_recognizable_part_of_a_secret() {
        let (secret, redaction) = ("correct horse battery", Redaction::default());
        redaction.add(secret);
        let stderr_around_secret = |before: usize, after: usize| {
            let diagnostics = Diagnostics::default();
            let text = format!("{}{secret}{}", "-".repeat(before), ".".repeat(after));
            diagnostics.add_stderr(text.as_bytes());
            diagnostics.stderr(&redaction).unwrap_or_default()
        };
        assert_eq!(stderr_around_secret(1, 1), "-[redacted].");
        for cut_bytes in 1..=secret.len() {
            let output = stderr_around_secret(10, STDERR_BYTES_MAX - secret.len() + cut_bytes);
            assert!(
                output.len() - output.trim_start_matches(|c| c != '.').len() < 8,
                "{}",
                &output[..secret.len()]
            );
        }
    }
}
