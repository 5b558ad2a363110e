//! Long work on a terminal.

use std::pin::pin;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::printer::{Printer, Talk};

/// How long work goes on before a line is worth its flicker.
const PATIENCE: Duration = Duration::from_millis(150);

const TICK: Duration = Duration::from_millis(100);

/// Does the work, and shows what it is when it takes long: on a terminal only, and not when asked to be quiet.
pub(super) async fn shown<T>(printer: Printer, text: &str, work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    tokio::select! {
        biased;
        done = &mut work => return done,
        () = tokio::time::sleep(PATIENCE) => {}
    }
    let _spinner = Spinner::new(printer, text);
    work.await
}

/// A line that moves until it is dropped.
pub(super) struct Spinner(ProgressBar);

impl Spinner {
    pub(super) fn new(printer: Printer, text: &str) -> Self {
        // Where standard error is no terminal, nothing is drawn.
        let bar = match printer.talk() {
            Talk::Quiet => ProgressBar::hidden(),
            _ => ProgressBar::new_spinner(),
        };
        if let Ok(style) = ProgressStyle::with_template("{spinner:.cyan} {msg} {elapsed:.dim}") {
            bar.set_style(style);
        }
        let spinner = Self(bar);
        spinner.say(text);
        spinner.0.enable_steady_tick(TICK);
        spinner
    }

    /// Whether anybody sees it.
    pub(super) fn is_visible(&self) -> bool {
        !self.0.is_hidden()
    }

    /// Changes the text.
    pub(super) fn say(&self, text: &str) {
        self.0.set_message(toolwit::tool::text::printable(text));
    }

    /// Prints above the line.
    pub(super) fn suspended(&self, print: impl FnOnce()) {
        self.0.suspend(print);
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
