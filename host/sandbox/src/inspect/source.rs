//! Where a component's bytes come from.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest, Sha256};

use toolwit_core::limits::ByteCount;
use toolwit_core::{Error, ErrorKind, ExceededLimit, Phase};

/// Where a component's bytes come from. They are not kept in memory between inspecting and compiling.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    File(PathBuf),
    Bytes(Arc<[u8]>),
}

impl Source {
    /// Reads the bytes again, and refuses them when they are no longer those that were inspected.
    pub(crate) fn read(&self, digest: &str, bytes_max: u64) -> Result<Arc<[u8]>, Error> {
        let path = match self {
            Self::Bytes(bytes) => return Ok(bytes.clone()),
            Self::File(path) => path,
        };
        let bytes = read_component(path, bytes_max)?;
        let now: String = Sha256::digest(&bytes)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        if now != digest {
            let message = format!("the file {} changed after it was read", path.display());
            return Err(
                Error::new(ErrorKind::Io, Phase::Load, message).with_suggestion("load the plugin directory again")
            );
        }
        Ok(bytes.into())
    }
}

/// Reads WIT text beside a component. Docs are best effort: `None` for whatever is no small text file.
pub fn read_wit(path: &Path) -> Option<String> {
    String::from_utf8(read_component(path, super::docs::WIT_BYTES_MAX).ok()?).ok()
}

/// Reads a component file. What is no regular file is refused before it is opened for reading, and what is too large
/// before it is read.
///
/// # Errors
/// [`ErrorKind::Io`] or [`ErrorKind::FileBytes`].
pub fn read_component(path: &Path, bytes_max: u64) -> Result<Vec<u8>, Error> {
    let unreadable = |error: io::Error| {
        let message = format!("{} could not be read: {error}", path.display());
        Error::new(ErrorKind::Io, Phase::Load, message).with_source(error)
    };
    // Asking before opening: opening a pipe would wait for its writer.
    let metadata = std::fs::metadata(path).map_err(unreadable)?;
    if !metadata.is_file() {
        return Err(Error::new(
            ErrorKind::Io,
            Phase::Load,
            format!("{} is no regular file", path.display()),
        ));
    }
    let too_large = |found: u64| {
        let message = format!("it has {} and may have {}", ByteCount(found), ByteCount(bytes_max));
        Error::new(ErrorKind::FileBytes, Phase::Load, message).with_limit(ExceededLimit::new(
            "component_bytes_max",
            bytes_max,
            found,
        ))
    };
    if metadata.len() > bytes_max {
        return Err(too_large(metadata.len()));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or(0));
    // One byte more than allowed shows a file that grew since.
    File::open(path)
        .and_then(|file| file.take(bytes_max + 1).read_to_end(&mut bytes))
        .map_err(unreadable)?;
    if bytes.len() as u64 > bytes_max {
        return Err(too_large(bytes.len() as u64));
    }
    Ok(bytes)
}
