//! The file system of a guest: granted directories, regular files, and a quota on writes.
//!
//! wasmtime's implementation confines every path to its directory. This module wraps that implementation and adds three rules: The
//! guest sees only the directories that were opened when the grants were read. It opens only regular files, directories and links.
//! Every operation that can use disk space draws on a quota.

mod descriptor;
mod directory_listing;
mod guest_path;
mod listing_stream;
mod quota_stream;
mod text_file;
pub(super) mod wasi3;
mod write_stream;

use std::collections::HashMap;
use std::sync::Arc;

use wasmtime::component::{HasData, Resource, ResourceTable};
use wasmtime_wasi::filesystem::{Descriptor, Dir, WasiFilesystemCtx, WasiFilesystemCtxView};
use wasmtime_wasi::p2::bindings::filesystem::{preopens, types};
use wasmtime_wasi::p2::{DynOutputStream, FsError, FsResult, ReaddirIterator};
use wasmtime_wasi::{FsPerms, OpenMode};

pub(super) use self::directory_listing::DirectoryListing;
use self::guest_path::join_paths;
use self::quota_stream::{QuotaStream, hole_bytes, reserve};
pub(super) use self::text_file::read_text_file;
use super::host_state::HostState;
use crate::grants::authority::Authority;
use crate::grants::directories::{DirectoryQuota, OpenDirectory, Reservation};
use crate::grants::{AccessMode, AccessRequest};
use toolwit_core::limits::GUEST_PATH_BYTES_MAX;

/// The files of one instance.
pub(crate) struct Files {
    /// The granted directories, with their granted access modes.
    directories: Vec<(Arc<OpenDirectory>, AccessMode)>,
    /// The open descriptors, by their indices in the resource table.
    descriptors: HashMap<u32, OpenDescriptor>,
    /// Held while a concurrent operation of WASI 0.3 uses disk space.
    disk_lock: Arc<tokio::sync::Mutex<()>>,
    wasi: WasiFilesystemCtx,
}

/// The data of an open descriptor that wasmtime's resource does not contain.
#[derive(Clone)]
struct OpenDescriptor {
    /// The path of the descriptor, as the guest sees it.
    path: String,
    /// The granted directory through which the descriptor was opened, and the granted access mode. `None` for the empty root.
    grant: Option<(Arc<OpenDirectory>, AccessMode)>,
}

impl OpenDescriptor {
    /// Returns the quota on writes, or `None` for the empty root and for a directory that is granted for reading only.
    fn quota(&self) -> Option<&Arc<DirectoryQuota>> {
        let (directory, mode) = self.grant.as_ref()?;
        (*mode == AccessMode::ReadWrite).then_some(&directory.quota)
    }
}

/// The directory `/` of a guest without any open directory. It contains no file. A guest resolves a path against the directories
/// that it has. Without a root, the guest would not call the host, and the host could not record the denied access.
struct EmptyRoot;

impl Files {
    pub(crate) fn new(directories: Vec<(Arc<OpenDirectory>, AccessMode)>) -> Self {
        Self {
            directories,
            descriptors: HashMap::new(),
            disk_lock: Arc::default(),
            wasi: WasiFilesystemCtx::default(),
        }
    }

    /// Returns the number of files that one call of the guest can open: one file, or all granted directories.
    pub(crate) fn opened_by_one_call_max(&self) -> u64 {
        self.directories.len().max(1) as u64
    }

    /// Returns the files with their resource table and the authority of the current call.
    pub(crate) fn view<'a>(
        &'a mut self,
        resources: &'a mut ResourceTable,
        authority: Option<&'a Authority>,
    ) -> FilesView<'a> {
        FilesView {
            wasi: WasiFilesystemCtxView {
                ctx: &mut self.wasi,
                table: resources,
            },
            directories: &self.directories,
            descriptors: &mut self.descriptors,
            disk_lock: &self.disk_lock,
            authority,
        }
    }

    /// Returns the files as wasmtime's implementation needs them.
    pub(crate) fn wasi_view<'a>(&'a mut self, resources: &'a mut ResourceTable) -> WasiFilesystemCtxView<'a> {
        WasiFilesystemCtxView {
            ctx: &mut self.wasi,
            table: resources,
        }
    }
}

