//! The lock of a directory. Only one build can hold the lock at a time.

use std::{
    fs::{self, File, TryLockError},
    path::Path,
    time::Duration,
};

use tokio::time::{Instant, sleep};

use crate::blocking::blocking;
use crate::{BuildError, Progress, Step};

/// The maximum time to wait for a build that holds the lock. Such a build may install packages and compile the standard
/// library.
const LOCK_WAIT_MAX: Duration = Duration::from_secs(60 * 60);

/// The interval between attempts to take the lock.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// The lock of a directory. It is released on drop, and when the process exits or is killed.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// Creates the directory, and waits until the lock is free. Dropping the future cancels the wait.
    ///
    /// # Errors
    /// [`BuildError::Locked`] after an hour, and [`BuildError::File`] if the directory or the lock cannot be used.
    pub(crate) async fn acquire(directory: &Path, progress: &dyn Progress) -> Result<Self, BuildError> {
        let path = directory.join("lock");
        let file = {
            let (dir, path) = (directory.to_owned(), path.clone());
            let open = move || {
                fs::create_dir_all(&dir)?;
                File::options().create(true).truncate(false).write(true).open(path)
            };
            let path = directory.to_owned();
            blocking(move || open().map_err(BuildError::file("write", path))).await?
        };
        let deadline = Instant::now() + LOCK_WAIT_MAX;
        let mut has_reported_wait = false;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { _file: file }),
                Err(TryLockError::Error(source)) => {
                    return Err(BuildError::File {
                        action: "lock",
                        path,
                        source,
                    });
                }
                Err(TryLockError::WouldBlock) if Instant::now() >= deadline => {
                    return Err(BuildError::Locked {
                        path,
                        limit_s: LOCK_WAIT_MAX.as_secs(),
                    });
                }
                Err(TryLockError::WouldBlock) => {}
            }
            if !has_reported_wait {
                progress.step(Step::WaitForBuild);
                has_reported_wait = true;
            }
            sleep(POLL_INTERVAL).await;
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::{BuildEvent, Silent};

    #[tokio::test(start_paused = true)]
    async fn a_build_reports_that_it_waits_for_a_lock_and_fails_after_an_hour() {
        let dir = tempfile::tempdir().unwrap();
        let waits = AtomicU32::new(0);
        let count_waits = |event: BuildEvent<'_>| {
            assert_eq!(event, BuildEvent::Step(&Step::WaitForBuild));
            waits.fetch_add(1, Ordering::Relaxed);
        };
        let first_lock = Lock::acquire(dir.path(), &Silent).await.unwrap();
        let error = Lock::acquire(dir.path(), &count_waits).await.unwrap_err();
        let lock_file = dir.path().join("lock");
        assert_eq!(
            error.to_string(),
            format!("another build still holds `{}` after 3600 s", lock_file.display())
        );
        let suggestion = error.suggestion().unwrap();
        assert!(!suggestion.contains("time limit"), "{suggestion}");
        assert_eq!(waits.load(Ordering::Relaxed), 1);

        drop(first_lock);
        Lock::acquire(dir.path(), &count_waits).await.unwrap();
        assert_eq!(
            waits.load(Ordering::Relaxed),
            1,
            "acquiring a free lock reports no wait"
        );
    }
}
