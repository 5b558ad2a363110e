//! `wasi:filesystem` 0.3. Each operation makes the same checks as its counterpart in 0.2, and then calls wasmtime's implementation.
//!
//! In 0.3, operations of one instance can run concurrently. Operations that use disk space run one after another, so that no
//! operation changes a file between the quota check and the write of another operation.

mod entries;

use std::sync::Arc;

use tokio::sync::{Mutex, OwnedMutexGuard, oneshot};
use wasmtime::AsContextMut;
use wasmtime::component::{Access, Accessor, FutureReader, Linker, Resource, StreamReader};
use wasmtime_wasi::filesystem::{Descriptor, WasiFilesystem};
use wasmtime_wasi::p2::bindings::filesystem::preopens as preopens2;
use wasmtime_wasi::p2::bindings::filesystem::types::HostDescriptor as HostDescriptor2;
use wasmtime_wasi::p3::bindings::filesystem::{preopens, types};
use wasmtime_wasi::p3::filesystem::{FilesystemError, FilesystemResult};

use self::entries::{create_hard_link, open};
use super::listing_stream::ListingStream;
use super::quota_stream::reserve;
use super::write_stream::{WritePosition, WriteStream};
use super::{FilesView, OpenDescriptor};
use crate::grants::AccessMode;
use crate::grants::directories::{DirectoryQuota, ENTRY_BYTES, Reservation};
use crate::link::host::host_state::HostState;
use toolwit_core::limits::GUEST_PATH_BYTES_MAX;
use types::HostDescriptorWithStore as Operations;

/// The type by which the linker selects the data of the host functions: a [`FilesView`].
pub(crate) struct GrantedFiles3;

impl wasmtime::component::HasData for GrantedFiles3 {
    type Data<'a> = FilesView<'a>;
}

type Fd = Resource<Descriptor>;

/// The access of a concurrent operation to the files of its store.
type FilesAccessor = Accessor<HostState, GrantedFiles3>;

/// A future of the guest: the outcome of an operation that sends a stream to the guest or receives a stream from it.
type OutcomeFuture = FutureReader<Result<(), types::ErrorCode>>;

/// Links the file system of WASI 0.3.
pub(crate) fn add_to_linker(linker: &mut Linker<HostState>) -> wasmtime::Result<()> {
    preopens::add_to_linker::<HostState, GrantedFiles3>(linker, HostState::files)?;
    types::add_to_linker::<HostState, GrantedFiles3>(linker, HostState::files)
}

/// Returns an accessor of the same store for wasmtime's implementation.
fn wasi_accessor(store: &FilesAccessor) -> Accessor<HostState, WasiFilesystem> {
    store.with_getter::<WasiFilesystem>(HostState::wasi_files)
}

