//! The entries of a directory as a stream of WASI 0.3.

use std::fs::File;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use cap_primitives::fs::{DirEntry, ReadDir, read_base_dir};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use wasmtime::StoreContextMut;
use wasmtime::component::{Destination, StreamProducer, StreamResult, VecBuffer};
use wasmtime_wasi::p3::bindings::filesystem::types::{DescriptorType, DirectoryEntry, ErrorCode};

/// The maximum number of entries that are read at once, so that a stream holds little memory however large its directory is.
const ENTRIES_PER_READ: usize = 32;

/// The entries of one read, and the rest of the directory.
type Batch = io::Result<(Vec<DirectoryEntry>, Rest)>;

/// The part of a directory that has not been read.
enum Rest {
    /// All entries of this directory.
    All(Arc<File>),
    /// The remaining entries.
    Some(ReadDir),
    /// No entry.
    None,
}

/// A stream of the entries of a directory.
///
/// wasmtime's own stream holds a thread for blocking work until the guest has read all entries, so that a guest with
/// many streams would block all other work of the host. This stream holds a thread only during a read.
pub(super) struct ListingStream {
    rest: Rest,
    /// The running read.
    reading: Option<JoinHandle<Batch>>,
    outcome_sender: Option<oneshot::Sender<Result<(), ErrorCode>>>,
}

impl ListingStream {
    pub(super) fn new(directory: Arc<File>, outcome_sender: oneshot::Sender<Result<(), ErrorCode>>) -> Self {
        Self {
            rest: Rest::All(directory),
            reading: None,
            outcome_sender: Some(outcome_sender),
        }
    }

    /// Delivers the outcome to the guest. Later outcomes are ignored.
    fn end(&mut self, outcome: Result<(), ErrorCode>) {
        if let Some(sender) = self.outcome_sender.take() {
            // The guest may not wait for the outcome.
            let _ = sender.send(outcome);
        }
    }

    /// Reads some entries, on a thread for blocking work.
    fn poll_batch(&mut self, context: &mut Context<'_>) -> Poll<Batch> {
        let rest = &mut self.rest;
        let reading = self.reading.get_or_insert_with(|| {
            let rest = std::mem::replace(rest, Rest::None);
            tokio::task::spawn_blocking(move || read_batch(rest))
        });
        let batch = ready!(Pin::new(reading).poll(context));
        self.reading = None;
        Poll::Ready(batch.unwrap_or_else(|error| Err(io::Error::other(error))))
    }
}

impl Drop for ListingStream {
    fn drop(&mut self) {
        self.end(Ok(()));
    }
}

fn read_batch(rest: Rest) -> Batch {
    let mut rest = match rest {
        Rest::All(directory) => read_base_dir(&directory)?,
        Rest::Some(rest) => rest,
        Rest::None => return Ok((Vec::new(), Rest::None)),
    };
    let entries = rest.by_ref().take(ENTRIES_PER_READ).map(|entry| entry_of(&entry?));
    let entries: Vec<_> = entries.collect::<io::Result<_>>()?;
    let has_more = entries.len() == ENTRIES_PER_READ;
    Ok((entries, if has_more { Rest::Some(rest) } else { Rest::None }))
}

fn entry_of(entry: &DirEntry) -> io::Result<DirectoryEntry> {
    let name = entry
        .file_name()
        .into_string()
        .map_err(|name| io::Error::other(format!("the name {} is not UTF-8", Path::new(&name).display())))?;
    let kind = entry.file_type()?;
    let type_ = if kind.is_dir() {
        DescriptorType::Directory
    } else if kind.is_symlink() {
        DescriptorType::SymbolicLink
    } else if kind.is_file() {
        DescriptorType::RegularFile
    } else {
        DescriptorType::Other(None)
    };
    Ok(DirectoryEntry { type_, name })
}

impl StreamProducer<crate::link::host::host_state::HostState> for ListingStream {
    type Item = DirectoryEntry;
    type Buffer = VecBuffer<DirectoryEntry>;

    fn poll_produce<'a>(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        mut store: StoreContextMut<'a, crate::link::host::host_state::HostState>,
        mut destination: Destination<'a, DirectoryEntry, VecBuffer<DirectoryEntry>>,
        _finish: bool,
    ) -> Poll<wasmtime::Result<StreamResult>> {
        if destination.remaining(&mut store) == Some(0) {
            return Poll::Ready(Ok(StreamResult::Completed));
        }
        let (entries, rest) = match ready!(self.poll_batch(context)) {
            Ok(batch) => batch,
            Err(error) => {
                self.end(Err(error.into()));
                return Poll::Ready(Ok(StreamResult::Dropped));
            }
        };
        let is_end = matches!(rest, Rest::None);
        self.rest = rest;
        destination.set_buffer(entries.into());
        Poll::Ready(Ok(if is_end {
            self.end(Ok(()));
            StreamResult::Dropped
        } else {
            StreamResult::Completed
        }))
    }
}
