//! File-system work, where it blocks nobody.

use super::BuildError;

/// Runs `work` on the runtime's threads for blocking work.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, BuildError> + Send + 'static,
) -> Result<T, BuildError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // Only a runtime that shuts down cancels such work, and then nobody is left to await this.
            Err(_cancelled) => std::future::pending().await,
        },
    }
}
