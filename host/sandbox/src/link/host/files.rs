//! The file system of a guest: granted directories, regular files, and a quota on writes.
//!
//! wasmtime's implementation confines every path to its directory. This module wraps it: directories are those that were opened
//! when the grants were read; only regular files, directories and links are opened; and every operation that can use disk space
//! draws on a quota.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use wasmtime::component::{HasData, Resource, ResourceTable};
use wasmtime_wasi::filesystem::{Descriptor, Dir, WasiFilesystemCtx, WasiFilesystemCtxView};
use wasmtime_wasi::p2::bindings::filesystem::{preopens, types};
use wasmtime_wasi::p2::{
    DynInputStream, DynOutputStream, FsError, FsResult, OutputStream, Pollable, ReaddirIterator, StreamError,
    StreamResult,
};
use wasmtime_wasi::{FsPerms, OpenMode, async_trait};

use super::host_state::HostState;
use crate::grants::AccessMode;
use crate::grants::directories::{DirectoryQuota, ENTRY_BYTES, OpenDirectory, disk_full};

/// The files of one instance.
pub(crate) struct Files {
    directories: Vec<(Arc<OpenDirectory>, AccessMode)>,
    /// The quota of each descriptor, by its index in the resource table.
    quotas: HashMap<u32, Arc<DirectoryQuota>>,
    wasi: WasiFilesystemCtx,
}

impl Files {
    pub(crate) fn new(directories: Vec<(Arc<OpenDirectory>, AccessMode)>) -> Self {
        Self {
            directories,
            quotas: HashMap::new(),
            wasi: WasiFilesystemCtx::default(),
        }
    }

    pub(crate) fn view<'a>(&'a mut self, resources: &'a mut ResourceTable) -> FilesView<'a> {
        FilesView {
            wasi: WasiFilesystemCtxView {
                ctx: &mut self.wasi,
                table: resources,
            },
            directories: &self.directories,
            quotas: &mut self.quotas,
        }
    }
}

/// The files of one instance together with its resource table, as the host functions need them.
pub(crate) struct FilesView<'a> {
    wasi: WasiFilesystemCtxView<'a>,
    directories: &'a [(Arc<OpenDirectory>, AccessMode)],
    quotas: &'a mut HashMap<u32, Arc<DirectoryQuota>>,
}

/// Selects the store data of the host functions, for the linker.
pub(crate) struct GrantedFiles;

impl HasData for GrantedFiles {
    type Data<'a> = FilesView<'a>;
}

/// Links the file system in place of wasmtime's.
pub(crate) fn add_to_linker(linker: &mut wasmtime::component::Linker<HostState>) -> wasmtime::Result<()> {
    preopens::add_to_linker::<HostState, GrantedFiles>(linker, HostState::files)?;
    types::add_to_linker::<HostState, GrantedFiles>(linker, HostState::files)
}

impl FilesView<'_> {
    /// Reserves quota for bytes that are about to be written through a descriptor.
    async fn reserve(&mut self, descriptor: &Resource<Descriptor>, bytes: u64) -> FsResult<()> {
        match self.quotas.get(&descriptor.rep()) {
            Some(quota) => reserve(quota, bytes).await.map_err(FsError::from),
            None => Ok(()),
        }
    }

    /// Returns the size of the hole between the end of a file and an offset, in bytes.
    fn gap(&self, descriptor: &Resource<Descriptor>, offset: u64) -> FsResult<u64> {
        let Descriptor::File(file) = self.wasi.table.get(descriptor)? else {
            return Ok(0);
        };
        Ok(offset.saturating_sub(file.file.metadata()?.len()))
    }

    /// Wraps an output stream, so that its writes draw on the quota of the file.
    fn with_quota(
        &mut self,
        descriptor: &Resource<Descriptor>,
        stream: Resource<DynOutputStream>,
        gap: u64,
    ) -> FsResult<Resource<DynOutputStream>> {
        let Some(quota) = self.quotas.get(&descriptor.rep()).cloned() else {
            return Ok(stream);
        };
        let inner = self.wasi.table.delete(stream)?;
        let stream: DynOutputStream = Box::new(QuotaStream { inner, quota, gap });
        Ok(self.wasi.table.push(stream)?)
    }
}

async fn reserve(quota: &Arc<DirectoryQuota>, bytes: u64) -> std::io::Result<()> {
    if quota.try_reserve(bytes) {
        return Ok(());
    }
    let quota = quota.clone();
    tokio::task::spawn_blocking(move || quota.reserve(bytes))
        .await
        .unwrap_or_else(|_| Err(disk_full()))
}

/// Returns a borrowed handle to the same resource, for a call of wasmtime's implementation.
fn borrowed<T: 'static>(resource: &Resource<T>) -> Resource<T> {
    Resource::new_borrow(resource.rep())
}

