//! Severities of log messages.
#![allow(deprecated, reason = "revision 2026-07-28 deprecates logging, and clients use it")]

use rmcp::model::LoggingLevel;

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

impl LogLevel {
    pub(crate) fn of_wire(level: LoggingLevel) -> Self {
        match level {
            LoggingLevel::Debug => Self::Debug,
            LoggingLevel::Info => Self::Info,
            LoggingLevel::Notice => Self::Notice,
            LoggingLevel::Warning => Self::Warning,
            LoggingLevel::Error => Self::Error,
            LoggingLevel::Critical => Self::Critical,
            LoggingLevel::Alert => Self::Alert,
            LoggingLevel::Emergency => Self::Emergency,
        }
    }

    pub(crate) fn to_wire(self) -> LoggingLevel {
        match self {
            Self::Debug => LoggingLevel::Debug,
            Self::Info => LoggingLevel::Info,
            Self::Notice => LoggingLevel::Notice,
            Self::Warning => LoggingLevel::Warning,
            Self::Error => LoggingLevel::Error,
            Self::Critical => LoggingLevel::Critical,
            Self::Alert => LoggingLevel::Alert,
            Self::Emergency => LoggingLevel::Emergency,
        }
    }
}
