//! The entries of a directory as a stream of WASI 0.3.

use std::fs::File;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use cap_primitives::fs::{DirEntry, read_base_dir};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use wasmtime::StoreContextMut;
use wasmtime::component::{Destination, StreamProducer, StreamResult, VecBuffer};
use wasmtime_wasi::p3::bindings::filesystem::types::{DescriptorType, DirectoryEntry, ErrorCode};

/// The memory of the entries of one directory, in bytes. A directory of more entries cannot be listed.
///
/// wasmtime's stream keeps a thread for blocking work until the guest has read it, so that a guest with many of them would stop all
/// other work of the host. This one reads all entries at once.
const LISTING_BYTES_MAX: usize = 8 << 20;

/// The number of entries that a read returns at most.
const ENTRIES_PER_READ: usize = 256;

type Listed = io::Result<Vec<DirectoryEntry>>;

/// A stream of the entries of a directory.
pub(super) struct ListingStream {
    directory: Arc<File>,
    listing: Option<JoinHandle<Listed>>,
    /// The entries that the guest has not read, the next one last.
    entries: Option<Vec<DirectoryEntry>>,
    outcome: Option<oneshot::Sender<Result<(), ErrorCode>>>,
}

impl ListingStream {
    pub(super) fn new(directory: Arc<File>, outcome: oneshot::Sender<Result<(), ErrorCode>>) -> Self {
        Self {
            directory,
            listing: None,
            entries: None,
            outcome: Some(outcome),
        }
    }

    fn end(&mut self, outcome: Result<(), ErrorCode>) {
        if let Some(sender) = self.outcome.take() {
            // The guest may not wait for the outcome.
            let _ = sender.send(outcome);
        }
    }

    /// Reads all entries, on a thread for blocking work.
    fn poll_entries(&mut self, context: &mut Context<'_>) -> Poll<Result<&mut Vec<DirectoryEntry>, ErrorCode>> {
        if self.entries.is_none() {
            let directory = &self.directory;
            let listing = self.listing.get_or_insert_with(|| {
                let directory = directory.clone();
                tokio::task::spawn_blocking(move || list(&directory))
            });
            let listed = ready!(Pin::new(listing).poll(context));
            self.listing = None;
            let mut entries = listed.unwrap_or_else(|error| Err(io::Error::other(error)))?;
            entries.reverse();
            self.entries = Some(entries);
        }
        Poll::Ready(Ok(self.entries.get_or_insert_default()))
    }
}

impl Drop for ListingStream {
    fn drop(&mut self) {
        self.end(Ok(()));
    }
}

fn list(directory: &File) -> Listed {
    let (mut entries, mut bytes) = (Vec::new(), 0_usize);
    for entry in read_base_dir(directory)? {
        let entry = entry_of(&entry?)?;
        bytes = bytes.saturating_add(size_of::<DirectoryEntry>() + entry.name.capacity());
        if bytes > LISTING_BYTES_MAX {
            return Err(io::Error::from(io::ErrorKind::FileTooLarge));
        }
        entries.push(entry);
    }
    Ok(entries)
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
        let wanted = destination.remaining(&mut store).unwrap_or(ENTRIES_PER_READ);
        if wanted == 0 {
            return Poll::Ready(Ok(StreamResult::Completed));
        }
        let entries = match ready!(self.poll_entries(context)) {
            Ok(entries) => entries,
            Err(error) => {
                self.end(Err(error));
                return Poll::Ready(Ok(StreamResult::Dropped));
            }
        };
        let rest = entries.len().saturating_sub(wanted.min(ENTRIES_PER_READ));
        let mut read = entries.split_off(rest);
        read.reverse();
        let is_end = entries.is_empty();
        destination.set_buffer(read.into());
        Poll::Ready(Ok(if is_end {
            self.end(Ok(()));
            StreamResult::Dropped
        } else {
            StreamResult::Completed
        }))
    }
}
