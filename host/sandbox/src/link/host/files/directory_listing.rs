//! The entries of a directory that a guest reads through WASI 0.2.

use std::fs::File;
use std::sync::Arc;

use cap_primitives::fs::{DirEntry, FileType, ReadDir, read_base_dir};
use wasmtime_wasi::p2::bindings::filesystem::types::{DescriptorType, DirectoryEntry, ErrorCode};
use wasmtime_wasi::p2::{FsError, FsResult};

/// The maximum number of entries that are read at once.
const BATCH_ENTRIES: usize = 256;

/// The maximum length of a name in a directory, in bytes, on the platforms of wasmtime.
const NAME_BYTES_MAX: usize = 1 << 10;

/// The entries of a directory that a guest has not read yet.
///
/// The listing replaces wasmtime's iterator, which loads all entries of the directory into memory, however many there are.
pub(in crate::link::host) struct DirectoryListing {
    /// The entries that were read from the disk and not yet returned.
    batch: std::vec::IntoIter<FsResult<DirectoryEntry>>,
    /// The entries after the batch; `None` after the last batch.
    unread: Option<ReadDir>,
}

impl DirectoryListing {
    /// The maximum memory of a listing, in bytes. A listing holds one batch.
    pub(in crate::link::host) const MEMORY_BYTES: usize =
        BATCH_ENTRIES * (size_of::<FsResult<DirectoryEntry>>() + NAME_BYTES_MAX) + size_of::<Self>();

    /// Creates a listing of an open directory.
    ///
    /// # Errors
    /// The error of the operating system, if the directory cannot be read.
    pub(super) async fn open(directory: Arc<File>) -> FsResult<Self> {
        let unread = run_blocking(move || read_base_dir(&directory).map_err(FsError::from)).await?;
        Ok(Self {
            batch: Vec::new().into_iter(),
            unread: Some(unread),
        })
    }

    /// Returns the next entry, or `None` after the last one.
    pub(super) async fn next(&mut self) -> FsResult<Option<DirectoryEntry>> {
        if self.batch.len() == 0
            && let Some(mut unread) = self.unread.take()
        {
            let (batch, unread) = run_blocking(move || {
                let batch: Vec<_> = unread
                    .by_ref()
                    .take(BATCH_ENTRIES)
                    .map(|entry| read_entry(entry?))
                    .collect();
                let unread = (batch.len() == BATCH_ENTRIES).then_some(unread);
                Ok((batch, unread))
            })
            .await?;
            self.batch = batch.into_iter();
            self.unread = unread;
        }
        self.batch.next().transpose()
    }
}

/// Runs `read`, which reads the disk, on a thread for blocking work.
async fn run_blocking<T: Send + 'static>(read: impl FnOnce() -> FsResult<T> + Send + 'static) -> FsResult<T> {
    tokio::task::spawn_blocking(read)
        .await
        .unwrap_or_else(|_| Err(ErrorCode::Io.into()))
}

fn read_entry(entry: DirEntry) -> FsResult<DirectoryEntry> {
    let type_ = descriptor_type(entry.metadata()?.file_type());
    let name = entry.file_name().into_string();
    let name = name.map_err(|_| ErrorCode::IllegalByteSequence)?;
    Ok(DirectoryEntry { type_, name })
}

fn descriptor_type(file_type: FileType) -> DescriptorType {
    if file_type.is_dir() {
        DescriptorType::Directory
    } else if file_type.is_symlink() {
        DescriptorType::SymbolicLink
    } else if file_type.is_file() {
        DescriptorType::RegularFile
    } else {
        // A pipe, a socket or a device. A guest cannot open these files.
        DescriptorType::Unknown
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    // attack: L14
    #[tokio::test]
    async fn a_listing_of_a_large_directory_reads_it_in_parts() {
        let directory = tempfile::tempdir().unwrap();
        let names: BTreeSet<_> = (0..3 * BATCH_ENTRIES).map(|number| format!("file-{number}")).collect();
        for name in &names {
            File::create(directory.path().join(name)).unwrap();
        }
        let mut listing = DirectoryListing::open(Arc::new(File::open(directory.path()).unwrap()))
            .await
            .unwrap();
        let mut listed = BTreeSet::new();
        while let Some(entry) = listing.next().await.unwrap() {
            assert!(listing.batch.len() < BATCH_ENTRIES);
            assert_eq!(entry.type_, DescriptorType::RegularFile);
            listed.insert(entry.name);
        }
        assert_eq!(listed, names);
        assert!(listing.next().await.unwrap().is_none(), "a listing stays at its end");
    }
}
