//! Errors of a journal.

use std::error::Error as StdError;

use super::port::SessionId;
use toolwit_core::{Error, ErrorKind, Phase};

/// A failure of a journal or its store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// Another writer has the session open.
    #[error("the session `{0}` is in use by another process or conversation")]
    Busy(SessionId),
    /// The session does not exist.
    #[error("the session `{0}` does not exist")]
    Missing(SessionId),
    /// The session exists already.
    #[error("the session `{0}` exists already")]
    Exists(SessionId),
    /// The name of a session is not valid.
    #[error(
        "`{0}` is not a valid session name: use 1 to 64 letters, digits, `-`, `_` and `.`, not starting with `.` or `-`"
    )]
    Name(String),
    /// An entry cannot be read, for example because a newer version of the program wrote it.
    #[error("entry {sequence} of the session cannot be read: {reason}")]
    Entry {
        /// The number of the entry.
        sequence: u64,
        /// The reason.
        reason: String,
    },
    /// A session cannot be forked at this entry, because it has fewer entries.
    #[error("the session `{session}` has only {entries} entries, so it cannot be forked at entry {end}")]
    Position {
        /// The name of the session.
        session: SessionId,
        /// The number of the entry.
        end: u64,
        /// The number of entries of the session.
        entries: u64,
    },
    /// The new arguments of a call do not match the schema of its tool.
    #[error("the arguments do not match the parameters of the tool: {0}")]
    Edit(String),
    /// The entries contradict each other or do not form a valid history, or a call would run again with other arguments.
    #[error("the session cannot be continued: {0}")]
    Divergence(String),
    /// No call waits for an answer to this question. The question does not exist, its call was already decided, or the run ended.
    #[error("the session `{0}` does not wait for an answer to question {1}")]
    NotPending(SessionId, u64),
    /// The question already has an answer, and the first answer counts.
    #[error("question {1} of the session `{0}` has been answered")]
    Answered(SessionId, u64),
    /// The run was suspended, and another process can continue it. This conversation stores no more events.
    #[error("the run of the session `{0}` is suspended")]
    Suspended(SessionId),
    /// The store failed.
    #[error("the session store failed: {message}")]
    Store {
        /// The reason why nothing can be stored or read.
        message: String,
        /// The cause.
        #[source]
        source: Option<Box<dyn StdError + Send + Sync>>,
    },
}

impl JournalError {
    /// Creates the error for a store that failed.
    pub fn store(error: impl StdError + Send + Sync + 'static) -> Self {
        Self::Store {
            message: error.to_string(),
            source: Some(Box::new(error)),
        }
    }
}

/// Converts the failure to a configuration error, because the operator can fix the journal and the model cannot.
impl From<JournalError> for Error {
    fn from(error: JournalError) -> Self {
        let suggestion = match &error {
            JournalError::Busy(_) => "wait until the other process or conversation ends, or fork the session",
            JournalError::Missing(_) => "list the sessions of the store",
            JournalError::Exists(_) => "open it, or choose another name",
            JournalError::Name(_) => "choose another name",
            JournalError::Entry { .. } => "use a newer version of the program, or fork the session before this entry",
            JournalError::Position { .. } => "choose a lower number, or copy all entries",
            JournalError::Edit(_) => "correct the arguments; the question still waits for an answer",
            JournalError::Divergence(_) => "fork the session before the difference",
            JournalError::NotPending(..) | JournalError::Answered(..) => {
                "read the pending approvals of the session again"
            }
            JournalError::Suspended(_) => "resume the session",
            JournalError::Store { .. } => "check the file in which the sessions are stored, and its disk",
        };
        Self::new(ErrorKind::Configuration, Phase::Registry, error.to_string())
            .with_suggestion(suggestion)
            .with_source(error)
    }
}
