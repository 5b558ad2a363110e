//! The entries of a directory that a guest reads.

use wasmtime_wasi::p2::bindings::filesystem::types::DirectoryEntry;
use wasmtime_wasi::p2::{FsResult, ReaddirIterator};

/// The entries of a directory, of which the guest has read some. It replaces wasmtime's iterator, whose memory cannot be measured.
pub(in crate::link::host) struct DirectoryListing {
    entries: std::vec::IntoIter<FsResult<DirectoryEntry>>,
    bytes: usize,
}

impl DirectoryListing {
    pub(super) fn new(entries: ReaddirIterator) -> Self {
        let entries: Vec<_> = entries.into_iter().collect();
        let name_bytes = |entry: &FsResult<DirectoryEntry>| entry.as_ref().map_or(0, |entry| entry.name.capacity());
        let bytes =
            entries.capacity() * size_of::<FsResult<DirectoryEntry>>() + entries.iter().map(name_bytes).sum::<usize>();
        Self {
            entries: entries.into_iter(),
            bytes,
        }
    }

    /// Returns the next entry, or `None` after the last one.
    pub(super) fn next(&mut self) -> FsResult<Option<DirectoryEntry>> {
        self.entries.next().transpose()
    }

    /// Returns the memory that the entries took when they were read.
    pub(in crate::link::host) fn bytes(&self) -> usize {
        self.bytes
    }
}
