//! The thread that reads standard input.

use std::io;
use std::thread;

use tokio::runtime::Builder;

use super::standard_streams::{Input, standard_input};

/// Starts a thread that runs `read` with standard input. The thread ends when `read` ends.
///
/// This thread reads a request and begins its call without waking another thread. The threads of the server's runtime
/// would pass each request to another thread, which takes longer than a short call.
///
/// # Errors
/// If the thread cannot be started.
pub(super) fn start_stdin_thread<F>(read: impl FnOnce(Input) -> F + Send + 'static) -> io::Result<()>
where
    F: Future<Output = ()>,
{
    let run = move || {
        let runtime = match Builder::new_current_thread().enable_io().build() {
            Ok(runtime) => runtime,
            Err(error) => {
                tracing::error!(%error, "standard input cannot be read");
                return;
            }
        };
        runtime.block_on(async { read(standard_input()).await });
        // The shutdown does not wait for a pending read of a terminal or a file, which cannot be cancelled.
        runtime.shutdown_background();
    };
    thread::Builder::new()
        .name("toolwit-stdin".to_owned())
        .spawn(run)
        .map(drop)
}
