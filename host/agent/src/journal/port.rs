//! The interface of stores of sessions.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::error::JournalError;
use super::pending_approval::{OpenQuestions, PendingApproval};
use super::summary::SessionSummary;
use crate::event::TraceEntry;
use toolwit_core::{Approval, ApprovalAnswer};

/// Maximum length of a session's name, in characters.
const NAME_CHARS_MAX: usize = 64;

/// The name of a session. A session is a stored conversation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SessionId(String);

impl SessionId {
    /// Returns the name for a journal that stores nothing.
    pub(super) fn unstored() -> Self {
        Self("trace".to_owned())
    }

    /// Returns the name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for SessionId {
    type Err = JournalError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let is_name = (1..=NAME_CHARS_MAX).contains(&text.len()) && text.chars().all(is_allowed);
        if is_name && !text.starts_with(['.', '-']) {
            Ok(Self(text.to_owned()))
        } else {
            Err(JournalError::Name(text.chars().take(NAME_CHARS_MAX).collect()))
        }
    }
}

impl TryFrom<String> for SessionId {
    type Error = JournalError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<SessionId> for String {
    fn from(id: SessionId) -> Self {
        id.0
    }
}

/// Checks that a session with this number of entries can be [forked](JournalStore::fork) before the entry `end`. Stores call it.
///
/// # Errors
/// [`JournalError::Position`].
pub fn check_fork(session: &SessionId, end: Option<u64>, entries: u64) -> Result<(), JournalError> {
    match end.filter(|end| *end > entries) {
        None => Ok(()),
        Some(end) => Err(JournalError::Position {
            session: session.clone(),
            end,
            entries,
        }),
    }
}

/// A store of sessions. Only one writer can hold a session; any number of readers can read it.
///
/// A question is an approval request for a call. The methods identify a question by the number of its entry, as in
/// [`PendingApproval::number`].
///
/// The methods must not block a thread of the async executor.
#[async_trait]
pub trait JournalStore: Send + Sync {
    /// Creates a session and opens it.
    ///
    /// # Errors
    /// [`JournalError::Exists`]; [`JournalError::Store`].
    async fn create(&self, session: &SessionId) -> Result<Arc<dyn JournalWriter>, JournalError>;

    /// Opens a session.
    ///
    /// # Errors
    /// [`JournalError::Missing`]; [`JournalError::Busy`] if a writer holds it; [`JournalError::Store`].
    async fn open(&self, session: &SessionId) -> Result<Arc<dyn JournalWriter>, JournalError>;

    /// Returns the entries of a session, in order.
    ///
    /// # Errors
    /// [`JournalError::Missing`]; [`JournalError::Entry`]; [`JournalError::Store`].
    async fn entries(&self, session: &SessionId) -> Result<Vec<TraceEntry>, JournalError>;

    /// Returns the sessions, most recently changed first.
    ///
    /// # Errors
    /// [`JournalError::Store`].
    async fn sessions(&self) -> Result<Vec<SessionSummary>, JournalError>;

    /// Creates the session `new` from the entries of `session` whose numbers are lower than `end`, or from all entries if `end`
    /// is `None`. Does not open the new session.
    ///
    /// # Errors
    /// [`JournalError::Missing`]; [`JournalError::Exists`]; [`JournalError::Position`] if `end` is greater than the number of
    /// entries; [`JournalError::Store`].
    async fn fork(&self, session: &SessionId, new: &SessionId, end: Option<u64>) -> Result<(), JournalError>;

    /// Removes a session.
    ///
    /// # Errors
    /// [`JournalError::Missing`]; [`JournalError::Busy`] if a writer holds it; [`JournalError::Store`].
    async fn remove(&self, session: &SessionId) -> Result<(), JournalError>;

    /// Returns whether a writer holds a session.
    ///
    /// # Errors
    /// [`JournalError::Missing`]; [`JournalError::Store`].
    async fn is_open(&self, session: &SessionId) -> Result<bool, JournalError>;

