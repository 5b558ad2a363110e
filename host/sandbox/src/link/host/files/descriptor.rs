//! The operations on descriptors in WASI 0.2, around wasmtime's implementation. They do not use the empty root, they reserve quota
//! for the disk space that they use, and they record each access to a path.

use wasmtime::component::Resource;
use wasmtime_wasi::filesystem::Descriptor;
use wasmtime_wasi::p2::bindings::filesystem::types;
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream, FsError, FsResult, ReaddirIterator};

use super::{EmptyRoot, FilesView, OpenDescriptor};
use crate::grants::AccessMode;
use crate::grants::directories::ENTRY_BYTES;
use toolwit_core::limits::GUEST_PATH_BYTES_MAX;

/// Returns another borrowed handle of a resource, because a call of wasmtime's implementation consumes the handle.
fn reborrow<T: 'static>(resource: &Resource<T>) -> Resource<T> {
    Resource::new_borrow(resource.rep())
}

/// Forwards calls on a descriptor to wasmtime's implementation. Refuses the empty root.
macro_rules! forward {
    ($($name:ident($fd:ident: Fd $(, $arg:ident: $ty:ty)*) -> $result:ty;)*) => {
        $(async fn $name(&mut self, $fd: Fd $(, $arg: $ty)*) -> $result {
            self.refuse_empty_root(&$fd)?;
            types::HostDescriptor::$name(&mut self.wasi, $fd $(, $arg)*).await
        })*
    };
}

/// Forwards calls on a path to wasmtime's implementation. Refuses the empty root, and records the access, allowed or denied.
macro_rules! forward_path {
    ($($mode:ident $name:ident([$($flags:ident: $flags_ty:ty)?] path $(, $arg:ident: $ty:ty)*) -> $result:ty;)*) => {
        $(async fn $name(&mut self, fd: Fd, $($flags: $flags_ty,)? path: String $(, $arg: $ty)*) -> $result {
            let guest_path = self.guest_path(&fd, &path);
            let outcome = match self.refuse_empty_root(&fd) {
                Ok(()) => types::HostDescriptor::$name(&mut self.wasi, fd, $($flags,)? path $(, $arg)*).await,
                Err(error) => Err(error),
            };
            self.record_outcome(&guest_path, AccessMode::$mode, outcome)
        })*
    };
}

type Fd = Resource<Descriptor>;

