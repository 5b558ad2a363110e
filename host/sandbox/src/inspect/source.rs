//! Reads the bytes of components.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest, Sha256};

use toolwit_core::limits::ByteCount;
use toolwit_core::{Error, ErrorKind, ExceededLimit, Phase};

/// The source of a component's bytes. A file is read again when it is compiled, so its bytes are not kept in memory.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    File(PathBuf),
    Bytes(Arc<[u8]>),
}

impl Source {
    /// Reads the bytes again. Refuses a file whose digest has changed since the inspection.
    pub(crate) fn read(&self, digest: &str, bytes_max: u64) -> Result<Arc<[u8]>, Error> {
        let path = match self {
            Self::Bytes(bytes) => return Ok(bytes.clone()),
            Self::File(path) => path,
        };
        // A model may read the error, so it does not contain the path. The source does, for the log.
        let bytes = read_component(path, bytes_max).map_err(|error| {
            Error::new(error.kind, Phase::Load, "the component file can no longer be read")
                .with_suggestion("load the plugin directory again")
                .with_source(error)
        })?;
        let found: String = Sha256::digest(&bytes)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        if found != digest {
            let message = "the component file changed after it was inspected";
            return Err(Error::new(ErrorKind::Io, Phase::Load, message)
                .with_suggestion("load the plugin directory again")
                .with_source(path.display().to_string()));
        }
        Ok(bytes.into())
    }
}

/// Reads the WIT file next to a component. Docs are best effort: `None` if the file is not UTF-8 text of at most
/// [`WIT_BYTES_MAX`](crate::WIT_BYTES_MAX) bytes.
pub fn read_wit(path: &Path) -> Option<String> {
    String::from_utf8(read_component(path, super::docs::WIT_BYTES_MAX).ok()?).ok()
}

/// Reads a component file. Before opening, refuses a file that is not a regular file. Before reading, refuses one that is too
/// large.
///
/// # Errors
/// [`ErrorKind::Io`] or [`ErrorKind::FileBytes`].
pub fn read_component(path: &Path, bytes_max: u64) -> Result<Vec<u8>, Error> {
    let unreadable = |error: io::Error| {
        let message = format!("{} could not be read: {error}", path.display());
        Error::new(ErrorKind::Io, Phase::Load, message).with_source(error)
    };
    // Checked before opening, because opening a named pipe waits for its writer.
    let metadata = std::fs::metadata(path).map_err(unreadable)?;
    if !metadata.is_file() {
        return Err(Error::new(
            ErrorKind::Io,
            Phase::Load,
            format!("{} is not a regular file", path.display()),
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
    // Reading one byte more than allowed detects a file that has grown since.
    File::open(path)
        .and_then(|file| file.take(bytes_max + 1).read_to_end(&mut bytes))
        .map_err(unreadable)?;
    if bytes.len() as u64 > bytes_max {
        return Err(too_large(bytes.len() as u64));
    }
    Ok(bytes)
}
