//! Runs file system operations outside of the async worker threads.

use super::BuildError;

/// Runs `work` on the runtime's blocking thread pool. A panic of `work` continues in the caller.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, BuildError> + Send + 'static,
) -> Result<T, BuildError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // Only a runtime that shuts down cancels blocking work. Such a runtime does not poll this future again.
            Err(_cancelled) => std::future::pending().await,
        },
    }
}
