//! Ctrl-C and SIGTERM.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use crate::exit::Exit;
use crate::output::page::Page;
use crate::output::printer::Printer;

/// Maximum time that a cancelled command has to end by itself. Also the time within which a second Ctrl-C ends a
/// session.
pub(crate) const GRACE_PERIOD: Duration = Duration::from_secs(2);

/// Returns a token that the first signal cancels. The second signal ends the process.
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

/// Ctrl-C and SIGTERM of a session with many turns. The first Ctrl-C cancels the turn. A second one within
/// [`GRACE_PERIOD`], or SIGTERM, ends the session.
pub(crate) struct TurnInterrupts {
    printer: Printer,
    /// Cancelled when the session ends.
    session_cancel: CancellationToken,
    /// Whether a person is at the terminal. If so, a first Ctrl-C between two turns only prints a message.
    is_interactive: bool,
    state: Mutex<TurnState>,
}

#[derive(Default)]
struct TurnState {
    /// The token of the running turn.
    turn_cancel: Option<CancellationToken>,
    last_interrupt: Option<Instant>,
}

/// The effect of a Ctrl-C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Interruption {
    /// The turn was cancelled.
    Turn,
    /// There was no turn to cancel, and the session continues.
    Idle,
    /// The session was ended.
    Session,
    /// The session was already ending, so the process ends at once.
    Process,
}

impl TurnInterrupts {
    /// Starts to handle signals. Cancels `session_cancel` when a signal ends the session.
    ///
    /// # Errors
    /// If no signal handler can be installed.
    pub(crate) fn listen(
        printer: Printer,
        session_cancel: CancellationToken,
        is_interactive: bool,
    ) -> io::Result<Arc<Self>> {
        let interrupts = Arc::new(Self::new(printer, session_cancel, is_interactive));
        let mut signals = Signals::new()?;
        let task_interrupts = interrupts.clone();
        // The task lives as long as the runtime.
        tokio::spawn(async move {
            loop {
                match signals.next().await {
                    Signal::Terminate => task_interrupts.session_cancel.cancel(),
                    Signal::Interrupt => {
                        // Ends the line with the `^C` that the terminal shows.
                        let mut page = Page::new();
                        printer.message(page.end());
                        task_interrupts.ctrl_c();
                    }
                }
            }
        });
        Ok(interrupts)
    }

    fn new(printer: Printer, session_cancel: CancellationToken, is_interactive: bool) -> Self {
        Self {
            printer,
            session_cancel,
            is_interactive,
            state: Mutex::default(),
        }
    }

    /// Applies a Ctrl-C: a signal, or a key that a line editor has read.
    pub(crate) fn ctrl_c(&self) {
        let text = match self.apply_interrupt(Instant::now()) {
            Interruption::Turn => "turn interrupted; interrupt again to end the session",
            Interruption::Idle => "interrupt again to end the session",
            Interruption::Session => "session interrupted",
            Interruption::Process => exit_immediately(),
        };
        let mut page = Page::new();
        page.text(text).end();
        self.printer.message(&page);
    }

    /// Begins a turn and returns its token. The end of the session also cancels the token.
    pub(crate) fn begin_turn(&self) -> CancellationToken {
        let turn_cancel = self.session_cancel.child_token();
        self.state.lock().unwrap_or_else(PoisonError::into_inner).turn_cancel = Some(turn_cancel.clone());
        turn_cancel
    }

    /// Ends the turn.
    pub(crate) fn end_turn(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).turn_cancel = None;
    }

    /// Applies a Ctrl-C that happened at the time `now`, and returns its effect.
    fn apply_interrupt(&self, now: Instant) -> Interruption {
        if self.session_cancel.is_cancelled() {
            return Interruption::Process;
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let last_interrupt = state.last_interrupt.replace(now);
        let is_second = last_interrupt.is_some_and(|last| now.duration_since(last) < GRACE_PERIOD);
        match &state.turn_cancel {
            _ if is_second => {}
            Some(turn_cancel) => {
                turn_cancel.cancel();
                return Interruption::Turn;
            }
            None if self.is_interactive => return Interruption::Idle,
            None => {}
        }
        self.session_cancel.cancel();
        Interruption::Session
    }
}

/// A signal that ends a turn or the command.
enum Signal {
    Interrupt,
    Terminate,
}

#[expect(
    clippy::disallowed_methods,
    reason = "a second interrupt does not wait for destructors; the library never exits the process"
)]
fn exit_immediately() -> ! {
    std::process::exit(Exit::Interrupted as i32)
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

    async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.interrupt.recv() => Signal::Interrupt,
            _ = self.terminate.recv() => Signal::Terminate,
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

    async fn next(&mut self) -> Signal {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending().await
        }
        Signal::Interrupt
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::printer::{Format, Verbosity};

    fn interrupts(is_interactive: bool) -> TurnInterrupts {
        let printer = Printer::new(Format::Human, Verbosity::Quiet);
        TurnInterrupts::new(printer, CancellationToken::new(), is_interactive)
    }

    #[test]
    fn first_interrupt_cancels_the_turn_and_a_second_soon_after_ends_the_session() {
        let interrupts = interrupts(true);
        let start = Instant::now();
        let turn = interrupts.begin_turn();
        assert_eq!(interrupts.apply_interrupt(start), Interruption::Turn);
        assert!(turn.is_cancelled() && !interrupts.session_cancel.is_cancelled());
        let later = start + GRACE_PERIOD;
        let turn = interrupts.begin_turn();
        assert_eq!(interrupts.apply_interrupt(later), Interruption::Turn);
        assert!(turn.is_cancelled() && !interrupts.session_cancel.is_cancelled());
        assert_eq!(interrupts.apply_interrupt(later), Interruption::Session);
        assert!(interrupts.session_cancel.is_cancelled());
        assert_eq!(interrupts.apply_interrupt(later), Interruption::Process);
    }

    #[test]
    fn interrupt_between_turns_ends_a_session_without_a_person() {
        let start = Instant::now();
        let person = interrupts(true);
        assert_eq!(person.apply_interrupt(start), Interruption::Idle);
        let script = interrupts(false);
        assert_eq!(script.apply_interrupt(start), Interruption::Session);
    }
}
