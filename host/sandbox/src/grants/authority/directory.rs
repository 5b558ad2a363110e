//! Granted directories, opened when the grants are read.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::directory_quota::DirectoryQuota;
use crate::grants::{AccessMode, DirectoryRule};

/// What the kernel shows as files: the environment of processes, their memory, devices.
const KERNELS: [&str; 3] = ["/proc", "/sys", "/dev"];

/// A directory of the host that a guest sees. It stays this directory, whatever its path comes to mean later.
#[derive(Debug)]
pub(crate) struct OpenDirectory {
    handle: File,
    pub(crate) guest: String,
    pub(crate) access: AccessMode,
    pub(crate) quota: Arc<DirectoryQuota>,
}

impl OpenDirectory {
    /// Opens the directory of a rule. `protected` are the host's own files; `quota` finds what is counted already.
    ///
    /// # Errors
    /// When it is not there, is no directory, or is or holds what no plugin may see.
    pub(crate) fn open(
        rule: &DirectoryRule,
        protected: &[PathBuf],
        quota: impl FnOnce(&Path, u64) -> Arc<DirectoryQuota>,
    ) -> io::Result<Self> {
        // A link is followed here, once: the operator wrote it.
        let path = fs::canonicalize(&rule.host)?;
        if !fs::metadata(&path)?.is_dir() {
            return Err(io::Error::other("it is no directory"));
        }
        if path.parent().is_none() {
            return Err(io::Error::other("it is the whole file system"));
        }
        if let Some(kernel) = KERNELS.iter().find(|kernel| path.starts_with(kernel)) {
            let why = format!("{kernel} shows and changes processes and devices, not files");
            return Err(io::Error::other(why));
        }
        if let Some(own) = protected
            .iter()
            .find(|own| own.starts_with(&path) || path.starts_with(own))
        {
            return Err(io::Error::other(format!(
                "it holds {}, which belongs to the host",
                own.display()
            )));
        }
        let handle = open_directory(&path)?;
        Ok(Self {
            handle,
            guest: rule.guest.clone(),
            access: rule.access,
            quota: quota(&path, rule.quota_bytes),
        })
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
        Err(io::Error::other("it is no directory"))
    }
}

#[cfg(all(test, target_os = "linux"))]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    // attack: C3
    #[test]
    fn what_the_kernel_shows_as_files_cannot_be_granted() {
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
