//! The way from a tool to the person who waits.

/// Receives what a tool has to say to the user while it runs or when it is done, and the words of the model.
///
/// A service sends it to a channel, the command line prints it, a test collects it.
pub trait OutputSink: Send + Sync {
    /// Takes a transient note about how far the work is.
    fn progress(&self, text: &str);

    /// Takes a lasting message for the user.
    fn communicate(&self, text: &str);

    /// Takes a piece of what the model says, while it says it. The outcome of the run holds the whole. By default nothing is shown.
    fn words(&self, _text: &str) {}
}

/// Drops everything: what a call without a listener uses.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoOutput;

impl OutputSink for NoOutput {
    fn progress(&self, _text: &str) {}

    fn communicate(&self, _text: &str) {}
}
