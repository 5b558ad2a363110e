//! The store of sessions.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use rusqlite::Connection;
use toolwit_agent::{JournalError, JournalStore, JournalWriter, SessionId, SessionSummary, TraceEntry};

use crate::lock::{self, SessionLock};
use crate::session::{self, SessionKey};

/// A store of sessions in one SQLite file. Clones share the connection. All queries run on the runtime's threads for blocking work.
#[derive(Clone, Debug)]
pub struct SqliteJournalStore {
    connection: Arc<Mutex<Connection>>,
    locks: PathBuf,
}

/// A session that is open for writing.
struct SqliteWriter {
    store: SqliteJournalStore,
    session: SessionKey,
    _lock: SessionLock,
}

impl SqliteJournalStore {
    /// Opens the store and creates it if it does not exist. The locks of its sessions are in a directory next to it.
    ///
    /// # Errors
    /// [`JournalError::Store`] if the file cannot be opened, or belongs to another program or to a newer version. Such a file is not
    /// changed.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, JournalError> {
        let path = path.as_ref().to_owned();
        let locks = lock::directory(&path);
        let connection = blocking(move || crate::open::open(&path)).await?;
        Ok(Self {
            connection: Arc::new(Mutex::new(connection)),
            locks,
        })
    }

    /// Runs queries on a thread for blocking work.
    async fn query<T: Send + 'static>(
        &self,
        query: impl FnOnce(&mut Connection) -> Result<T, JournalError> + Send + 'static,
    ) -> Result<T, JournalError> {
        let connection = self.connection.clone();
        // A panic rolls back the open transaction.
        blocking(move || query(&mut connection.lock().unwrap_or_else(PoisonError::into_inner))).await
    }

    /// Locks a session.
    async fn lock(&self, session: &SessionId) -> Result<SessionLock, JournalError> {
        let (locks, id) = (self.locks.clone(), session.clone());
        blocking(move || match SessionLock::acquire(&locks, id.as_str()) {
            Ok(Some(lock)) => Ok(lock),
            Ok(None) => Err(JournalError::Busy(id)),
            Err(error) => Err(JournalError::store(error)),
        })
        .await
    }

    fn writer(&self, session: SessionKey, lock: SessionLock) -> Arc<dyn JournalWriter> {
        Arc::new(SqliteWriter {
            store: self.clone(),
            session,
            _lock: lock,
        })
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, JournalError> + Send + 'static,
) -> Result<T, JournalError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => Err(JournalError::store(error)),
    }
}

#[async_trait]
impl JournalStore for SqliteJournalStore {
    async fn create(&self, session: &SessionId) -> Result<Arc<dyn JournalWriter>, JournalError> {
        let lock = self.lock(session).await.map_err(|error| match error {
            // A process that holds the lock has created the session.
            JournalError::Busy(session) => JournalError::Exists(session),
            other => other,
        })?;
        let id = session.clone();
        let key = self.query(move |connection| session::create(connection, &id)).await?;
        Ok(self.writer(key, lock))
    }

    async fn open(&self, session: &SessionId) -> Result<Arc<dyn JournalWriter>, JournalError> {
        let id = session.clone();
        self.query(move |connection| session::find(connection, &id)).await?;
        let lock = self.lock(session).await?;
        // The session may have been removed before it was locked.
        let id = session.clone();
        let key = self.query(move |connection| session::find(connection, &id)).await?;
        Ok(self.writer(key, lock))
    }

    async fn entries(&self, session: &SessionId) -> Result<Vec<TraceEntry>, JournalError> {
        let id = session.clone();
        self.query(move |connection| session::entries(connection, session::find(connection, &id)?))
            .await
    }

    async fn sessions(&self) -> Result<Vec<SessionSummary>, JournalError> {
        self.query(|connection| session::summaries(connection)).await
    }

    async fn fork(&self, session: &SessionId, new: &SessionId, entries: u64) -> Result<(), JournalError> {
        let (session, new) = (session.clone(), new.clone());
        self.query(move |connection| session::fork(connection, &session, &new, entries))
            .await
    }

    async fn remove(&self, session: &SessionId) -> Result<(), JournalError> {
        let id = session.clone();
        self.query(move |connection| session::find(connection, &id)).await?;
        let _lock = self.lock(session).await?;
        let id = session.clone();
        self.query(move |connection| session::remove(connection, &id)).await
    }
}

#[async_trait]
impl JournalWriter for SqliteWriter {
    async fn append(&self, entries: Vec<TraceEntry>) -> Result<(), JournalError> {
        let session = self.session;
        self.store
            .query(move |connection| session::append(connection, session, entries))
            .await
    }
}