impl types::HostDescriptor for FilesView<'_> {
    forward! {
        advise(fd: Fd, offset: u64, len: u64, advice: types::Advice) -> FsResult<()>;
        sync_data(fd: Fd) -> FsResult<()>;
        sync(fd: Fd) -> FsResult<()>;
        set_times(fd: Fd, accessed: types::NewTimestamp, modified: types::NewTimestamp) -> FsResult<()>;
        read(fd: Fd, len: u64, offset: u64) -> FsResult<(Vec<u8>, bool)>;
        stat(fd: Fd) -> FsResult<types::DescriptorStat>;
        metadata_hash(fd: Fd) -> FsResult<types::MetadataHashValue>;
    }

    forward_path! {
        ReadWrite set_times_at([flags: types::PathFlags] path, accessed: types::NewTimestamp,
            modified: types::NewTimestamp) -> FsResult<()>;
        Read stat_at([flags: types::PathFlags] path) -> FsResult<types::DescriptorStat>;
        Read readlink_at([] path) -> FsResult<String>;
        ReadWrite remove_directory_at([] path) -> FsResult<()>;
        ReadWrite unlink_file_at([] path) -> FsResult<()>;
        Read metadata_hash_at([flags: types::PathFlags] path) -> FsResult<types::MetadataHashValue>;
    }

    async fn read_directory(&mut self, fd: Fd) -> FsResult<Resource<ReaddirIterator>> {
        self.refuse_empty_root(&fd)?;
        self.open_listing(fd).await
    }

    async fn get_flags(&mut self, fd: Fd) -> FsResult<types::DescriptorFlags> {
        if self.is_empty_root(&fd) {
            return Ok(types::DescriptorFlags::READ);
        }
        types::HostDescriptor::get_flags(&mut self.wasi, fd).await
    }

    async fn get_type(&mut self, fd: Fd) -> FsResult<types::DescriptorType> {
        if self.is_empty_root(&fd) {
            return Ok(types::DescriptorType::Directory);
        }
        types::HostDescriptor::get_type(&mut self.wasi, fd).await
    }

    async fn is_same_object(&mut self, first: Fd, second: Fd) -> wasmtime::Result<bool> {
        if self.is_empty_root(&first) || self.is_empty_root(&second) {
            return Ok(self.is_empty_root(&first) && self.is_empty_root(&second));
        }
        types::HostDescriptor::is_same_object(&mut self.wasi, first, second).await
    }

    async fn rename_at(&mut self, fd: Fd, path: String, to: Fd, new_path: String) -> FsResult<()> {
        let guest_paths = [self.guest_path(&fd, &path), self.guest_path(&to, &new_path)];
        let check = self
            .refuse_empty_root(&fd)
            .and_then(|()| self.refuse_empty_root(&to))
            .and_then(|()| self.require_same_quota(&fd, &to));
        let outcome = match check {
            Ok(()) => types::HostDescriptor::rename_at(&mut self.wasi, fd, path, to, new_path).await,
            Err(error) => Err(error),
        };
        guest_paths.iter().fold(outcome, |outcome, guest_path| {
            self.record_outcome(guest_path, AccessMode::ReadWrite, outcome)
        })
    }

    async fn set_size(&mut self, fd: Fd, size: u64) -> FsResult<()> {
        self.refuse_empty_root(&fd)?;
        let hole_bytes = self.hole_bytes(&fd, size)?;
        let _reservation = self.reserve(&fd, hole_bytes).await?;
        types::HostDescriptor::set_size(&mut self.wasi, fd, size).await
    }

    async fn write(&mut self, fd: Fd, bytes: Vec<u8>, offset: u64) -> FsResult<u64> {
        self.refuse_empty_root(&fd)?;
        let hole_bytes = self.hole_bytes(&fd, offset)?;
        let _reservation = self.reserve(&fd, hole_bytes.saturating_add(bytes.len() as u64)).await?;
        types::HostDescriptor::write(&mut self.wasi, fd, bytes, offset).await
    }

    async fn create_directory_at(&mut self, fd: Fd, path: String) -> FsResult<()> {
        let guest_path = self.guest_path(&fd, &path);
        let outcome = self.create_directory(fd, path).await;
        self.record_outcome(&guest_path, AccessMode::ReadWrite, outcome)
    }

    async fn link_at(
        &mut self,
        fd: Fd,
        flags: types::PathFlags,
        path: String,
        to: Fd,
        new_path: String,
    ) -> FsResult<()> {
        let guest_paths = [self.guest_path(&fd, &path), self.guest_path(&to, &new_path)];
        let outcome = self.create_hard_link(fd, flags, path, to, new_path).await;
        guest_paths.iter().fold(outcome, |outcome, guest_path| {
            self.record_outcome(guest_path, AccessMode::ReadWrite, outcome)
        })
    }

    async fn symlink_at(&mut self, fd: Fd, target: String, path: String) -> FsResult<()> {
        let guest_path = self.guest_path(&fd, &path);
        let outcome = self.create_symlink(fd, target, path).await;
        self.record_outcome(&guest_path, AccessMode::ReadWrite, outcome)
    }

    async fn open_at(
        &mut self,
        fd: Fd,
        path_flags: types::PathFlags,
        path: String,
        open_flags: types::OpenFlags,
        flags: types::DescriptorFlags,
    ) -> FsResult<Fd> {
        use types::{DescriptorFlags, OpenFlags};
        let can_change = open_flags.intersects(OpenFlags::CREATE | OpenFlags::TRUNCATE)
            || flags.intersects(DescriptorFlags::WRITE | DescriptorFlags::MUTATE_DIRECTORY);
        let mode = if can_change {
            AccessMode::ReadWrite
        } else {
            AccessMode::Read
        };
        let guest_path = self.guest_path(&fd, &path);
        // Each open descriptor stores its path. A guest could open ever longer paths through a link that leads to its own directory.
        if guest_path.len() > GUEST_PATH_BYTES_MAX {
            return Err(types::ErrorCode::NameTooLong.into());
        }
        let directory = self.descriptors.get(&fd.rep());
        let grant = directory.and_then(|directory| directory.grant.clone());
        let outcome = self.open(fd, path_flags, path, open_flags, flags).await;
        let opened = self.record_outcome(&guest_path, mode, outcome)?;
        if let (Some((directory, _)), Descriptor::File(file)) = (&grant, self.wasi.table.get(&opened)?) {
            directory.track(&file.file);
        }
        self.descriptors.insert(
            opened.rep(),
            OpenDescriptor {
                path: guest_path,
                grant,
            },
        );
        Ok(opened)
    }

    fn drop(&mut self, fd: Fd) -> wasmtime::Result<()> {
        let is_empty_root = self.is_empty_root(&fd);
        self.descriptors.remove(&fd.rep());
        if is_empty_root {
            self.wasi.table.delete(Resource::<EmptyRoot>::new_own(fd.rep()))?;
            return Ok(());
        }
        types::HostDescriptor::drop(&mut self.wasi, fd)
    }

    fn read_via_stream(&mut self, fd: Fd, offset: u64) -> FsResult<Resource<DynInputStream>> {
        self.refuse_empty_root(&fd)?;
        types::HostDescriptor::read_via_stream(&mut self.wasi, fd, offset)
    }

    fn write_via_stream(&mut self, fd: Fd, offset: u64) -> FsResult<Resource<DynOutputStream>> {
        self.refuse_empty_root(&fd)?;
        let stream = types::HostDescriptor::write_via_stream(&mut self.wasi, reborrow(&fd), offset)?;
        self.with_quota(&fd, stream, Some(offset))
    }

    fn append_via_stream(&mut self, fd: Fd) -> FsResult<Resource<DynOutputStream>> {
        self.refuse_empty_root(&fd)?;
        let stream = types::HostDescriptor::append_via_stream(&mut self.wasi, reborrow(&fd))?;
        self.with_quota(&fd, stream, None)
    }
}

