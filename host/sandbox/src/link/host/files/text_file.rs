//! Reading a text file at once, for interfaces without descriptors.

use wasmtime::component::Resource;
use wasmtime_wasi::filesystem::Descriptor;
use wasmtime_wasi::p2::bindings::filesystem::{preopens, types};
use wasmtime_wasi::p2::{FsError, FsResult};

use super::FilesView;
use super::guest_path::join_paths;
use crate::grants::{AccessMode, AccessRequest};
use toolwit_core::limits::{ByteCount, GUEST_PATH_BYTES_MAX};

/// The maximum number of bytes that are read at once.
const CHUNK_BYTES: usize = 256 << 10;

/// Reads the text file at a path of the guest. Returns `None` if the path is invalid, or if the file is not granted, cannot be
/// read, is not text or is too large. The guest cannot distinguish these cases. Records for the operator that a grant is missing,
/// or that the file is not text or is too large.
///
/// Opens the file through a granted directory, as a guest with the interfaces of WASI would.
pub(crate) async fn read_text_file(
    files: &mut FilesView<'_>,
    path: &str,
    bytes_max: usize,
) -> wasmtime::Result<Option<String>> {
    if path.len() > GUEST_PATH_BYTES_MAX || path.contains('\0') {
        return Ok(None);
    }
    let path = join_paths("/", path);
    let directories = preopens::Host::get_directories(files)?;
    let candidates = directories.iter().filter_map(|(directory, directory_path)| {
        let relative = path
            .strip_prefix(directory_path.trim_end_matches('/'))?
            .strip_prefix('/')?;
        Some((directory_path.len(), directory.rep(), relative))
    });
    let outcome = match candidates.max_by_key(|(length, ..)| *length) {
        Some((_, directory, relative)) => {
            read_in_directory(files, Resource::new_borrow(directory), relative, bytes_max).await
        }
        None => Err(types::ErrorCode::NoEntry.into()),
    };
    for (directory, _) in directories {
        types::HostDescriptor::drop(files, directory)?;
    }
    let reason = match outcome {
        Ok(Ok(bytes)) => match String::from_utf8(bytes) {
            Ok(text) => return Ok(Some(text)),
            Err(_) => "the file is not text".to_owned(),
        },
        Ok(Err(())) => format!("the file has more than {}", ByteCount(bytes_max as u64)),
        // `open_at` has recorded the access to a path without a grant.
        Err(error) => return error.downcast().map(|_| None),
    };
    if let Some(authority) = files.authority {
        let access = AccessRequest::File(&path, AccessMode::Read).to_string();
        authority.record_refusal(access, reason, "use another file".to_owned());
    }
    Ok(None)
}

/// Reads the file at a path relative to a directory. The inner error means that the file has more than `bytes_max` bytes.
async fn read_in_directory(
    files: &mut FilesView<'_>,
    directory: Resource<Descriptor>,
    path: &str,
    bytes_max: usize,
) -> FsResult<Result<Vec<u8>, ()>> {
    use types::{DescriptorFlags, OpenFlags, PathFlags};
    let path = path.to_owned();
    let (flags, mode) = (PathFlags::SYMLINK_FOLLOW, DescriptorFlags::READ);
    let opened = types::HostDescriptor::open_at(files, directory, flags, path, OpenFlags::empty(), mode).await?;
    let descriptor = opened.rep();
    let bytes = read_to_end(files, descriptor, bytes_max).await;
    types::HostDescriptor::drop(files, opened).map_err(FsError::trap)?;
    bytes
}

/// Reads an open file. The inner error means that the file has more than `bytes_max` bytes.
async fn read_to_end(files: &mut FilesView<'_>, descriptor: u32, bytes_max: usize) -> FsResult<Result<Vec<u8>, ()>> {
    let mut bytes = Vec::new();
    loop {
        // Reading one byte more than the limit detects a file that is too large.
        let bytes_wanted = bytes_max.saturating_add(1).saturating_sub(bytes.len()).min(CHUNK_BYTES) as u64;
        let descriptor = Resource::new_borrow(descriptor);
        let (chunk, is_end) = types::HostDescriptor::read(files, descriptor, bytes_wanted, bytes.len() as u64).await?;
        let is_end = is_end || chunk.is_empty();
        bytes.extend(chunk);
        if bytes.len() > bytes_max {
            return Ok(Err(()));
        }
        if is_end {
            return Ok(Ok(bytes));
        }
    }
}