impl preopens::Host for FilesView<'_> {
    fn get_directories(&mut self) -> wasmtime::Result<Vec<(Resource<Descriptor>, String)>> {
        let mut preopens = Vec::with_capacity(self.directories.len());
        for (directory, access) in self.directories {
            let (perms, mode) = match access {
                AccessMode::ReadWrite => (FsPerms::ReadWrite, OpenMode::READ | OpenMode::WRITE),
                AccessMode::Read => (FsPerms::ReadOnly, OpenMode::READ),
            };
            let handle = directory.handle()?;
            let descriptor = self
                .wasi
                .table
                .push(Descriptor::Dir(Dir::new(handle, perms, mode, false)))?;
            if *access == AccessMode::ReadWrite {
                self.quotas.insert(descriptor.rep(), directory.quota.clone());
            }
            preopens.push((descriptor, directory.guest.clone()));
        }
        Ok(preopens)
    }
}

impl types::Host for FilesView<'_> {
    fn convert_error_code(&mut self, error: FsError) -> wasmtime::Result<types::ErrorCode> {
        self.wasi.convert_error_code(error)
    }

    fn filesystem_error_code(
        &mut self,
        error: Resource<wasmtime::Error>,
    ) -> wasmtime::Result<Option<types::ErrorCode>> {
        self.wasi.filesystem_error_code(error)
    }
}

impl types::HostDirectoryEntryStream for FilesView<'_> {
    async fn read_directory_entry(
        &mut self,
        stream: Resource<ReaddirIterator>,
    ) -> FsResult<Option<types::DirectoryEntry>> {
        types::HostDirectoryEntryStream::read_directory_entry(&mut self.wasi, stream).await
    }

    fn drop(&mut self, stream: Resource<ReaddirIterator>) -> wasmtime::Result<()> {
        types::HostDirectoryEntryStream::drop(&mut self.wasi, stream)
    }
}

/// Forwards calls to wasmtime's implementation unchanged.
macro_rules! forward {
    ($($name:ident($($arg:ident: $ty:ty),*) -> $result:ty;)*) => {
        $(async fn $name(&mut self, $($arg: $ty),*) -> $result {
            types::HostDescriptor::$name(&mut self.wasi, $($arg),*).await
        })*
    };
}

type Fd = Resource<Descriptor>;

