//! Sessions in memory, for tests and for services whose sessions end with the process.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use tokio::sync::watch;

use super::error::JournalError;
use super::port::{JournalStore, JournalWriter, SessionId, check_fork};
use super::summary::SessionSummary;
use crate::event::TraceEntry;
use toolwit_core::ApprovalAnswer;

/// A store of sessions in memory. Clones share the sessions.
#[derive(Clone, Default)]
pub struct MemoryJournalStore {
    sessions: Arc<Mutex<BTreeMap<SessionId, MemorySession>>>,
    /// Wakes the tasks that wait for an answer, whenever an answer is stored.
    answer_signal: Arc<watch::Sender<()>>,
}

#[derive(Default)]
struct MemorySession {
    entries: BTreeMap<u64, TraceEntry>,
    answers: BTreeMap<u64, ApprovalAnswer>,
    is_open: bool,
}

/// A session that is open for writing.
struct MemoryWriter {
    store: MemoryJournalStore,
    session: SessionId,
}

impl MemoryJournalStore {
    /// Creates an empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<SessionId, MemorySession>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `apply` with a session, and returns its result.
    ///
    /// # Errors
    /// [`JournalError::Missing`].
    fn with_session<T>(
        &self,
        session: &SessionId,
        apply: impl FnOnce(&mut MemorySession) -> T,
    ) -> Result<T, JournalError> {
        let mut sessions = self.lock();
        let stored = sessions.get_mut(session);
        stored.map(apply).ok_or_else(|| JournalError::Missing(session.clone()))
    }

    /// Inserts an answer to a question, unless the question has an answer. Returns whether the answer was inserted.
    fn insert_answer(&self, session: &SessionId, question: u64, answer: &ApprovalAnswer) -> Result<bool, JournalError> {
        let is_inserted = self.with_session(session, |stored| match stored.answers.entry(question) {
            Entry::Vacant(vacant) => {
                vacant.insert(answer.clone());
                true
            }
            Entry::Occupied(_) => false,
        })?;
        self.answer_signal.send_replace(());
        Ok(is_inserted)
    }

    fn writer(&self, session: &SessionId) -> Arc<dyn JournalWriter> {
        Arc::new(MemoryWriter {
            store: self.clone(),
            session: session.clone(),
        })
    }
}

#[async_trait]
impl JournalStore for MemoryJournalStore {
    async fn create(&self, session: &SessionId) -> Result<Arc<dyn JournalWriter>, JournalError> {
        let mut sessions = self.lock();
        if sessions.contains_key(session) {
            return Err(JournalError::Exists(session.clone()));
        }
        let new_session = MemorySession {
            is_open: true,
            ..MemorySession::default()
        };
        sessions.insert(session.clone(), new_session);
        Ok(self.writer(session))
    }

    async fn open(&self, session: &SessionId) -> Result<Arc<dyn JournalWriter>, JournalError> {
        let mut sessions = self.lock();
        let stored = sessions.get_mut(session);
        let stored = stored.ok_or_else(|| JournalError::Missing(session.clone()))?;
        if stored.is_open {
            return Err(JournalError::Busy(session.clone()));
        }
        stored.is_open = true;
        Ok(self.writer(session))
    }

    async fn entries(&self, session: &SessionId) -> Result<Vec<TraceEntry>, JournalError> {
        self.with_session(session, |stored| stored.entries.values().cloned().collect())
    }

    async fn sessions(&self) -> Result<Vec<SessionSummary>, JournalError> {
        let sessions = self.lock();
        let mut summaries: Vec<_> = sessions
            .iter()
            .map(|(session, stored)| {
                let entries: Vec<_> = stored.entries.values().cloned().collect();
                SessionSummary::of(session.clone(), entries.len() as u64, &entries)
            })
            .collect();
        summaries.sort_by_key(|summary| std::cmp::Reverse(summary.changed_at_ms));
        Ok(summaries)
    }

    async fn fork(&self, session: &SessionId, new: &SessionId, end: Option<u64>) -> Result<(), JournalError> {
        let mut sessions = self.lock();
        let stored = sessions.get(session);
        let stored = stored.ok_or_else(|| JournalError::Missing(session.clone()))?;
        if sessions.contains_key(new) {
            return Err(JournalError::Exists(new.clone()));
        }
        check_fork(session, end, stored.entries.len() as u64)?;
        let prefix = stored.entries.range(..end.unwrap_or(u64::MAX));
        let fork = MemorySession {
            entries: prefix.map(|(number, entry)| (*number, entry.clone())).collect(),
            ..MemorySession::default()
        };
        sessions.insert(new.clone(), fork);
        Ok(())
    }

    async fn remove(&self, session: &SessionId) -> Result<(), JournalError> {
        let mut sessions = self.lock();
        match sessions.get(session) {
            None => Err(JournalError::Missing(session.clone())),
            Some(stored) if stored.is_open => Err(JournalError::Busy(session.clone())),
            Some(_) => {
                sessions.remove(session);
                Ok(())
            }
        }
    }

    async fn is_open(&self, session: &SessionId) -> Result<bool, JournalError> {
        self.with_session(session, |stored| stored.is_open)
    }

    async fn store_answer(
        &self,
        session: &SessionId,
        question: u64,
        answer: &ApprovalAnswer,
    ) -> Result<bool, JournalError> {
        self.insert_answer(session, question, answer)
    }

    async fn answers(&self, session: &SessionId) -> Result<BTreeMap<u64, ApprovalAnswer>, JournalError> {
        self.with_session(session, |stored| stored.answers.clone())
    }
}

#[async_trait]
impl JournalWriter for MemoryWriter {
    async fn append(&self, entries: Vec<TraceEntry>) -> Result<(), JournalError> {
        self.store.with_session(&self.session, |stored| {
            for entry in entries {
                stored.entries.entry(entry.sequence).or_insert(entry);
            }
        })
    }

    async fn store_answer(&self, question: u64, answer: &ApprovalAnswer) -> Result<bool, JournalError> {
        self.store.insert_answer(&self.session, question, answer)
    }

    async fn answer(&self, question: u64) -> Result<Option<ApprovalAnswer>, JournalError> {
        self.store
            .with_session(&self.session, |stored| stored.answers.get(&question).cloned())
    }

    async fn wait_for_answer(&self, question: u64) -> Result<ApprovalAnswer, JournalError> {
        let mut answer_signal = self.store.answer_signal.subscribe();
        loop {
            if let Some(answer) = self.answer(question).await? {
                return Ok(answer);
            }
            // The channel is not closed, because the store holds the sender.
            answer_signal.changed().await.map_err(JournalError::store)?;
        }
    }
}

impl Drop for MemoryWriter {
    fn drop(&mut self) {
        if let Some(stored) = self.store.lock().get_mut(&self.session) {
            stored.is_open = false;
        }
    }
}
