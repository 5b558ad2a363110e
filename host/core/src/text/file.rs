//! Reading files whose author may be anyone, and making the replacement of a file durable.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::limits::ByteCount;

/// Reads a regular file of at most `bytes_max` bytes as text.
///
/// # Errors
/// Those of [`read_file`], and if it is not UTF-8.
pub fn read_text_file(path: &Path, bytes_max: u64) -> io::Result<String> {
    let bytes = read_file(path, bytes_max)?;
    String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))
}

/// Reads a regular file of at most `bytes_max` bytes.
///
/// A device has no end, and opening a pipe waits for its writer: a link in the repository of someone else can lead to both. A file can
/// grow while it is read.
///
/// # Errors
/// If it cannot be read, is not a regular file, or is larger.
pub fn read_file(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    let too_large = || {
        let message = format!("it is larger than {}", ByteCount(bytes_max));
        io::Error::new(io::ErrorKind::FileTooLarge, message)
    };
    let check = |metadata: std::fs::Metadata| {
        if !metadata.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
        }
        if metadata.len() > bytes_max {
            return Err(too_large());
        }
        Ok(())
    };
    // Checked before it is opened, which may block, and afterwards, because the path may have another file by then.
    check(std::fs::metadata(path)?)?;
    let file = File::open(path)?;
    check(file.metadata()?)?;
    let mut bytes = Vec::new();
    let read = file.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes)?;
    if read as u64 > bytes_max {
        return Err(too_large());
    }
    Ok(bytes)
}

/// Makes a rename in the directory of a file survive a loss of power.
///
/// # Errors
/// If the directory cannot be opened or written.
#[cfg(unix)]
pub fn sync_directory_of(path: &Path) -> io::Result<()> {
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
    File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
}

/// Does nothing, because a directory cannot be opened as a file on this platform.
///
/// # Errors
/// None on this platform.
#[cfg(not(unix))]
#[allow(clippy::unnecessary_wraps, reason = "opening can fail on other platforms")]
pub fn sync_directory_of(_path: &Path) -> io::Result<()> {
    Ok(())
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
        let kind = |path: &Path, bytes_max| read_text_file(path, bytes_max).unwrap_err().kind();
        assert_eq!(kind(&file, 3), io::ErrorKind::FileTooLarge);
        assert_eq!(kind(directory.path(), 4), io::ErrorKind::InvalidInput);
        assert_eq!(kind(&directory.path().join("missing"), 4), io::ErrorKind::NotFound);
        std::fs::write(&file, [0xff]).unwrap();
        assert_eq!(read_file(&file, 4).unwrap(), [0xff]);
        assert_eq!(kind(&file, 4), io::ErrorKind::InvalidData);
        #[cfg(target_os = "linux")]
        {
            let link = directory.path().join("link");
            std::os::unix::fs::symlink("/dev/zero", &link).unwrap();
            assert_eq!(kind(&link, 4), io::ErrorKind::InvalidInput);
            // The size of a file of the kernel is not known before it is read.
            std::fs::remove_file(&link).unwrap();
            std::os::unix::fs::symlink("/proc/self/status", &link).unwrap();
            assert_eq!(kind(&link, 4), io::ErrorKind::FileTooLarge);
        }
    }
}
