//! The thread that reads standard input.

use std::io;
use std::thread;

use tokio::runtime::Builder;

use super::standard_streams::{Input, standard_input};

/// Reads standard input on a thread of its own, until `read` ends.
///
/// This thread reads a request and begins its call without waking another thread. The threads of the runtime would pass
/// the requests of one client to each other, which takes longer than a short call.
///
/// # Errors
/// If the thread cannot be started.
pub(super) fn read_stdin<F>(read: impl FnOnce(Input) -> F + Send + 'static) -> io::Result<()>
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
        // A read of a terminal or a file cannot be cancelled.
        runtime.shutdown_background();
    };
    thread::Builder::new()
        .name("toolwit-stdin".to_owned())
        .spawn(run)
        .map(drop)
}
