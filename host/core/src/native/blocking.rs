//! Functions that block their thread.

use std::panic::resume_unwind;

/// Runs a function on the pool of threads that may block. A panic of the function continues in the caller.
///
/// If the caller is dropped, the function runs to its end nevertheless: a thread cannot be cancelled.
pub async fn run_blocking<T: Send + 'static>(function: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(function).await {
        Ok(output) => output,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            // The runtime is shutting down, and drops the caller too.
            Err(_) => std::future::pending().await,
        },
    }
}
