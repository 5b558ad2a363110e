//! A lock that lets only one process at a time prepare the compiler.

use std::{
    fs::{self, File, TryLockError},
    path::Path,
    time::Duration,
};

use tokio::time::{Instant, sleep};

use crate::blocking::blocking;
use crate::{BuildError, Progress, Step};

/// The maximum wait for another build, which installs packages and compiles the standard library.
const LIMIT: Duration = Duration::from_secs(60 * 60);

/// The interval between attempts to take the lock.
const POLL: Duration = Duration::from_millis(200);

/// Exclusive use of the cache directory. It is released on drop, and when the process exits or is killed.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    /// Acquires the lock, and waits for it if necessary. Dropping the future cancels the wait.
    pub(crate) async fn take(cache_dir: &Path, progress: &dyn Progress) -> Result<Self, BuildError> {
        let path = cache_dir.join("lock");
        let file = {
            let (dir, path) = (cache_dir.to_owned(), path.clone());
            let open = move || {
                fs::create_dir_all(&dir)?;
                File::options().create(true).truncate(false).write(true).open(path)
            };
            let path = cache_dir.to_owned();
            blocking(move || open().map_err(BuildError::file("write", path))).await?
        };
        let deadline = Instant::now() + LIMIT;
        let mut is_waiting = false;
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
                    return Err(BuildError::TimedOut {
                        command: format!("waiting for `{}`", path.display()),
                        limit_s: LIMIT.as_secs(),
                    });
                }
                Err(TryLockError::WouldBlock) => {}
            }
            if !is_waiting {
                progress.step(Step::WaitForCompiler);
                is_waiting = true;
            }
            sleep(POLL).await;
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
    async fn a_second_build_waits_for_the_first_and_reports_it() {
        let dir = tempfile::tempdir().unwrap();
        let waits = AtomicU32::new(0);
        let count = |event: BuildEvent<'_>| {
            assert_eq!(event, BuildEvent::Step(&Step::WaitForCompiler));
            waits.fetch_add(1, Ordering::Relaxed);
        };
        let first = Lock::take(dir.path(), &Silent).await.unwrap();
        let refused = Lock::take(dir.path(), &count).await.unwrap_err();
        assert!(matches!(refused, BuildError::TimedOut { .. }), "{refused:?}");
        assert_eq!(waits.load(Ordering::Relaxed), 1);

        drop(first);
        Lock::take(dir.path(), &count).await.unwrap();
        assert_eq!(
            waits.load(Ordering::Relaxed),
            1,
            "a free lock is acquired without a report"
        );
    }
}
