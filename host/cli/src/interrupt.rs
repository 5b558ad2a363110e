//! Ctrl-C and SIGTERM.

use std::io;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::exit::Exit;
use super::page::Page;
use super::printer::Printer;

/// How long cancelled work may take to end by itself.
pub(super) const GRACE: Duration = Duration::from_secs(2);

/// Cancels the token at the first signal, and ends the process at the second.
///
/// # Errors
/// When the system refuses to deliver signals.
pub(super) fn listen(printer: Printer) -> io::Result<CancellationToken> {
    let cancel = CancellationToken::new();
    let mut signals = Signals::new()?;
    let of_task = cancel.clone();
    // It lives as long as the runtime.
    tokio::spawn(async move {
        signals.next().await;
        of_task.cancel();
        let mut page = Page::new();
        page.text("interrupted; again to stop at once").end();
        printer.say(&page);
        signals.next().await;
        leave();
    });
    Ok(cancel)
}

#[expect(
    clippy::disallowed_methods,
    reason = "whoever interrupts twice does not wait for destructors; only the command does this, never the library"
)]
fn leave() {
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
