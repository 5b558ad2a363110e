//! Traces: the events of a conversation as lines of JSON.

use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::{Event, Observer};
use toolwit_core::Origin;

/// The version of the schema of traces. Every line contains it.
pub const TRACE_VERSION: u32 = 1;

/// One line of a trace, and one entry of a journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TraceEntry {
    /// The version of the schema.
    pub version: u32,
    /// The number of the line in the trace, or of the entry in the session, from 0.
    pub sequence: u64,
    /// The time of the event, in milliseconds since 1970 UTC.
    pub at_ms: u64,
    /// The id of the [`AgentProcess`](crate::AgentProcess) that emitted the event. If a tool call runs an agent, the events of the
    /// agent also have the id of this call. In JSON: `process` and `parent_call`.
    #[serde(flatten)]
    pub origin: Origin,
    /// The event.
    #[serde(flatten)]
    pub event: Event,
}

impl TraceEntry {
    /// Creates an entry with the current time.
    #[must_use]
    pub fn now(sequence: u64, event: Event, origin: Origin) -> Self {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            version: TRACE_VERSION,
            sequence,
            at_ms: u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX),
            origin,
            event,
        }
    }
}

/// Writes each event as one line of JSON.
///
/// The lines contain the messages and the tool results, but not the data of the pictures that the user attached. After the first write error, the trace writes no more lines, and the
/// run continues.
pub struct Trace<W> {
    lines: Mutex<LineWriter<W>>,
}

struct LineWriter<W> {
    writer: W,
    /// The number of the next line.
    sequence: u64,
    has_failed: bool,
}

impl<W: Write> Trace<W> {
    /// Creates a trace. The writer is flushed at the end of each run.
    #[must_use]
    pub fn new(writer: W) -> Self {
        Self {
            lines: Mutex::new(LineWriter {
                writer,
                sequence: 0,
                has_failed: false,
            }),
        }
    }

    /// Writes the entries of a session's journal that earlier processes of the operating system recorded. Omits the events
    /// [`SettingsStored`](Event::SettingsStored), which only journals have. The entries are numbered as the next lines of this
    /// trace.
    pub fn write_earlier(&self, entries: impl IntoIterator<Item = TraceEntry>) {
        let is_traced = |entry: &TraceEntry| !matches!(entry.event, Event::SettingsStored { .. });
        self.append(entries.into_iter().filter(is_traced));
    }

    /// Returns the writer.
    pub fn into_inner(self) -> W {
        self.lines.into_inner().unwrap_or_else(PoisonError::into_inner).writer
    }
}

impl<W: Write> Trace<W> {
    /// Writes entries with the next line numbers, until a write fails.
    fn append(&self, entries: impl IntoIterator<Item = TraceEntry>) {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        for entry in entries {
            if lines.has_failed {
                return;
            }
            if let Err(error) = lines.write(entry) {
                lines.has_failed = true;
                tracing::warn!(%error, "the trace cannot be written and ends here");
            }
        }
    }
}

impl<W: Write> LineWriter<W> {
    /// Writes an entry with the next line number. Flushes the writer at the end of a run.
    fn write(&mut self, mut entry: TraceEntry) -> io::Result<()> {
        entry.sequence = self.sequence;
        if let Event::PicturesAttached(attached) = &mut entry.event {
            attached.pictures.iter_mut().for_each(|picture| picture.picture = None);
        }
        let mut line = serde_json::to_vec(&entry)?;
        line.push(b'\n');
        self.writer.write_all(&line)?;
        self.sequence += 1;
        if matches!(entry.event, Event::Finished { .. }) {
            self.writer.flush()?;
        }
        Ok(())
    }
}

impl<W: Write + Send> Observer for Trace<W> {
    fn observe(&self, event: &Event, origin: &Origin) {
        self.append([TraceEntry::now(0, event.clone(), origin.clone())]);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_numbered_and_versioned_and_can_be_parsed() {
        let trace = Trace::new(Vec::new());
        let events = [
            Event::ManyToolsDeclared { count: 31 },
            Event::ToolsEvicted { names: Vec::new() },
        ];
        let origin = Origin {
            process: "p".to_owned(),
            parent_call: Some("c".to_owned()),
        };
        events.iter().for_each(|event| trace.observe(event, &origin));
        let text = String::from_utf8(trace.into_inner()).unwrap();
        let entries: Vec<TraceEntry> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(text.starts_with(r#"{"version":1,"sequence":0,"at_ms":"#), "{text}");
        assert!(
            entries
                .iter()
                .zip(&events)
                .all(|(entry, event)| entry.event == *event && entry.origin == origin)
        );
        assert_eq!(entries[1].sequence, 1);
    }

    /// A writer that fails after the first line, like a full disk.
    struct FullDisk(Vec<u8>);

    impl Write for FullDisk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.0.is_empty() {
                self.0.extend(bytes);
                return Ok(bytes.len());
            }
            Err(io::ErrorKind::StorageFull.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_disk_ends_the_trace_without_an_error() {
        let trace = Trace::new(FullDisk(Vec::new()));
        for count in 0..4 {
            trace.observe(&Event::ManyToolsDeclared { count }, &Origin::default());
        }
        assert_eq!(trace.into_inner().0.iter().filter(|byte| **byte == b'\n').count(), 1);
    }
}
