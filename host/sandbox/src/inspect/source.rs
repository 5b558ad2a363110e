//! Reads component files and the WIT files next to them, and retains the bytes of components within a limit.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sha2::{Digest, Sha256};

use super::inspection::AdjacentWit;
use toolwit_core::file::read_file;
use toolwit_core::limits::{ByteCount, WIT_BYTES_MAX};
use toolwit_core::{Error, ErrorKind, ExceededLimit, Phase};

/// The maximum size of all retained components of the process, in bytes. A component that would exceed the limit is not retained.
/// Its file is read again when it is compiled.
const RETAINED_BYTES_MAX: u64 = 128 << 20;

/// The size of all retained components of the process, in bytes.
static RETAINED_BYTES: AtomicU64 = AtomicU64::new(0);

/// The source of a component's bytes. The bytes of a file are in memory only while they are retained; otherwise the file is
/// read again when the component is compiled.
#[derive(Clone, Debug)]
pub(crate) enum ComponentSource {
    File(ComponentFile),
    Bytes(Arc<[u8]>),
}

/// A component file, with its bytes as long as they are retained. Clones share the retained bytes.
#[derive(Clone, Debug)]
pub(crate) struct ComponentFile {
    path: PathBuf,
    retention: Arc<Mutex<Retention>>,
}

/// Whether the bytes of a file are in memory.
#[derive(Debug, Default)]
enum Retention {
    #[default]
    NotRetained,
    Retained(RetainedBytes),
    /// The component is compiled. Its bytes are not needed any more, so they are not retained again.
    Released,
}

impl ComponentFile {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self {
            path,
            retention: Arc::default(),
        }
    }

    fn retention(&self) -> MutexGuard<'_, Retention> {
        self.retention.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The bytes of a component, which count towards [`RETAINED_BYTES_MAX`] until they are dropped.
#[derive(Debug)]
struct RetainedBytes(Arc<[u8]>);

impl RetainedBytes {
    /// Counts bytes as retained. Returns `None` if the process would then retain more than the limit.
    fn new(bytes: Arc<[u8]>) -> Option<Self> {
        let size = bytes.len() as u64;
        // Create the value before the check: if the limit is exceeded, dropping the value subtracts its size again.
        let retained = Self(bytes);
        let total = RETAINED_BYTES.fetch_add(size, Ordering::Relaxed).saturating_add(size);
        (total <= RETAINED_BYTES_MAX).then_some(retained)
    }
}

impl Drop for RetainedBytes {
    fn drop(&mut self) {
        RETAINED_BYTES.fetch_sub(self.0.len() as u64, Ordering::Relaxed);
    }
}

impl ComponentSource {
    /// Retains the bytes of a file, so that later changes of the file have no effect. Does nothing if the file has already changed
    /// or cannot be read, if the process would retain more than [`RETAINED_BYTES_MAX`], or after [`ComponentSource::release`].
    pub(crate) fn retain(&self, digest: &str, size: u64, bytes_max: u64) {
        let Self::File(file) = self else { return };
        let mut retention = file.retention();
        if matches!(*retention, Retention::NotRetained)
            && RETAINED_BYTES.load(Ordering::Relaxed).saturating_add(size) <= RETAINED_BYTES_MAX
            && let Ok(bytes) = read_unchanged(&file.path, digest, bytes_max)
            && let Some(retained) = RetainedBytes::new(bytes)
        {
            *retention = Retention::Retained(retained);
        }
    }

    /// Releases retained bytes for good, because the component has been compiled and linked.
    pub(crate) fn release(&self) {
        if let Self::File(file) = self {
            *file.retention() = Retention::Released;
        }
    }

    /// Returns the bytes. Refuses a file whose digest has changed since the inspection, unless its bytes are retained.
    pub(crate) fn read(&self, digest: &str, bytes_max: u64) -> Result<Arc<[u8]>, Error> {
        let file = match self {
            Self::Bytes(bytes) => return Ok(bytes.clone()),
            Self::File(file) => file,
        };
        let retained = match &*file.retention() {
            Retention::Retained(retained) => Some(retained.0.clone()),
            Retention::NotRetained | Retention::Released => None,
        };
        retained.map_or_else(|| read_unchanged(&file.path, digest, bytes_max), Ok)
    }
}

