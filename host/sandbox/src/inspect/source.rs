//! Reads the bytes of components.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::inspection::AdjacentWit;
use toolwit_core::limits::{ByteCount, WIT_BYTES_MAX};
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
        let bytes = read_component(path, bytes_max)?;
        let found: String = Sha256::digest(&bytes)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        if found != digest {
            let message = format!("the file {} changed after it was inspected", path.display());
            return Err(
                Error::new(ErrorKind::Io, Phase::Load, message).with_suggestion("load the plugin directory again")
            );
        }
        Ok(bytes.into())
    }
}

/// Reads the WIT file next to a component. `None` if it does not exist.
pub fn read_wit(path: &Path) -> Option<AdjacentWit> {
    if !path.exists() {
        return None;
    }
    let text = read_component(path, WIT_BYTES_MAX).map_err(|error| error.message.clone());
    let text = text.and_then(|bytes| String::from_utf8(bytes).map_err(|_| "it is not UTF-8 text".to_owned()));
    Some(text.map_or_else(AdjacentWit::Unreadable, AdjacentWit::Text))
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
