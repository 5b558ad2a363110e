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

/// The result of one read: the entries that it read, and the entries that are still unread.
type ReadResult = io::Result<(Vec<DirectoryEntry>, UnreadEntries)>;

/// The entries of a directory that have not been read.
enum UnreadEntries {
    /// All entries of this directory.
    All(Arc<File>),
    /// The entries after those that were read.
    Remaining(ReadDir),
    /// All entries have been read.
    None,
}

/// A stream of the entries of a directory.
///
/// wasmtime's own stream occupies a thread for blocking work until the guest has read all entries. A guest with many streams
/// could occupy all of these threads. This stream occupies a thread only during a read.
pub(super) struct ListingStream {
    unread: UnreadEntries,
    running_read: Option<JoinHandle<ReadResult>>,
    /// The sender of the outcome that the guest awaits; `None` after the outcome was sent.
    outcome_sender: Option<oneshot::Sender<Result<(), ErrorCode>>>,
}

impl ListingStream {
    pub(super) fn new(directory: Arc<File>, outcome_sender: oneshot::Sender<Result<(), ErrorCode>>) -> Self {
        Self {
            unread: UnreadEntries::All(directory),
            running_read: None,
            outcome_sender: Some(outcome_sender),
        }
    }

    /// Sends the outcome to the guest. Later outcomes are ignored.
    fn send_outcome(&mut self, outcome: Result<(), ErrorCode>) {
        if let Some(sender) = self.outcome_sender.take() {
            // The guest may not wait for the outcome.
            let _ = sender.send(outcome);
        }
    }

    /// Polls the running read. If no read is running, first starts a read on a thread for blocking work.
    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<ReadResult> {
        let unread = &mut self.unread;
        let running_read = self.running_read.get_or_insert_with(|| {
            let unread = std::mem::replace(unread, UnreadEntries::None);
            tokio::task::spawn_blocking(move || read_entries(unread))
        });
        let joined = ready!(Pin::new(running_read).poll(context));
        self.running_read = None;
        Poll::Ready(joined.unwrap_or_else(|error| Err(io::Error::other(error))))
    }
}

impl Drop for ListingStream {
    fn drop(&mut self) {
        self.send_outcome(Ok(()));
    }
}

fn read_entries(unread: UnreadEntries) -> ReadResult {
    let mut unread = match unread {
        UnreadEntries::All(directory) => read_base_dir(&directory)?,
        UnreadEntries::Remaining(unread) => unread,
        UnreadEntries::None => return Ok((Vec::new(), UnreadEntries::None)),
    };
    let entries = unread
        .by_ref()
        .take(ENTRIES_PER_READ)
        .map(|entry| convert_entry(&entry?));
    let entries: Vec<_> = entries.collect::<io::Result<_>>()?;
    let has_more = entries.len() == ENTRIES_PER_READ;
    let unread = if has_more {
        UnreadEntries::Remaining(unread)
    } else {
        UnreadEntries::None
    };
    Ok((entries, unread))
}

fn convert_entry(entry: &DirEntry) -> io::Result<DirectoryEntry> {
    let name = entry
        .file_name()
        .into_string()
        .map_err(|name| io::Error::other(format!("the name {} is not UTF-8", Path::new(&name).display())))?;
    let file_type = entry.file_type()?;
    let type_ = if file_type.is_dir() {
        DescriptorType::Directory
    } else if file_type.is_symlink() {
        DescriptorType::SymbolicLink
    } else if file_type.is_file() {
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
        let (entries, unread) = match ready!(self.poll_read(context)) {
            Ok(read) => read,
            Err(error) => {
                self.send_outcome(Err(error.into()));
                return Poll::Ready(Ok(StreamResult::Dropped));
            }
        };
        let is_end = matches!(unread, UnreadEntries::None);
        self.unread = unread;
        destination.set_buffer(entries.into());
        Poll::Ready(Ok(if is_end {
            self.send_outcome(Ok(()));
            StreamResult::Dropped
        } else {
            StreamResult::Completed
        }))
    }
}
