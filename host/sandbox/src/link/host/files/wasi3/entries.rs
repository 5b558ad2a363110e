//! The operations of WASI 0.3 that create a hard link or open a path.

use wasmtime::component::Resource;
use wasmtime_wasi::filesystem::WasiFilesystem;
use wasmtime_wasi::p3::bindings::filesystem::types;
use wasmtime_wasi::p3::filesystem::{FilesystemError, FilesystemResult};

use super::{
    Fd, FilesAccessor, Operations, lock_disk, refuse_empty_root, require_same_quota, reserve_quota, wasi_accessor,
    with_files,
};
use crate::grants::directories::ENTRY_BYTES;
use crate::link::host::host_state::HostState;

/// Creates a hard link. The quota counts the content again, because the link can outlive the original.
pub(super) async fn create_hard_link(
    store: &FilesAccessor,
    fd: Fd,
    flags: types::PathFlags,
    path: String,
    to: Fd,
    new_path: String,
) -> FilesystemResult<()> {
    refuse_empty_root(store, &fd)?;
    refuse_empty_root(store, &to)?;
    require_same_quota(store, &fd, &to)?;
    let _disk_lock = lock_disk(store).await;
    let wasi = wasi_accessor(store);
    let from = Resource::new_borrow(fd.rep());
    let stat = <WasiFilesystem as Operations<HostState>>::stat_at(&wasi, from, flags, path.clone()).await?;
    let _reservation = reserve_quota(store, &to, stat.size.saturating_add(ENTRY_BYTES)).await?;
    <WasiFilesystem as Operations<HostState>>::link_at(&wasi, fd, flags, path, to, new_path).await
}

/// Opens a regular file, a directory or a symbolic link. Refuses all other types, because opening a pipe could block a thread
/// of the host.
pub(super) async fn open(
    store: &FilesAccessor,
    fd: Fd,
    path_flags: types::PathFlags,
    path: String,
    open_flags: types::OpenFlags,
    flags: types::DescriptorFlags,
) -> FilesystemResult<Fd> {
    refuse_empty_root(store, &fd)?;
    let _disk_lock = lock_disk(store).await;
    let wasi = wasi_accessor(store);
    let directory = Resource::new_borrow(fd.rep());
    let stat_result =
        <WasiFilesystem as Operations<HostState>>::stat_at(&wasi, directory, path_flags, path.clone()).await;
    let _reservation = match stat_result {
        Ok(stat) => {
            require_openable(&stat.type_)?;
            None
        }
        Err(_) if open_flags.contains(types::OpenFlags::CREATE) => reserve_quota(store, &fd, ENTRY_BYTES).await?,
        Err(error) => return Err(error),
    };
    let opened =
        <WasiFilesystem as Operations<HostState>>::open_at(&wasi, fd, path_flags, path, open_flags, flags).await?;
    // Another process may have replaced the file after the first check.
    let handle = Resource::new_borrow(opened.rep());
    let type_ = <WasiFilesystem as Operations<HostState>>::get_type(&wasi, handle).await?;
    if let Err(error) = require_openable(&type_) {
        with_files(store, |files| files.wasi.table.delete(opened)).map_err(FilesystemError::trap)?;
        return Err(error);
    }
    Ok(opened)
}

fn require_openable(type_: &types::DescriptorType) -> FilesystemResult<()> {
    use types::DescriptorType::{Directory, RegularFile, SymbolicLink};
    match type_ {
        RegularFile | Directory | SymbolicLink => Ok(()),
        _ => Err(types::ErrorCode::NotPermitted.into()),
    }
}
