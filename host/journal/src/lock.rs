//! The lock of a session: only one writer can hold it.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use toolwit_core::file::private_options;

/// The lock of a session: a file that the operating system unlocks when the lock is dropped, or when the process ends.
#[derive(Debug)]
pub(crate) struct SessionLock(#[allow(dead_code, reason = "holds the lock")] File);

impl SessionLock {
    /// Locks a session of a store. Returns `None` if another process or conversation holds the lock.
    pub(crate) fn acquire(directory: &Path, session: &str) -> io::Result<Option<Self>> {
        let file = lock_file(directory, session)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Returns whether a writer holds the lock of a session of a store.
    pub(crate) fn is_held(directory: &Path, session: &str) -> io::Result<bool> {
        // A shared lock does not conflict with another shared lock. So two processes can call this function at the same time,
        // and neither takes the other for a writer.
        match lock_file(directory, session)?.try_lock_shared() {
            Ok(()) => Ok(false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

fn lock_file(directory: &Path, session: &str) -> io::Result<File> {
    let mut options = private_options();
    options.read(true).write(true).create(true).truncate(false);
    options.open(directory.join(format!("{session}.lock")))
}

/// Returns the directory with the locks of a store.
pub(crate) fn directory(store: &Path) -> PathBuf {
    let mut name = store.as_os_str().to_owned();
    name.push(".locks");
    PathBuf::from(name)
}