/// The files of one instance together with its resource table, as the host functions need them.
pub(crate) struct FilesView<'a> {
    wasi: WasiFilesystemCtxView<'a>,
    directories: &'a [(Arc<OpenDirectory>, AccessMode)],
    descriptors: &'a mut HashMap<u32, OpenDescriptor>,
    disk_lock: &'a Arc<tokio::sync::Mutex<()>>,
    authority: Option<&'a Authority>,
}

/// The type by which the linker selects the data of the host functions: a [`FilesView`].
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
    /// Reserves quota for bytes that are about to be written through a descriptor. Returns `None` if the descriptor has no
    /// quota.
    async fn reserve(&mut self, descriptor: &Resource<Descriptor>, bytes: u64) -> FsResult<Option<Reservation>> {
        match self.quota(descriptor) {
            Some(quota) => Ok(Some(reserve(&quota, bytes).await?)),
            None => Ok(None),
        }
    }

    /// Returns the quota on writes through a descriptor; see [`OpenDescriptor::quota`].
    fn quota(&self, descriptor: &Resource<Descriptor>) -> Option<Arc<DirectoryQuota>> {
        self.descriptors.get(&descriptor.rep())?.quota().cloned()
    }

    /// Returns whether a descriptor is the empty root.
    fn is_empty_root(&self, descriptor: &Resource<Descriptor>) -> bool {
        let descriptor = self.descriptors.get(&descriptor.rep());
        descriptor.is_some_and(|descriptor| descriptor.grant.is_none())
    }

    /// Refuses an operation on the empty root, as on a path that does not exist.
    fn refuse_empty_root(&self, descriptor: &Resource<Descriptor>) -> FsResult<()> {
        if self.is_empty_root(descriptor) {
            return Err(types::ErrorCode::NoEntry.into());
        }
        Ok(())
    }

    /// Joins the guest path of a directory with the path argument of an operation. Returns a placeholder for a path that is too
    /// long.
    fn guest_path(&self, directory: &Resource<Descriptor>, path: &str) -> String {
        if path.len() > GUEST_PATH_BYTES_MAX {
            // No file system has a path of this length, so it is not copied.
            return format!("/(a path of {} bytes)", path.len());
        }
        let base = self
            .descriptors
            .get(&directory.rep())
            .map_or("/", |directory| &directory.path);
        join_paths(base, path)
    }

    /// Records the access of an operation to a path, and returns the result of the operation unchanged. If the operation failed and
    /// the guest has no grant for the path, records the denial for the operator. The guest cannot distinguish a path without a grant
    /// from a path that does not exist.
    fn record_outcome<T, E>(&self, path: &str, mode: AccessMode, result: Result<T, E>) -> Result<T, E> {
        let request = AccessRequest::File(path, mode);
        match (&result, self.authority) {
            (Ok(_), Some(authority)) => authority.record_access(&request),
            (Err(_), Some(authority)) => drop(authority.require_access(&request)),
            (_, None) => {}
        }
        result
    }

    /// Returns the size of the hole between the end of a file and an offset, in bytes, or zero if the descriptor is not a file.
    fn hole_bytes(&self, descriptor: &Resource<Descriptor>, offset: u64) -> std::io::Result<u64> {
        match self.wasi.table.get(descriptor) {
            Ok(Descriptor::File(file)) => hole_bytes(&file.file, offset),
            // The hole does not matter, because wasmtime then refuses the operation.
            Ok(Descriptor::Dir(_)) | Err(_) => Ok(0),
        }
    }

    /// Creates a descriptor of the empty root. Its type in the resource table is [`EmptyRoot`] instead of [`Descriptor`], so that an
    /// operation that does not check for the empty root fails.
    fn create_empty_root(&mut self) -> wasmtime::Result<Resource<Descriptor>> {
        let root = self.wasi.table.push(EmptyRoot)?;
        let descriptor = OpenDescriptor {
            path: "/".to_owned(),
            grant: None,
        };
        self.descriptors.insert(root.rep(), descriptor);
        Ok(Resource::new_own(root.rep()))
    }

    /// Refuses to move or link a file from a directory of one quota to a directory of another quota, with the error of two file
    /// systems. A descriptor of the file would otherwise draw on the first quota while it fills the second directory.
    fn require_same_quota(&self, from: &Resource<Descriptor>, to: &Resource<Descriptor>) -> FsResult<()> {
        if self.has_same_quota(from, to) {
            return Ok(());
        }
        Err(types::ErrorCode::CrossDevice.into())
    }

    /// Returns whether two directories have the same quota, so that files can move between them. Also returns `true` if one of
    /// them is granted for reading only and has no quota: wasmtime refuses to change that directory.
    fn has_same_quota(&self, from: &Resource<Descriptor>, to: &Resource<Descriptor>) -> bool {
        match (self.quota(from), self.quota(to)) {
            (Some(from), Some(to)) => Arc::ptr_eq(&from, &to),
            _ => true,
        }
    }

    /// Opens a directory for reading its entries. The returned handle refers to a [`DirectoryListing`], which replaces wasmtime's
    /// iterator in the resource table.
    async fn open_listing(&mut self, directory: Resource<Descriptor>) -> FsResult<Resource<ReaddirIterator>> {
        let Descriptor::Dir(directory) = self.wasi.table.get(&directory)? else {
            return Err(types::ErrorCode::NotDirectory.into());
        };
        let listing = DirectoryListing::open(directory.dir.clone()).await?;
        let listing = self.wasi.table.push(listing)?;
        Ok(Resource::new_own(listing.rep()))
    }

    /// Wraps an output stream, so that its writes draw on the quota of the file. Returns the stream unchanged if the descriptor
    /// has no quota or is a directory. `position` is the position of the first write; `None` for a stream that appends.
    fn with_quota(
        &mut self,
        descriptor: &Resource<Descriptor>,
        stream: Resource<DynOutputStream>,
        position: Option<u64>,
    ) -> FsResult<Resource<DynOutputStream>> {
        let Some(quota) = self.quota(descriptor) else {
            return Ok(stream);
        };
        let Descriptor::File(file) = self.wasi.table.get(descriptor)? else {
            return Ok(stream);
        };
        let file = file.file.clone();
        let inner = self.wasi.table.delete(stream)?;
        let stream: DynOutputStream = Box::new(QuotaStream::new(inner, quota, file, position));
        Ok(self.wasi.table.push(stream)?)
    }
}

