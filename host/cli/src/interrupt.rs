//! Ctrl-C and SIGTERM.

use std::io;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::exit::Exit;
use crate::output::page::Page;
use crate::output::printer::Printer;

/// Maximum time that a cancelled command has to end by itself.
pub(crate) const GRACE_PERIOD: Duration = Duration::from_secs(2);

/// Cancels the token at the first signal, and ends the process at the second.
///
/// # Errors
/// If no signal handler can be installed.
pub(crate) fn listen(printer: Printer) -> io::Result<CancellationToken> {
    let cancel = CancellationToken::new();
    let mut signals = Signals::new()?;
    let task_cancel = cancel.clone();
    // The task lives as long as the runtime.
    tokio::spawn(async move {
        signals.next().await;
        task_cancel.cancel();
        let mut page = Page::new();
        page.text("interrupted; interrupt again to stop immediately").end();
        printer.message(&page);
        signals.next().await;
        exit_immediately();
    });
    Ok(cancel)
}

#[expect(
    clippy::disallowed_methods,
    reason = "a second interrupt does not wait for destructors; the library never exits the process"
)]
fn exit_immediately() {
    std::process::exit(Exit::Interrupted as i32);
}

#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending().await
        }
    }
}
