//! Reading untrusted files.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::Path;

use crate::limits::ByteCount;

/// Reads a regular file of at most `bytes_max` bytes as text.
///
/// # Errors
/// As [`read_file`], and [`io::ErrorKind::InvalidData`] if the file is not UTF-8.
pub fn read_text_file(path: &Path, bytes_max: u64) -> io::Result<String> {
    let bytes = read_file(path, bytes_max)?;
    String::from_utf8(bytes).map_err(|_| not_utf8())
}

/// Reads a regular file of at most `bytes_max` bytes as text, if only its owner may access it. On platforms other than
/// Unix, the permissions are not checked.
///
/// # Errors
/// As [`read_text_file`], and [`io::ErrorKind::PermissionDenied`] if other users may access the file.
pub fn read_private_text_file(path: &Path, bytes_max: u64) -> io::Result<String> {
    let bytes = read_regular_file(path, bytes_max, require_private)?;
    String::from_utf8(bytes).map_err(|_| not_utf8())
}

/// Reads a regular file of at most `bytes_max` bytes.
///
/// Only regular files are read, because a link in an untrusted repository can lead to a device, which has no end, or to a pipe,
/// which blocks until it has a writer. The limit also applies to a file that grows while it is read.
///
/// # Errors
/// If the file cannot be read, is not a regular file, or has more than `bytes_max` bytes.
pub fn read_file(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    read_regular_file(path, bytes_max, |_| Ok(()))
}

/// Opens a file for reading. Does not block if the path leads to a pipe.
fn open(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
    options.read(true).open(path)
}

/// Reads a regular file of at most `bytes_max` bytes, if `check_permissions` accepts its metadata.
fn read_regular_file(
    path: &Path,
    bytes_max: u64,
    check_permissions: impl Fn(&Metadata) -> io::Result<()>,
) -> io::Result<Vec<u8>> {
    let too_large = || {
        let message = format!("it is larger than {}", ByteCount(bytes_max));
        io::Error::new(io::ErrorKind::FileTooLarge, message)
    };
    let check = |metadata: &Metadata| {
        if !metadata.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
        }
        if metadata.len() > bytes_max {
            return Err(too_large());
        }
        check_permissions(metadata)
    };
    // The file is checked before it is opened, because opening a device can have an effect. It is checked again afterwards,
    // because the path may lead to another file by then.
    check(&std::fs::metadata(path)?)?;
    let file = open(path)?;
    let metadata = file.metadata()?;
    check(&metadata)?;
    // The vector has its final capacity from the start, because a vector that grows leaves copies of a secret in freed memory.
    let capacity = usize::try_from(metadata.len()).unwrap_or(0).saturating_add(1);
    let mut bytes = Vec::with_capacity(capacity);
    file.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        return Err(too_large());
    }
    Ok(bytes)
}

#[cfg(unix)]
fn require_private(metadata: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    if metadata.permissions().mode() & 0o077 != 0 {
        let message = "other users can access it; set its mode to 600";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
    }
    Ok(())
}

#[cfg(not(unix))]
#[allow(clippy::unnecessary_wraps, reason = "on Unix, the permissions can be wrong")]
fn require_private(_: &Metadata) -> io::Result<()> {
    Ok(())
}

fn not_utf8() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    // attack: J11
    #[test]
    fn only_regular_files_of_limited_size_are_read() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        std::fs::write(&file, "text").unwrap();
        assert_eq!(read_text_file(&file, 4).unwrap(), "text");
        let error_kind = |path: &Path, bytes_max| read_text_file(path, bytes_max).unwrap_err().kind();
        assert_eq!(error_kind(&file, 3), io::ErrorKind::FileTooLarge);
        assert_eq!(error_kind(directory.path(), 4), io::ErrorKind::InvalidInput);
        assert_eq!(
            error_kind(&directory.path().join("missing"), 4),
            io::ErrorKind::NotFound
        );
        std::fs::write(&file, [0xff]).unwrap();
        assert_eq!(read_file(&file, 4).unwrap(), [0xff]);
        assert_eq!(error_kind(&file, 4), io::ErrorKind::InvalidData);
        #[cfg(target_os = "linux")]
        {
            let link = directory.path().join("link");
            std::os::unix::fs::symlink("/dev/zero", &link).unwrap();
            assert_eq!(error_kind(&link, 4), io::ErrorKind::InvalidInput);
            let pipe = directory.path().join("pipe");
            assert!(
                std::process::Command::new("mkfifo")
                    .arg(&pipe)
                    .status()
                    .unwrap()
                    .success()
            );
            assert_eq!(error_kind(&pipe, 4), io::ErrorKind::InvalidInput);
            assert!(
                open(&pipe).is_ok(),
                "opening a path that becomes a pipe after the check does not block"
            );
            // The metadata of a file in `/proc` has the size 0, so the limit is checked while the file is read.
            std::fs::remove_file(&link).unwrap();
            std::os::unix::fs::symlink("/proc/self/status", &link).unwrap();
            assert_eq!(error_kind(&link, 4), io::ErrorKind::FileTooLarge);
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_private_file_is_refused_if_other_users_can_access_it() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        std::fs::write(&file, "text").unwrap();
        for (mode, is_allowed) in [
            (0o600, true),
            (0o400, true),
            (0o640, false),
            (0o604, false),
            (0o620, false),
        ] {
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
            let text = read_private_text_file(&file, 4);
            assert_eq!(
                text.as_deref().is_ok_and(|text| text == "text"),
                is_allowed,
                "{mode:o}: {text:?}"
            );
        }
    }
}