impl types::HostDescriptor for FilesView<'_> {
    forward! {
        advise(fd: Fd, offset: u64, len: u64, advice: types::Advice) -> FsResult<()>;
        sync_data(fd: Fd) -> FsResult<()>;
        sync(fd: Fd) -> FsResult<()>;
        get_flags(fd: Fd) -> FsResult<types::DescriptorFlags>;
        get_type(fd: Fd) -> FsResult<types::DescriptorType>;
        set_times(fd: Fd, accessed: types::NewTimestamp, modified: types::NewTimestamp) -> FsResult<()>;
        set_times_at(fd: Fd, flags: types::PathFlags, path: String, accessed: types::NewTimestamp,
            modified: types::NewTimestamp) -> FsResult<()>;
        read(fd: Fd, len: u64, offset: u64) -> FsResult<(Vec<u8>, bool)>;
        read_directory(fd: Fd) -> FsResult<Resource<ReaddirIterator>>;
        stat(fd: Fd) -> FsResult<types::DescriptorStat>;
        stat_at(fd: Fd, flags: types::PathFlags, path: String) -> FsResult<types::DescriptorStat>;
        readlink_at(fd: Fd, path: String) -> FsResult<String>;
        remove_directory_at(fd: Fd, path: String) -> FsResult<()>;
        rename_at(fd: Fd, path: String, to: Fd, new_path: String) -> FsResult<()>;
        unlink_file_at(fd: Fd, path: String) -> FsResult<()>;
        is_same_object(a: Fd, b: Fd) -> wasmtime::Result<bool>;
        metadata_hash(fd: Fd) -> FsResult<types::MetadataHashValue>;
        metadata_hash_at(fd: Fd, flags: types::PathFlags, path: String) -> FsResult<types::MetadataHashValue>;
    }

    async fn set_size(&mut self, fd: Fd, size: u64) -> FsResult<()> {
        let growth = self.gap(&fd, size)?;
        self.reserve(&fd, growth).await?;
        types::HostDescriptor::set_size(&mut self.wasi, fd, size).await
    }

    async fn write(&mut self, fd: Fd, bytes: Vec<u8>, offset: u64) -> FsResult<u64> {
        let gap = self.gap(&fd, offset)?;
        self.reserve(&fd, gap.saturating_add(bytes.len() as u64)).await?;
        types::HostDescriptor::write(&mut self.wasi, fd, bytes, offset).await
    }

    async fn create_directory_at(&mut self, fd: Fd, path: String) -> FsResult<()> {
        self.reserve(&fd, ENTRY_BYTES).await?;
        types::HostDescriptor::create_directory_at(&mut self.wasi, fd, path).await
    }

    /// Creates a hard link. The content is counted again, because the link can outlive the original.
    async fn link_at(
        &mut self,
        fd: Fd,
        flags: types::PathFlags,
        path: String,
        to: Fd,
        new_path: String,
    ) -> FsResult<()> {
        let stat = types::HostDescriptor::stat_at(&mut self.wasi, borrowed(&fd), flags, path.clone()).await?;
        self.reserve(&to, stat.size.saturating_add(ENTRY_BYTES)).await?;
        types::HostDescriptor::link_at(&mut self.wasi, fd, flags, path, to, new_path).await
    }

    async fn symlink_at(&mut self, fd: Fd, target: String, path: String) -> FsResult<()> {
        self.reserve(&fd, ENTRY_BYTES.saturating_add(target.len() as u64))
            .await?;
        types::HostDescriptor::symlink_at(&mut self.wasi, fd, target, path).await
    }

    /// Opens a regular file or a directory. Refuses pipes, which could block a thread of the host, and devices.
    async fn open_at(
        &mut self,
        fd: Fd,
        path_flags: types::PathFlags,
        path: String,
        open_flags: types::OpenFlags,
        flags: types::DescriptorFlags,
    ) -> FsResult<Fd> {
        let existing = types::HostDescriptor::stat_at(&mut self.wasi, borrowed(&fd), path_flags, path.clone()).await;
        match existing {
            Ok(stat) => require_file_or_directory(stat.type_)?,
            Err(_) if open_flags.contains(types::OpenFlags::CREATE) => self.reserve(&fd, ENTRY_BYTES).await?,
            Err(error) => return Err(error),
        }
        let quota = self.quotas.get(&fd.rep()).cloned();
        let opened = types::HostDescriptor::open_at(&mut self.wasi, fd, path_flags, path, open_flags, flags).await?;
        // Another process may have replaced the file since the check.
        let type_ = types::HostDescriptor::get_type(&mut self.wasi, borrowed(&opened)).await?;
        if let Err(error) = require_file_or_directory(type_) {
            types::HostDescriptor::drop(&mut self.wasi, opened).map_err(FsError::trap)?;
            return Err(error);
        }
        if let Some(quota) = quota {
            self.quotas.insert(opened.rep(), quota);
        }
        Ok(opened)
    }

    fn drop(&mut self, fd: Fd) -> wasmtime::Result<()> {
        self.quotas.remove(&fd.rep());
        types::HostDescriptor::drop(&mut self.wasi, fd)
    }

    fn read_via_stream(&mut self, fd: Fd, offset: u64) -> FsResult<Resource<DynInputStream>> {
        types::HostDescriptor::read_via_stream(&mut self.wasi, fd, offset)
    }

    fn write_via_stream(&mut self, fd: Fd, offset: u64) -> FsResult<Resource<DynOutputStream>> {
        let stream = types::HostDescriptor::write_via_stream(&mut self.wasi, borrowed(&fd), offset)?;
        let gap = self.gap(&fd, offset)?;
        self.with_quota(&fd, stream, gap)
    }

    fn append_via_stream(&mut self, fd: Fd) -> FsResult<Resource<DynOutputStream>> {
        let stream = types::HostDescriptor::append_via_stream(&mut self.wasi, borrowed(&fd))?;
        self.with_quota(&fd, stream, 0)
    }
}

fn require_file_or_directory(type_: types::DescriptorType) -> FsResult<()> {
    use types::DescriptorType::{Directory, RegularFile, SymbolicLink};
    match type_ {
        RegularFile | Directory | SymbolicLink => Ok(()),
        _ => Err(types::ErrorCode::NotPermitted.into()),
    }
}

/// An output stream into a file that reserves quota before it writes.
struct QuotaStream {
    inner: DynOutputStream,
    quota: Arc<DirectoryQuota>,
    /// The size of the hole that the first write creates, in bytes.
    gap: u64,
}

impl QuotaStream {
    fn bytes_needed(&mut self, bytes: &Bytes) -> u64 {
        std::mem::take(&mut self.gap).saturating_add(bytes.len() as u64)
    }
}

#[async_trait]
impl Pollable for QuotaStream {
    async fn ready(&mut self) {
        self.inner.ready().await;
    }
}

#[async_trait]
impl OutputStream for QuotaStream {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        let needed = self.bytes_needed(&bytes);
        // This function is synchronous, so a directory that seems full is measured on this thread.
        self.quota
            .reserve(needed)
            .map_err(|error| StreamError::LastOperationFailed(error.into()))?;
        self.inner.write(bytes)
    }

    async fn blocking_write_and_flush(&mut self, bytes: Bytes) -> StreamResult<()> {
        let needed = self.bytes_needed(&bytes);
        reserve(&self.quota, needed)
            .await
            .map_err(|error| StreamError::LastOperationFailed(error.into()))?;
        self.inner.blocking_write_and_flush(bytes).await
    }

    fn flush(&mut self) -> StreamResult<()> {
        self.inner.flush()
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        self.inner.check_write()
    }

    async fn cancel(&mut self) {
        self.inner.cancel().await;
    }
}
