//! Granted directories, opened when the grants file is read.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::quota::DirectoryQuota;
use crate::grants::DirectoryRule;

/// File systems that expose processes, their environment and memory, and devices.
const KERNEL_FILE_SYSTEMS: [&str; 3] = ["/proc", "/sys", "/dev"];

/// An open directory of the host. It refers to the same directory even if its path is renamed or replaced by a link.
#[derive(Debug)]
pub(crate) struct OpenDirectory {
    handle: File,
    /// The real path, without links, at the time of opening.
    pub(crate) path: PathBuf,
    /// The path at which the guest sees it.
    pub(crate) guest: String,
    pub(crate) quota: Arc<DirectoryQuota>,
}

impl OpenDirectory {
    /// Opens the directory of a rule. `protected` lists the host's own files; `quota` returns the quota of a directory.
    ///
    /// # Errors
    /// If the directory does not exist, is not a directory, or is, contains or is inside a protected path or a kernel
    /// file system.
    pub(crate) fn open(
        rule: &DirectoryRule,
        protected: &[PathBuf],
        quota: impl FnOnce(&Path, u64) -> Arc<DirectoryQuota>,
    ) -> io::Result<Self> {
        let path = Self::check(rule, protected)?;
        Ok(Self {
            handle: open_directory(&path)?,
            guest: rule.guest.clone(),
            quota: quota(&path, rule.quota_bytes),
            path,
        })
    }

    /// Checks that the directory of a rule can be granted. Returns its real path.
    ///
    /// # Errors
    /// Those of [`OpenDirectory::open`].
    pub(crate) fn check(rule: &DirectoryRule, protected: &[PathBuf]) -> io::Result<PathBuf> {
        // Follows links only here: the operator chose this path.
        let path = fs::canonicalize(&rule.host)?;
        if !fs::metadata(&path)?.is_dir() {
            return Err(io::Error::other("it is not a directory"));
        }
        if path.parent().is_none() {
            return Err(io::Error::other("it is the root of the file system"));
        }
        if let Some(kernel) = KERNEL_FILE_SYSTEMS.iter().find(|kernel| path.starts_with(kernel)) {
            let why = format!("{kernel} exposes processes and devices, not files");
            return Err(io::Error::other(why));
        }
        if let Some(own) = protected
            .iter()
            .find(|own| own.starts_with(&path) || path.starts_with(own))
        {
            return Err(io::Error::other(format!(
                "it is or contains {}, which belongs to the host",
                own.display()
            )));
        }
        Ok(path)
    }

    pub(crate) fn handle(&self) -> io::Result<File> {
        self.handle.try_clone()
    }
}

#[cfg(windows)]
fn open_directory(path: &Path) -> io::Result<File> {
    use std::os::windows::fs::OpenOptionsExt;
    const FILE_FLAG_BACKUP_SEMANTICS: u32 = 0x0200_0000;
    fs::OpenOptions::new()
        .read(true)
        .custom_flags(FILE_FLAG_BACKUP_SEMANTICS)
        .open(path)
}

#[cfg(not(windows))]
fn open_directory(path: &Path) -> io::Result<File> {
    let handle = File::open(path)?;
    if handle.metadata()?.is_dir() {
        Ok(handle)
    } else {
        Err(io::Error::other("it is not a directory"))
    }
}

#[cfg(all(test, target_os = "linux"))]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    // attack: C3
    #[test]
    fn kernel_file_systems_cannot_be_granted() {
        let open = |host: &str| {
            let rule: DirectoryRule = toml::from_str(&format!("host = {host:?}\nguest = \"/w\"")).unwrap();
            OpenDirectory::open(&rule, &[], |path, bytes_max| {
                Arc::new(DirectoryQuota::new(path.to_owned(), bytes_max))
            })
        };
        for host in ["/proc", "/proc/self", "/dev"] {
            let error = open(host).unwrap_err();
            assert!(error.to_string().contains("processes and devices"), "{host}: {error}");
        }
        open(tempfile::tempdir().unwrap().path().to_str().unwrap()).unwrap();
    }
}
