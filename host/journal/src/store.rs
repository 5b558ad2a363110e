//! The store of sessions.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use rusqlite::Connection;
use tokio::sync::watch;
use toolwit_agent::{JournalError, JournalStore, JournalWriter, SessionId, SessionSummary, TraceEntry};
use toolwit_core::ApprovalAnswer;

use crate::answers;
use crate::lock::{self, SessionLock};
use crate::origin::{self, FileOrigin};
use crate::session::{self, SessionKey};

/// Maximum time to wait for the lock of a session.
const LOCK_WALL_MAX: Duration = Duration::from_millis(50);

/// The interval at which a waiting task checks the file for the answer to a question. A person does not notice the delay,
/// and a check takes microseconds.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// A store of sessions in one SQLite file. Clones share the connection. All queries run on the runtime's threads for
/// blocking work.
#[derive(Clone, Debug)]
pub struct SqliteJournalStore {
    connection: Arc<Mutex<Connection>>,
    /// The directory with the locks of the sessions.
    lock_directory: PathBuf,
    /// Notifies the tasks that wait for an answer when this store or one of its clones has stored an answer.
    answer_stored: watch::Sender<()>,
}

/// A session that is open for writing.
struct SqliteWriter {
    store: SqliteJournalStore,
    session: SessionKey,
    _lock: SessionLock,
}

impl SqliteJournalStore {
    /// Opens the store in a file, which is created if it does not exist. The locks of the sessions are in a directory next to
    /// the file.
    ///
    /// # Errors
    /// [`JournalError::Store`] if the file cannot be opened, or belongs to another program or to a newer version. Such
    /// a file is not changed.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, JournalError> {
        let path = path.as_ref().to_owned();
        let lock_directory = lock::directory(&path);
        let connection = blocking(move || crate::open::open(&path)).await?;
        Ok(Self {
            connection: Arc::new(Mutex::new(connection)),
            lock_directory,
            answer_stored: watch::Sender::default(),
        })
    }

    /// Returns the paths of the store at `path`: its file, and the directory with the locks of its sessions.
    #[must_use]
    pub fn paths(path: &Path) -> [PathBuf; 2] {
        [path.to_owned(), lock::directory(path)]
    }

    /// Returns the origin of the file.
    ///
    /// # Errors
    /// [`JournalError::Store`] if the file cannot be read.
    pub async fn origin(&self) -> Result<FileOrigin, JournalError> {
        self.query(|connection| origin::read(connection)).await
    }

    /// Stores an authentication code in the file. See [`FileOrigin`].
    ///
    /// # Errors
    /// [`JournalError::Store`] if the file cannot be written.
    pub async fn store_origin_code(&self, code: String) -> Result<(), JournalError> {
        self.query(move |connection| origin::store_code(connection, &code))
            .await
    }

    /// Runs a closure with the connection on a thread for blocking work.
    async fn query<T: Send + 'static>(
        &self,
        query: impl FnOnce(&mut Connection) -> Result<T, JournalError> + Send + 'static,
    ) -> Result<T, JournalError> {
        let connection = self.connection.clone();
        // After a panic, the connection can still be used: its open transaction was rolled back.
        blocking(move || query(&mut connection.lock().unwrap_or_else(PoisonError::into_inner))).await
    }

    /// Stores an answer to a question of the session that `find_session` returns. Returns `false` and stores nothing if the
    /// question already has an answer.
    async fn store_answer_for(
        &self,
        question: u64,
        answer: &ApprovalAnswer,
        find_session: impl FnOnce(&Connection) -> Result<SessionKey, JournalError> + Send + 'static,
    ) -> Result<bool, JournalError> {
        let answer = answer.clone();
        let query =
            self.query(move |connection| answers::store(connection, find_session(connection)?, question, &answer));
        let is_stored = query.await?;
        self.answer_stored.send_replace(());
        Ok(is_stored)
    }

    /// Locks a session. If another process holds the lock, tries again for [`LOCK_WALL_MAX`] before it returns an error.
    async fn lock(&self, session: &SessionId) -> Result<SessionLock, JournalError> {
        let start = Instant::now();
        loop {
            let (directory, id) = (self.lock_directory.clone(), session.clone());
            let acquire = move || SessionLock::acquire(&directory, id.as_str()).map_err(JournalError::store);
            match blocking(acquire).await? {
                Some(lock) => return Ok(lock),
                // A process that checks whether a writer holds the session also holds the lock for a moment.
                None if start.elapsed() < LOCK_WALL_MAX => tokio::time::sleep(LOCK_WALL_MAX / 5).await,
                None => return Err(JournalError::Busy(session.clone())),
            }
        }
    }

    fn writer(&self, session: SessionKey, lock: SessionLock) -> Arc<dyn JournalWriter> {
        Arc::new(SqliteWriter {
            store: self.clone(),
            session,
            _lock: lock,
        })
    }
}

