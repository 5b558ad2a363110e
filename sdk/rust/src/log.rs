//! Messages for the log of a call, with a severity. They need no grant. A client of the Model Context Protocol receives them while
//! the call runs.

use crate::host;

/// The severity of a message, least severe first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
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

/// Adds a message to the log.
///
/// ```
/// use toolwit_guest::log::{self, Level};
///
/// log::log(Level::Warning, "the index is a day old");
/// ```
pub fn log(level: Level, text: impl AsRef<str>) {
    host::log(level, text.as_ref());
}