/// Reads a component file. Refuses a file that does not have this digest.
fn read_unchanged(path: &Path, digest: &str, bytes_max: u64) -> Result<Arc<[u8]>, Error> {
    // A model may read the error message, so the path is not in the message. The path is in the source of the error, for the log.
    let bytes = read_component(path, bytes_max).map_err(|error| {
        Error::new(error.kind, Phase::Load, "the component file can no longer be read")
            .with_suggestion("load the plugin directory again")
            .with_source(error)
    })?;
    let current_digest: String = Sha256::digest(&bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    if current_digest != digest {
        let message = "the component file changed after it was inspected";
        return Err(Error::new(ErrorKind::Io, Phase::Load, message)
            .with_suggestion("load the plugin directory again")
            .with_source(path.display().to_string()));
    }
    Ok(bytes.into())
}

/// Reads the WIT file next to a component. `None` if it does not exist.
pub fn read_wit(path: &Path) -> Option<AdjacentWit> {
    if !path.exists() {
        return None;
    }
    let text = read_package_file(path, WIT_BYTES_MAX).map_err(|error| error.message.clone());
    let text = text.and_then(|bytes| String::from_utf8(bytes).map_err(|_| "it is not UTF-8 text".to_owned()));
    Some(text.map_or_else(AdjacentWit::Unreadable, AdjacentWit::Text))
}

/// Reads a component file. Before opening, checks that the file is a regular file. Before reading, checks that the file has at most
/// `bytes_max` bytes. If the file is larger, the error names the limit `component_bytes_max`.
///
/// # Errors
/// [`ErrorKind::Io`] or [`ErrorKind::FileBytes`].
pub fn read_component(path: &Path, bytes_max: u64) -> Result<Vec<u8>, Error> {
    read_limited(path, bytes_max, Some("component_bytes_max"))
}

/// Reads another file of a package, such as its manifest, with the same checks as [`read_component`]. The error names no setting,
/// because an operator cannot change the maximum size.
///
/// # Errors
/// [`ErrorKind::Io`] or [`ErrorKind::FileBytes`].
pub fn read_package_file(path: &Path, bytes_max: u64) -> Result<Vec<u8>, Error> {
    read_limited(path, bytes_max, None)
}

/// Reads a regular file of at most `bytes_max` bytes. `setting` is the name of this limit, if an operator can change it.
fn read_limited(path: &Path, bytes_max: u64, setting: Option<&'static str>) -> Result<Vec<u8>, Error> {
    read_file(path, bytes_max).map_err(|error| match error.kind() {
        io::ErrorKind::FileTooLarge => {
            // The file may have become shorter since it was read, so at least the limit plus one byte is reported.
            let size = fs::metadata(path)
                .map_or(0, |metadata| metadata.len())
                .max(bytes_max.saturating_add(1));
            let message = format!("it has {} and may have {}", ByteCount(size), ByteCount(bytes_max));
            let too_large = Error::new(ErrorKind::FileBytes, Phase::Load, message);
            match setting {
                Some(setting) => too_large.with_limit(ExceededLimit::new(setting, bytes_max, size)),
                None => too_large,
            }
        }
        io::ErrorKind::InvalidInput => {
            let message = format!("{} is not a regular file", path.display());
            Error::new(ErrorKind::Io, Phase::Load, message).with_source(error)
        }
        _ => {
            let message = format!("{} could not be read: {error}", path.display());
            Error::new(ErrorKind::Io, Phase::Load, message).with_source(error)
        }
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// SHA-256 of `component`.
    const DIGEST: &str = "6985ca1f4daa5a584a28eae043a239cb96689af1337ea13afb63e00c2bf512fa";

    #[test]
    fn bytes_are_retained_until_they_are_released_and_never_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("component.wasm");
        let source = ComponentSource::File(ComponentFile::new(path.clone()));
        for is_released in [false, true] {
            fs::write(&path, "component").unwrap();
            source.retain(DIGEST, 9, 100);
            fs::remove_file(&path).unwrap();
            assert_eq!(source.read(DIGEST, 100).is_err(), is_released);
            source.release();
            source.read(DIGEST, 100).unwrap_err();
        }
    }
}
