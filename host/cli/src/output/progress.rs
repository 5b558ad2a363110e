//! A spinner that shows the progress of long work on a terminal.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::output::printer::{Printer, Verbosity};
use toolwit::tool::text::printable;

/// Delay before the spinner is shown. A spinner for shorter work would only flicker.
const DELAY: Duration = Duration::from_millis(150);

/// Maximum length of the text, in characters. A line that is wider than the terminal could not be removed.
const TEXT_CHARS_MAX: usize = 60;

/// Time between two frames of the spinner.
const TICK_INTERVAL: Duration = Duration::from_millis(100);

/// Runs the work, and shows a spinner with the text if the work takes long. The spinner appears only on a terminal, and
/// not if the verbosity is quiet.
pub(crate) async fn with_spinner<T>(printer: Printer, text: &str, work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    tokio::select! {
        biased;
        output = &mut work => return output,
        () = tokio::time::sleep(DELAY) => {}
    }
    let _spinner = Spinner::new(printer, text);
    work.await
}

/// A progress line, which is removed on drop.
pub(crate) struct Spinner {
    bar: ProgressBar,
    /// Whether the line is not shown because other output uses the terminal, such as a question.
    is_paused: AtomicBool,
}

impl Spinner {
    pub(crate) fn new(printer: Printer, text: &str) -> Self {
        // Draws nothing if standard error is not a terminal.
        let bar = match printer.verbosity() {
            Verbosity::Quiet => ProgressBar::hidden(),
            _ => ProgressBar::new_spinner(),
        };
        if let Ok(style) = ProgressStyle::with_template("{spinner:.cyan} {msg} {elapsed:.dim}") {
            bar.set_style(style);
        }
        let spinner = Self {
            bar,
            is_paused: AtomicBool::new(false),
        };
        spinner.set_text(text);
        spinner.bar.enable_steady_tick(TICK_INTERVAL);
        spinner
    }

    /// Returns whether the line can be drawn: standard error is a terminal, and the verbosity is not quiet.
    pub(crate) fn is_visible(&self) -> bool {
        !self.bar.is_hidden()
    }

    /// Replaces the text. Only its first line is shown.
    pub(crate) fn set_text(&self, text: &str) {
        let line = text.lines().next().unwrap_or_default();
        self.bar
            .set_message(printable(line).chars().take(TEXT_CHARS_MAX).collect::<String>());
    }

    /// Draws the line with another text, and restarts its time. While the line is paused, only replaces the text.
    pub(crate) fn restart(&self, text: &str) {
        self.set_text(text);
        if !self.is_paused.load(Ordering::Relaxed) {
            self.bar.reset();
            self.bar.enable_steady_tick(TICK_INTERVAL);
        }
    }

    /// Removes the line until it is restarted.
    pub(crate) fn stop(&self) {
        self.bar.finish_and_clear();
    }

    /// Pauses or continues the line. A paused line is not shown. A continued line counts its time from zero again.
    pub(crate) fn set_paused(&self, is_paused: bool) {
        self.is_paused.store(is_paused, Ordering::Relaxed);
        if is_paused {
            self.bar.finish_and_clear();
        } else {
            self.bar.reset();
            self.bar.enable_steady_tick(TICK_INTERVAL);
        }
    }

    /// Hides the line while `print` runs.
    pub(crate) fn suspend(&self, print: impl FnOnce()) {
        self.bar.suspend(print);
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
