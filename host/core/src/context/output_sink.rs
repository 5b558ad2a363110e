//! Output of tools and models to the user.

use std::fmt;

use crate::Origin;

/// The severity of a log message, least severe first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// Details for debugging.
    Debug,
    /// Progress of normal work.
    Info,
    /// A significant event.
    Notice,
    /// A condition that may become an error.
    Warning,
    /// A failure of an operation.
    Error,
    /// A failure of a component.
    Critical,
    /// A condition that needs an action at once.
    Alert,
    /// The system is unusable.
    Emergency,
}

impl fmt::Display for LogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
            Self::Alert => "alert",
            Self::Emergency => "emergency",
        })
    }
}

/// A receiver of messages from tools, and of streamed text from the model, for the user.
///
/// A service sends the output to a channel, the command line prints it, a test collects it.
pub trait OutputSink: Send + Sync {
    /// Receives a progress message. The next progress message replaces it.
    fn progress(&self, text: &str);

    /// Receives a permanent message.
    fn communicate(&self, text: &str);

    /// Returns whether the output accepts log messages. If it does not, as by default, a log message is a part of the log of its
    /// call.
    fn accepts_log(&self) -> bool {
        false
    }

    /// Receives a log message of a tool, if the output accepts log messages. `logger` is the name of the plugin or the tool.
    fn log(&self, _level: LogLevel, _logger: &str, _text: &str) {}

    /// Receives a chunk of the model's streamed text, and its origin: the conversation, or an agent inside it. The outcome of
    /// the run contains the complete text. By default, chunks are discarded.
    fn model_text(&self, _text: &str, _origin: &Origin) {}

    /// Returns whether a person reads the chunks of [`model_text`](Self::model_text) and [`reasoning`](Self::reasoning) of this
    /// origin as they arrive, so that they cannot be withdrawn. If not, a response that fails before its end is requested again.
    /// The default is `true`.
    fn shows_chunks(&self, _origin: &Origin) -> bool {
        true
    }

    /// Receives a chunk of the model's streamed reasoning, if the provider returns it. By default, chunks are discarded.
    fn reasoning(&self, _text: &str, _origin: &Origin) {}

    /// Receives the name of a tool as soon as the model begins to write a call of this tool. The call may still be refused.
    /// By default, names are discarded.
    fn call_announced(&self, _name: &str, _origin: &Origin) {}
}

/// An output that discards all messages, for calls without a receiver.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoOutput;

impl OutputSink for NoOutput {
    fn progress(&self, _text: &str) {}

    fn communicate(&self, _text: &str) {}

    fn shows_chunks(&self, _origin: &Origin) -> bool {
        false
    }
}