    /// Stores an answer to a question. Returns `false` and stores nothing if the question already has an answer. Answers are
    /// not entries: they can be stored while a writer holds the session, and a [fork](Self::fork) does not copy them.
    ///
    /// This method does not check that the question is open; [`answer_approval`](Self::answer_approval) does.
    ///
    /// # Errors
    /// [`JournalError::Missing`]; [`JournalError::Store`].
    async fn store_answer(
        &self,
        session: &SessionId,
        question: u64,
        answer: &ApprovalAnswer,
    ) -> Result<bool, JournalError>;

    /// Returns the answers of a session, by the numbers of their questions.
    ///
    /// # Errors
    /// [`JournalError::Missing`]; [`JournalError::Store`].
    async fn answers(&self, session: &SessionId) -> Result<BTreeMap<u64, ApprovalAnswer>, JournalError>;

    /// Returns the questions of a session about calls that have neither started nor been refused, oldest first, with their
    /// stored answers. Questions about nested calls, which running tools make, are included only while a writer holds the
    /// session.
    ///
    /// # Errors
    /// As [`entries`](Self::entries).
    async fn pending_approvals(&self, session: &SessionId) -> Result<Vec<PendingApproval>, JournalError> {
        let is_running = self.is_open(session).await?;
        let mut answers = self.answers(session).await?;
        let questions = OpenQuestions::of(&self.entries(session).await?);
        let pending = questions.pending(is_running).map(|pending| PendingApproval {
            answer: answers.remove(&pending.number),
            ..pending
        });
        Ok(pending.collect())
    }

    /// Answers a question of [`pending_approvals`](Self::pending_approvals), from any process. Only the first answer to a
    /// question counts: this answer, or the answer of the approver of a running conversation. A running conversation continues
    /// with the first answer. If no conversation is running, the next conversation that
    /// [resumes](crate::Conversation::resume_run) the run uses the answer. An answer applies once, to exactly the call of the
    /// question.
    ///
    /// # Errors
    /// [`JournalError::NotPending`]; [`JournalError::Answered`]; [`JournalError::Edit`] if edited arguments cannot be used; as
    /// [`pending_approvals`](Self::pending_approvals).
    async fn answer_approval(
        &self,
        session: &SessionId,
        question: u64,
        answer: ApprovalAnswer,
    ) -> Result<(), JournalError> {
        let (session_id, pending) = (session.clone(), self.pending_approvals(session).await?);
        let Some(pending) = pending.iter().find(|pending| pending.number == question) else {
            return Err(JournalError::NotPending(session_id, question));
        };
        if let Approval::Edited { arguments } = &answer.approval {
            pending.question.check_edit(arguments).map_err(JournalError::Edit)?;
        }
        if self.store_answer(session, question, &answer).await? {
            Ok(())
        } else {
            Err(JournalError::Answered(session_id, question))
        }
    }
}

/// A session that is open for writing. Dropping the writer closes the session. The end of the process closes the session too,
/// even after a crash.
#[async_trait]
pub trait JournalWriter: Send + Sync {
    /// Stores all entries, or stores nothing and returns an error. Entries of a persistent store survive the end of the process
    /// from the return of this method on. Skips entries whose numbers are already stored.
    ///
    /// # Errors
    /// [`JournalError::Store`].
    async fn append(&self, entries: Vec<TraceEntry>) -> Result<(), JournalError>;

    /// Stores an answer to a question of the session. Returns `false` and stores nothing if the question already has an answer.
    ///
    /// # Errors
    /// [`JournalError::Store`].
    async fn store_answer(&self, question: u64, answer: &ApprovalAnswer) -> Result<bool, JournalError>;

    /// Returns the stored answer to a question of the session, or `None` if the question has no answer.
    ///
    /// # Errors
    /// [`JournalError::Store`].
    async fn answer(&self, question: u64) -> Result<Option<ApprovalAnswer>, JournalError>;

    /// Waits until a question of the session has a stored answer, and returns the answer. Any process can store the answer.
    /// Dropping the future ends the wait.
    ///
    /// # Errors
    /// [`JournalError::Store`].
    async fn wait_for_answer(&self, question: u64) -> Result<ApprovalAnswer, JournalError>;
}
