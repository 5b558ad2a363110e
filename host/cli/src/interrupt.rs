//! Handling of Ctrl-C and SIGTERM.

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

/// Starts to handle signals. The first signal cancels the returned token. The second signal ends the process.
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

/// Handles Ctrl-C and SIGTERM in a session with several turns. The first Ctrl-C cancels the turn. A second Ctrl-C within
/// [`GRACE_PERIOD`], or SIGTERM, ends the session.
pub(crate) struct TurnInterrupts {
    printer: Printer,
    /// Cancelled when the session ends.
    session_cancel: CancellationToken,
    /// Whether a person is at the terminal. If so, a first Ctrl-C between two turns only prints a message. Otherwise, it
    /// ends the session.
    is_interactive: bool,
    state: Mutex<InterruptState>,
}

#[derive(Default)]
struct InterruptState {
    /// The token of the running turn; `None` between two turns.
    turn_cancel: Option<CancellationToken>,
    /// The time of the last Ctrl-C.
    last_interrupt: Option<Instant>,
}

/// The effect of a Ctrl-C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InterruptEffect {
    /// The running turn was cancelled.
    TurnCancelled,
    /// No turn was running, and the session continues.
    NoTurn,
    /// The session was cancelled.
    SessionCancelled,
    /// The session was cancelled before, so the process must exit at once.
    ProcessExit,
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
                        // The terminal shows `^C`. The line break ends that line.
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

    /// Handles a Ctrl-C, which arrives as a signal or as a key that a line editor has read.
    pub(crate) fn ctrl_c(&self) {
        let text = match self.apply_interrupt(Instant::now()) {
            InterruptEffect::TurnCancelled => "turn interrupted; interrupt again to end the session",
            InterruptEffect::NoTurn => "interrupt again to end the session",
            InterruptEffect::SessionCancelled => "session interrupted",
            InterruptEffect::ProcessExit => exit_immediately(),
        };
        let mut page = Page::new();
        page.text(text).end();
        self.printer.message(&page);
    }

    /// Begins a turn and returns its token. A Ctrl-C cancels the token, and so does the end of the session.
    pub(crate) fn begin_turn(&self) -> CancellationToken {
        let turn_cancel = self.session_cancel.child_token();
        self.state.lock().unwrap_or_else(PoisonError::into_inner).turn_cancel = Some(turn_cancel.clone());
        turn_cancel
    }

    /// Ends the turn.
    pub(crate) fn end_turn(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).turn_cancel = None;
    }

    /// Applies a Ctrl-C at the time `now`, and returns its effect.
    fn apply_interrupt(&self, now: Instant) -> InterruptEffect {
        if self.session_cancel.is_cancelled() {
            return InterruptEffect::ProcessExit;
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let last_interrupt = state.last_interrupt.replace(now);
        let is_second = last_interrupt.is_some_and(|last| now.duration_since(last) < GRACE_PERIOD);
        match &state.turn_cancel {
            _ if is_second => {}
            Some(turn_cancel) => {
                turn_cancel.cancel();
                return InterruptEffect::TurnCancelled;
            }
            None if self.is_interactive => return InterruptEffect::NoTurn,
            None => {}
        }
        self.session_cancel.cancel();
        InterruptEffect::SessionCancelled
    }
}

/// A signal that ends a turn, a session or the command.
enum Signal {
    Interrupt,
    Terminate,
}

#[expect(
    clippy::disallowed_methods,
    reason = "the command line owns the process, and a second interrupt must end it without waiting for destructors"
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
    fn first_interrupt_cancels_the_turn_and_a_second_within_the_grace_period_ends_the_session() {
        let interrupts = interrupts(true);
        let start = Instant::now();
        let turn = interrupts.begin_turn();
        assert_eq!(interrupts.apply_interrupt(start), InterruptEffect::TurnCancelled);
        assert!(turn.is_cancelled() && !interrupts.session_cancel.is_cancelled());
        let later = start + GRACE_PERIOD;
        let turn = interrupts.begin_turn();
        assert_eq!(interrupts.apply_interrupt(later), InterruptEffect::TurnCancelled);
        assert!(turn.is_cancelled() && !interrupts.session_cancel.is_cancelled());
        assert_eq!(interrupts.apply_interrupt(later), InterruptEffect::SessionCancelled);
        assert!(interrupts.session_cancel.is_cancelled());
        assert_eq!(interrupts.apply_interrupt(later), InterruptEffect::ProcessExit);
    }

    #[test]
    fn interrupt_between_turns_ends_a_session_without_a_person() {
        let start = Instant::now();
        let interactive = interrupts(true);
        assert_eq!(interactive.apply_interrupt(start), InterruptEffect::NoTurn);
        let from_script = interrupts(false);
        assert_eq!(from_script.apply_interrupt(start), InterruptEffect::SessionCancelled);
    }
}