impl FilesView<'_> {
    async fn create_directory(&mut self, fd: Fd, path: String) -> FsResult<()> {
        self.refuse_empty_root(&fd)?;
        let _reservation = self.reserve(&fd, ENTRY_BYTES).await?;
        types::HostDescriptor::create_directory_at(&mut self.wasi, fd, path).await
    }

    /// Creates a hard link. The quota counts the content again, because the link can outlive the original.
    async fn create_hard_link(
        &mut self,
        fd: Fd,
        flags: types::PathFlags,
        path: String,
        to: Fd,
        new_path: String,
    ) -> FsResult<()> {
        self.refuse_empty_root(&fd)?;
        self.refuse_empty_root(&to)?;
        self.require_same_quota(&fd, &to)?;
        let stat = types::HostDescriptor::stat_at(&mut self.wasi, reborrow(&fd), flags, path.clone()).await?;
        let _reservation = self.reserve(&to, stat.size.saturating_add(ENTRY_BYTES)).await?;
        types::HostDescriptor::link_at(&mut self.wasi, fd, flags, path, to, new_path).await
    }

    async fn create_symlink(&mut self, fd: Fd, target: String, path: String) -> FsResult<()> {
        self.refuse_empty_root(&fd)?;
        let _reservation = self
            .reserve(&fd, ENTRY_BYTES.saturating_add(target.len() as u64))
            .await?;
        types::HostDescriptor::symlink_at(&mut self.wasi, fd, target, path).await
    }

    /// Opens a regular file, a directory or a symbolic link. Refuses all other types, because opening a pipe could block a
    /// thread of the host.
    async fn open(
        &mut self,
        fd: Fd,
        path_flags: types::PathFlags,
        path: String,
        open_flags: types::OpenFlags,
        flags: types::DescriptorFlags,
    ) -> FsResult<Fd> {
        self.refuse_empty_root(&fd)?;
        let stat_result = types::HostDescriptor::stat_at(&mut self.wasi, reborrow(&fd), path_flags, path.clone()).await;
        let _reservation = match stat_result {
            Ok(stat) => {
                require_openable(stat.type_)?;
                None
            }
            Err(_) if open_flags.contains(types::OpenFlags::CREATE) => self.reserve(&fd, ENTRY_BYTES).await?,
            Err(error) => return Err(error),
        };
        let opened = types::HostDescriptor::open_at(&mut self.wasi, fd, path_flags, path, open_flags, flags).await?;
        // Another process may have replaced the file after the first check.
        let type_ = types::HostDescriptor::get_type(&mut self.wasi, reborrow(&opened)).await?;
        if let Err(error) = require_openable(type_) {
            types::HostDescriptor::drop(&mut self.wasi, opened).map_err(FsError::trap)?;
            return Err(error);
        }
        Ok(opened)
    }
}

fn require_openable(type_: types::DescriptorType) -> FsResult<()> {
    use types::DescriptorType::{Directory, RegularFile, SymbolicLink};
    match type_ {
        RegularFile | Directory | SymbolicLink => Ok(()),
        _ => Err(types::ErrorCode::NotPermitted.into()),
    }
}
