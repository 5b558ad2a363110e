//! Writing files that only their owner may read.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;

/// Replaces a file as a whole: who reads it sees the old content or the new one.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let beside = path.with_file_name(name);
    let written = write_new(&beside, bytes).and_then(|()| std::fs::rename(&beside, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&beside);
    }
    written
}

fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let _ = std::fs::remove_file(path);
    let mut file = private().create_new(true).write(true).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Waits until nobody else holds the lock of this name. It is held until the file is dropped, or its process ends.
pub fn lock(path: &Path) -> io::Result<std::fs::File> {
    let file = private().create(true).append(true).open(path)?;
    file.lock()?;
    Ok(file)
}

/// Adds a line to a file.
pub fn append_line(path: &Path, line: &str) -> io::Result<()> {
    let mut file = private().create(true).append(true).open(path)?;
    file.write_all(format!("{line}\n").as_bytes())?;
    file.sync_data()
}

fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    options
}