fn with_files<T>(store: &FilesAccessor, work: impl FnOnce(&mut FilesView<'_>) -> T) -> T {
    store.with(|mut store| work(&mut store.get()))
}

/// Refuses an operation on the [`EmptyRoot`](super::EmptyRoot), as on a path that does not exist.
fn refuse_empty_root(store: &FilesAccessor, fd: &Fd) -> FilesystemResult<()> {
    if with_files(store, |files| files.is_empty_root(fd)) {
        return Err(types::ErrorCode::NoEntry.into());
    }
    Ok(())
}

/// Waits until no other operation of the instance uses disk space, and locks out other operations until the guard is dropped.
async fn lock_disk(store: &FilesAccessor) -> OwnedMutexGuard<()> {
    let disk_lock: Arc<Mutex<()>> = with_files(store, |files| files.disk_lock.clone());
    disk_lock.lock_owned().await
}

/// Reserves quota for bytes that are about to be written through a descriptor. Returns `None` if the descriptor has no quota.
async fn reserve_quota(store: &FilesAccessor, fd: &Fd, bytes: u64) -> FilesystemResult<Option<Reservation>> {
    match with_files(store, |files| files.quota(fd)) {
        Some(quota) => Ok(Some(reserve(&quota, bytes).await?)),
        None => Ok(None),
    }
}

/// Refuses to move or link a file from a directory of one quota to a directory of another quota, with the error of two file systems.
fn require_same_quota(store: &FilesAccessor, from: &Fd, to: &Fd) -> FilesystemResult<()> {
    let has_same_quota = with_files(store, |files| files.has_same_quota(from, to));
    if has_same_quota {
        return Ok(());
    }
    Err(types::ErrorCode::CrossDevice.into())
}

/// Forwards operations on a descriptor to wasmtime's implementation. Refuses the empty root.
macro_rules! forward {
    ($($name:ident($($arg:ident: $ty:ty),*) -> $result:ty;)*) => {
        $(async fn $name(store: &FilesAccessor, fd: Fd $(, $arg: $ty)*) -> FilesystemResult<$result> {
            refuse_empty_root(store, &fd)?;
            <WasiFilesystem as Operations<HostState>>::$name(&wasi_accessor(store), fd $(, $arg)*).await
        })*
    };
}

/// Forwards operations on a path to wasmtime's implementation. Refuses the empty root, and records the access, allowed or denied.
macro_rules! forward_path {
    ($($mode:ident $name:ident([$($flags:ident: $flags_ty:ty)?] path $(, $arg:ident: $ty:ty)*) -> $result:ty;)*) => {
        $(async fn $name(
            store: &FilesAccessor,
            fd: Fd,
            $($flags: $flags_ty,)?
            path: String
            $(, $arg: $ty)*
        ) -> FilesystemResult<$result> {
            let guest_path = with_files(store, |files| files.guest_path(&fd, &path));
            let outcome = match refuse_empty_root(store, &fd) {
                Ok(()) => {
                    let wasi = wasi_accessor(store);
                    <WasiFilesystem as Operations<HostState>>::$name(&wasi, fd, $($flags,)? path $(, $arg)*).await
                }
                Err(error) => Err(error),
            };
            with_files(store, |files| files.record_outcome(&guest_path, AccessMode::$mode, outcome))
        })*
    };
}

impl Operations<HostState> for GrantedFiles3 {
    forward! {
        advise(offset: u64, length: u64, advice: types::Advice) -> ();
        sync_data() -> ();
        sync() -> ();
        set_times(accessed: types::NewTimestamp, modified: types::NewTimestamp) -> ();
        stat() -> types::DescriptorStat;
        metadata_hash() -> types::MetadataHashValue;
    }

    forward_path! {
        ReadWrite set_times_at([flags: types::PathFlags] path, accessed: types::NewTimestamp,
            modified: types::NewTimestamp) -> ();
        Read stat_at([flags: types::PathFlags] path) -> types::DescriptorStat;
        Read readlink_at([] path) -> String;
        ReadWrite remove_directory_at([] path) -> ();
        ReadWrite unlink_file_at([] path) -> ();
        Read metadata_hash_at([flags: types::PathFlags] path) -> types::MetadataHashValue;
    }

    fn read_via_stream(
        mut store: Access<'_, HostState, Self>,
        fd: Fd,
        offset: u64,
    ) -> wasmtime::Result<(StreamReader<u8>, OutcomeFuture)> {
        if store.get().is_empty_root(&fd) {
            let stream = StreamReader::new(&mut store, std::iter::empty())?;
            return Ok((
                stream,
                failed_outcome_future(&mut store, types::ErrorCode::IsDirectory)?,
            ));
        }
        let wasi = Access::<HostState, WasiFilesystem>::new(store.as_context_mut(), HostState::wasi_files);
        <WasiFilesystem as Operations<HostState>>::read_via_stream(wasi, fd, offset)
    }

    fn write_via_stream(
        store: Access<'_, HostState, Self>,
        fd: Fd,
        data: StreamReader<u8>,
        offset: u64,
    ) -> wasmtime::Result<OutcomeFuture> {
        write_stream(store, &fd, data, WritePosition::At(offset))
    }

    fn append_via_stream(
        store: Access<'_, HostState, Self>,
        fd: Fd,
        data: StreamReader<u8>,
    ) -> wasmtime::Result<OutcomeFuture> {
        write_stream(store, &fd, data, WritePosition::End)
    }

    fn read_directory(
        mut store: Access<'_, HostState, Self>,
        fd: Fd,
    ) -> wasmtime::Result<(StreamReader<types::DirectoryEntry>, OutcomeFuture)> {
        let directory = {
            let files = store.get();
            match (files.is_empty_root(&fd), files.wasi.table.get(&fd)) {
                (false, Ok(Descriptor::Dir(directory))) => Some(directory.dir.clone()),
                (true, _) | (false, Ok(Descriptor::File(_))) => None,
                (false, Err(error)) => return Err(error.into()),
            }
        };
        let Some(directory) = directory else {
            let stream = StreamReader::new(&mut store, std::iter::empty())?;
            return Ok((
                stream,
                failed_outcome_future(&mut store, types::ErrorCode::NotDirectory)?,
            ));
        };
        let (sender, receiver) = oneshot::channel();
        let stream = StreamReader::new(&mut store, ListingStream::new(directory, sender))?;
        Ok((stream, FutureReader::new(&mut store, receiver)?))
    }

    async fn get_flags(store: &FilesAccessor, fd: Fd) -> FilesystemResult<types::DescriptorFlags> {
        if with_files(store, |files| files.is_empty_root(&fd)) {
            return Ok(types::DescriptorFlags::READ);
        }
        <WasiFilesystem as Operations<HostState>>::get_flags(&wasi_accessor(store), fd).await
    }

    async fn get_type(store: &FilesAccessor, fd: Fd) -> FilesystemResult<types::DescriptorType> {
        if with_files(store, |files| files.is_empty_root(&fd)) {
            return Ok(types::DescriptorType::Directory);
        }
        <WasiFilesystem as Operations<HostState>>::get_type(&wasi_accessor(store), fd).await
    }

    async fn is_same_object(store: &FilesAccessor, first: Fd, second: Fd) -> wasmtime::Result<bool> {
        let roots = with_files(store, |files| {
            [files.is_empty_root(&first), files.is_empty_root(&second)]
        });
        if roots.contains(&true) {
            return Ok(roots == [true, true]);
        }
        <WasiFilesystem as Operations<HostState>>::is_same_object(&wasi_accessor(store), first, second).await
    }

    async fn set_size(store: &FilesAccessor, fd: Fd, size: u64) -> FilesystemResult<()> {
        refuse_empty_root(store, &fd)?;
        let _disk_lock = lock_disk(store).await;
        let hole_bytes = with_files(store, |files| files.hole_bytes(&fd, size))?;
        let _reservation = reserve_quota(store, &fd, hole_bytes).await?;
        <WasiFilesystem as Operations<HostState>>::set_size(&wasi_accessor(store), fd, size).await
    }

    async fn create_directory_at(store: &FilesAccessor, fd: Fd, path: String) -> FilesystemResult<()> {
        let guest_path = with_files(store, |files| files.guest_path(&fd, &path));
        let create = async {
            refuse_empty_root(store, &fd)?;
            let _disk_lock = lock_disk(store).await;
            let _reservation = reserve_quota(store, &fd, ENTRY_BYTES).await?;
            <WasiFilesystem as Operations<HostState>>::create_directory_at(&wasi_accessor(store), fd, path).await
        };
        let outcome = create.await;
        with_files(store, |files| {
            files.record_outcome(&guest_path, AccessMode::ReadWrite, outcome)
        })
    }

    async fn link_at(
        store: &FilesAccessor,
        fd: Fd,
        flags: types::PathFlags,
        path: String,
        to: Fd,
        new_path: String,
    ) -> FilesystemResult<()> {
        let guest_paths = with_files(store, |files| {
            [files.guest_path(&fd, &path), files.guest_path(&to, &new_path)]
        });
        let outcome = create_hard_link(store, fd, flags, path, to, new_path).await;
        record_outcome_of_both_paths(store, &guest_paths, outcome)
    }

    async fn rename_at(store: &FilesAccessor, fd: Fd, path: String, to: Fd, new_path: String) -> FilesystemResult<()> {
        let guest_paths = with_files(store, |files| {
            [files.guest_path(&fd, &path), files.guest_path(&to, &new_path)]
        });
        let rename = async {
            refuse_empty_root(store, &fd)?;
            refuse_empty_root(store, &to)?;
            require_same_quota(store, &fd, &to)?;
            <WasiFilesystem as Operations<HostState>>::rename_at(&wasi_accessor(store), fd, path, to, new_path).await
        };
        let outcome = rename.await;
        record_outcome_of_both_paths(store, &guest_paths, outcome)
    }

    async fn symlink_at(store: &FilesAccessor, fd: Fd, target: String, path: String) -> FilesystemResult<()> {
        let guest_path = with_files(store, |files| files.guest_path(&fd, &path));
        let create = async {
            refuse_empty_root(store, &fd)?;
            let _disk_lock = lock_disk(store).await;
            let _reservation = reserve_quota(store, &fd, ENTRY_BYTES.saturating_add(target.len() as u64)).await?;
            <WasiFilesystem as Operations<HostState>>::symlink_at(&wasi_accessor(store), fd, target, path).await
        };
        let outcome = create.await;
        with_files(store, |files| {
            files.record_outcome(&guest_path, AccessMode::ReadWrite, outcome)
        })
    }

    async fn open_at(
        store: &FilesAccessor,
        fd: Fd,
        path_flags: types::PathFlags,
        path: String,
        open_flags: types::OpenFlags,
        flags: types::DescriptorFlags,
    ) -> FilesystemResult<Fd> {
        use types::{DescriptorFlags, OpenFlags};
        let can_change = open_flags.intersects(OpenFlags::CREATE | OpenFlags::TRUNCATE)
            || flags.intersects(DescriptorFlags::WRITE | DescriptorFlags::MUTATE_DIRECTORY);
        let mode = if can_change {
            AccessMode::ReadWrite
        } else {
            AccessMode::Read
        };
        let guest_path = with_files(store, |files| files.guest_path(&fd, &path));
        if guest_path.len() > GUEST_PATH_BYTES_MAX {
            return Err(types::ErrorCode::NameTooLong.into());
        }
        let grant = with_files(store, |files| {
            let directory = files.descriptors.get(&fd.rep());
            directory.and_then(|directory| directory.grant.clone())
        });
        let outcome = open(store, fd, path_flags, path, open_flags, flags).await;
        with_files(store, |files| {
            let opened = files.record_outcome(&guest_path, mode, outcome)?;
            let descriptor = files.wasi.table.get(&opened).map_err(FilesystemError::trap)?;
            if let (Some((directory, _)), Descriptor::File(file)) = (&grant, descriptor) {
                directory.track(&file.file);
            }
            files.descriptors.insert(
                opened.rep(),
                OpenDescriptor {
                    path: guest_path,
                    grant,
                },
            );
            Ok(opened)
        })
    }
}

/// Records the access to both paths of an operation, allowed or denied. Returns the outcome unchanged.
fn record_outcome_of_both_paths(
    store: &FilesAccessor,
    guest_paths: &[String; 2],
    outcome: FilesystemResult<()>,
) -> FilesystemResult<()> {
    with_files(store, |files| {
        let record = |outcome, guest_path: &String| files.record_outcome(guest_path, AccessMode::ReadWrite, outcome);
        guest_paths.iter().fold(outcome, record)
    })
}

/// Starts to write a stream to a file, within the quota of its directory. Returns the future of the outcome.
fn write_stream(
    mut store: Access<'_, HostState, GrantedFiles3>,
    fd: &Fd,
    mut data: StreamReader<u8>,
    position: WritePosition,
) -> wasmtime::Result<OutcomeFuture> {
    let target: Result<_, types::ErrorCode> = {
        let files = store.get();
        match (files.is_empty_root(fd), files.quota(fd)) {
            (true, _) => Err(types::ErrorCode::IsDirectory),
            (false, None) => Err(types::ErrorCode::NotPermitted),
            (false, Some(quota)) => match files.wasi.table.get(fd)? {
                Descriptor::File(file) => Ok((file.file.clone(), quota, files.disk_lock.clone())),
                Descriptor::Dir(_) => Err(types::ErrorCode::IsDirectory),
            },
        }
    };
    let (file, quota, disk_lock): (_, Arc<DirectoryQuota>, _) = match target {
        Ok(target) => target,
        Err(error) => {
            data.close(&mut store)?;
            return failed_outcome_future(&mut store, error);
        }
    };
    let (sender, receiver) = oneshot::channel();
    data.pipe(&mut store, WriteStream::new(file, quota, disk_lock, position, sender))?;
    FutureReader::new(&mut store, receiver)
}

/// Returns a future that is ready and has an error as its outcome.
fn failed_outcome_future(
    store: &mut Access<'_, HostState, GrantedFiles3>,
    error: types::ErrorCode,
) -> wasmtime::Result<OutcomeFuture> {
    FutureReader::new(store, async move { wasmtime::error::Ok(Err(error)) })
}

impl types::HostDescriptor for FilesView<'_> {
    fn drop(&mut self, fd: Fd) -> wasmtime::Result<()> {
        HostDescriptor2::drop(self, fd)
    }
}

impl types::Host for FilesView<'_> {
    fn convert_error_code(&mut self, error: FilesystemError) -> wasmtime::Result<types::ErrorCode> {
        error.downcast()
    }
}

impl preopens::Host for FilesView<'_> {
    fn get_directories(&mut self) -> wasmtime::Result<Vec<(Fd, String)>> {
        preopens2::Host::get_directories(self)
    }
}