impl preopens::Host for FilesView<'_> {
    fn get_directories(&mut self) -> wasmtime::Result<Vec<(Resource<Descriptor>, String)>> {
        let mut preopens = Vec::with_capacity(self.directories.len());
        for (directory, access_mode) in self.directories {
            let (perms, open_mode) = match access_mode {
                AccessMode::ReadWrite => (FsPerms::ReadWrite, OpenMode::READ | OpenMode::WRITE),
                AccessMode::Read => (FsPerms::ReadOnly, OpenMode::READ),
            };
            let handle = directory.handle()?;
            let descriptor = self
                .wasi
                .table
                .push(Descriptor::Dir(Dir::new(handle, perms, open_mode, false)))?;
            let open_descriptor = OpenDescriptor {
                path: directory.guest.clone(),
                grant: Some((directory.clone(), *access_mode)),
            };
            self.descriptors.insert(descriptor.rep(), open_descriptor);
            preopens.push((descriptor, directory.guest.clone()));
        }
        // Programs that were granted a directory often expect to have exactly that one. If the host could not open a granted one,
        // the operator must read why.
        let authority = self.authority;
        let is_some_refused =
            authority.is_some_and(|authority| !authority.rights.effective.unenforceable_directories.is_empty());
        if self.directories.is_empty() || is_some_refused {
            preopens.push((self.create_empty_root()?, "/".to_owned()));
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
        let listing = Resource::<DirectoryListing>::new_borrow(stream.rep());
        self.wasi.table.get_mut(&listing)?.next().await
    }

    fn drop(&mut self, stream: Resource<ReaddirIterator>) -> wasmtime::Result<()> {
        self.wasi
            .table
            .delete(Resource::<DirectoryListing>::new_own(stream.rep()))?;
        Ok(())
    }
}