/// Runs work on a thread for blocking work.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, JournalError> + Send + 'static,
) -> Result<T, JournalError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(output) => output,
        Err(error) => Err(JournalError::store(error)),
    }
}

#[async_trait]
impl JournalStore for SqliteJournalStore {
    async fn create(&self, session: &SessionId) -> Result<Arc<dyn JournalWriter>, JournalError> {
        let lock = self.lock(session).await.map_err(|error| match error {
            // The writer that holds the lock has the session open, or is about to create it.
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

    async fn fork(&self, session: &SessionId, new: &SessionId, end: Option<u64>) -> Result<(), JournalError> {
        let (session, new) = (session.clone(), new.clone());
        self.query(move |connection| session::fork(connection, &session, &new, end))
            .await
    }

    async fn remove(&self, session: &SessionId) -> Result<(), JournalError> {
        let id = session.clone();
        self.query(move |connection| session::find(connection, &id)).await?;
        let _lock = self.lock(session).await?;
        let id = session.clone();
        self.query(move |connection| session::remove(connection, &id)).await
    }

    async fn is_open(&self, session: &SessionId) -> Result<bool, JournalError> {
        let id = session.clone();
        self.query(move |connection| session::find(connection, &id)).await?;
        let (directory, id) = (self.lock_directory.clone(), session.clone());
        blocking(move || SessionLock::is_held(&directory, id.as_str()).map_err(JournalError::store)).await
    }

    async fn store_answer(
        &self,
        session: &SessionId,
        question: u64,
        answer: &ApprovalAnswer,
    ) -> Result<bool, JournalError> {
        let id = session.clone();
        self.store_answer_for(question, answer, move |connection| session::find(connection, &id))
            .await
    }

    async fn answers(&self, session: &SessionId) -> Result<BTreeMap<u64, ApprovalAnswer>, JournalError> {
        let id = session.clone();
        self.query(move |connection| answers::find_all(connection, session::find(connection, &id)?))
            .await
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

    async fn store_answer(&self, question: u64, answer: &ApprovalAnswer) -> Result<bool, JournalError> {
        let session = self.session;
        self.store
            .store_answer_for(question, answer, move |_| Ok(session))
            .await
    }

    async fn answer(&self, question: u64) -> Result<Option<ApprovalAnswer>, JournalError> {
        let session = self.session;
        self.store
            .query(move |connection| answers::find(connection, session, question))
            .await
    }

    async fn wait_for_answer(&self, question: u64) -> Result<ApprovalAnswer, JournalError> {
        let session = self.session;
        let mut answer_stored = self.store.answer_stored.subscribe();
        let mut last_version = None;
        loop {
            let poll = self
                .store
                .query(move |connection| answers::poll(connection, session, question, last_version));
            match poll.await? {
                (_, Some(answer)) => return Ok(answer),
                (version, None) => last_version = Some(version),
            }
            tokio::select! {
                // Writes of the store's own connection do not change the data version, so the next poll must read the answer.
                _ = answer_stored.changed() => last_version = None,
                // Another process cannot notify this task, so the next poll checks the file.
                () = tokio::time::sleep(POLL_INTERVAL) => {}
            }
        }
    }
}
