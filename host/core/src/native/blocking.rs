//! Functions that block their thread.

use std::panic::resume_unwind;

/// Runs a function on a thread that may block, from the thread pool of the tokio runtime. A panic of the function continues in
/// the caller.
///
/// If the returned future is dropped, the function still runs to its end, because a thread cannot be cancelled.
pub async fn run_blocking<T: Send + 'static>(function: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(function).await {
        Ok(output) => output,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            // The runtime is shutting down, and also drops this future.
            Err(_) => std::future::pending().await,
        },
    }
}
