//! The journal of one session.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::IDEMPOTENCY_KEY;
use super::earlier_keys::EarlierKeys;
use super::error::JournalError;
use super::pending_approval::OpenQuestions;
use super::port::{JournalStore, JournalWriter, SessionId};
use crate::event::{Event, Observer, RecordedOutcome, TraceEntry};
use async_trait::async_trait;
use serde_json::Value;
use toolwit_core::limits::RECORDED_RUN_ARTIFACTS_BYTES_MAX;
use toolwit_core::{ApprovalAnswer, Arguments, EffectClass, Origin, ToolContext, ToolId};

/// Maximum number of entries that calls without changes leave for the next write.
const PENDING_ENTRIES_MAX: usize = 256;

/// The journal of a conversation. Pass it to [`ConversationBuilder::journal`](crate::ConversationBuilder::journal).
///
/// The journal receives the events of the conversation and of its agents in their order. Before each request to a model, before
/// each call that can change something, also one of a tool, and before the answer, the conversation waits until all events so far
/// are stored. Concurrent calls can share one write.
pub struct Journal {
    session: SessionId,
    writer: Arc<dyn JournalWriter>,
    /// The entries that earlier processes of the operating system recorded; empty after a conversation was built with the journal.
    earlier_entries: Mutex<Vec<TraceEntry>>,
    /// The idempotency keys of the calls that began in the interrupted run.
    earlier_keys: EarlierKeys,
    state: Mutex<JournalState>,
    /// Held during a write, so that writes do not overlap and entries are stored in their order.
    commit_lock: tokio::sync::Mutex<()>,
}

struct JournalState {
    /// The entries that are not yet stored.
    pending_entries: Vec<TraceEntry>,
    /// The number of the next entry.
    next_number: u64,
    questions: OpenQuestions,
    /// The number of bytes that are left for the artifacts of the run.
    artifact_bytes_left: usize,
    /// The reason why the journal stores no more entries.
    closed_reason: Option<ClosedReason>,
}

impl JournalState {
    /// Checks that the journal stores entries.
    fn check_open(&self, session: &SessionId) -> Result<(), JournalError> {
        match &self.closed_reason {
            None => Ok(()),
            Some(ClosedReason::WriteFailed(message)) => Err(JournalError::Store {
                message: message.clone(),
                source: None,
            }),
            Some(ClosedReason::Suspended) => Err(JournalError::Suspended(session.clone())),
        }
    }
}

/// The reason why a journal stores no more entries.
enum ClosedReason {
    /// A write failed with this message. Storing later entries would leave a gap.
    WriteFailed(String),
    /// The run is suspended.
    Suspended,
}

impl Journal {
    /// Creates a session.
    ///
    /// # Errors
    /// As [`JournalStore::create`].
    pub async fn create(store: &dyn JournalStore, session: &SessionId) -> Result<Self, JournalError> {
        let writer = store.create(session).await?;
        Ok(Self::new(session.clone(), writer, Vec::new()))
    }

    /// Opens a session to continue it.
    ///
    /// # Errors
    /// As [`JournalStore::open`] and [`JournalStore::entries`].
    pub async fn open(store: &dyn JournalStore, session: &SessionId) -> Result<Self, JournalError> {
        // The session is opened before its entries are read, so that no other writer can add entries after the read.
        let writer = store.open(session).await?;
        let earlier = store.entries(session).await?;
        Ok(Self::new(session.clone(), writer, earlier))
    }

    /// Creates a journal that stores nothing. With it, a conversation emits all events that a [`Replay`](crate::Replay) needs,
    /// so that a [`Trace`](crate::Trace) can record them.
    #[must_use]
    pub fn unstored() -> Self {
        Self::new(SessionId::unstored(), Arc::new(UnstoredWriter), Vec::new())
    }

    /// Creates a journal that stores nothing, for a replay of a conversation with these entries. Agents that do not run again
    /// keep the ids of their calls, so that the other calls get the recorded ids.
    pub(crate) fn for_replay(entries: &[TraceEntry]) -> Self {
        let of_agents = entries.iter().filter(|entry| entry.origin.parent_call.is_some());
        Self::new(
            SessionId::unstored(),
            Arc::new(UnstoredWriter),
            of_agents.cloned().collect(),
        )
    }

    /// Returns the entries that earlier processes of the operating system recorded. They are available until a conversation is
    /// built with the journal.
    #[must_use]
    pub fn earlier_entries(&self) -> Vec<TraceEntry> {
        let earlier = self.earlier_entries.lock().unwrap_or_else(PoisonError::into_inner);
        earlier.clone()
    }

    /// Returns the settings that an earlier process [stored](Self::store_settings) last, with the number of their
    /// entry. Returns `None` if no process stored settings, or after a conversation was built with the journal.
    #[must_use]
    pub fn settings(&self) -> Option<(u64, Value)> {
        let earlier = self.earlier_entries.lock().unwrap_or_else(PoisonError::into_inner);
        earlier.iter().rev().find_map(|entry| match &entry.event {
            Event::SettingsStored { settings } => Some((entry.sequence, (**settings).clone())),
            _ => None,
        })
    }

    /// Records the settings of the program for the runs that follow. The settings are stored with the next events, and must
    /// not contain secrets.
    pub fn store_settings(&self, settings: Value) {
        let settings = Box::new(settings);
        self.observe(&Event::SettingsStored { settings }, &Origin::default());
    }

    /// Creates a journal for a new session with this writer.
    #[cfg(test)]
    pub(crate) fn with_writer(session: SessionId, writer: Arc<dyn JournalWriter>) -> Self {
        Self::new(session, writer, Vec::new())
    }

    fn new(session: SessionId, writer: Arc<dyn JournalWriter>, earlier: Vec<TraceEntry>) -> Self {
        Self {
            session,
            writer,
            state: Mutex::new(JournalState {
                pending_entries: Vec::new(),
                next_number: earlier.last().map_or(0, |entry| entry.sequence.saturating_add(1)),
                questions: OpenQuestions::of(&earlier),
                artifact_bytes_left: RECORDED_RUN_ARTIFACTS_BYTES_MAX,
                closed_reason: None,
            }),
            earlier_keys: EarlierKeys::of(&earlier),
            earlier_entries: Mutex::new(earlier),
            commit_lock: tokio::sync::Mutex::default(),
        }
    }

    /// Returns the name of the session.
    #[must_use]
    pub fn session(&self) -> &SessionId {
        &self.session
    }

    /// Waits until all events so far are stored.
    ///
    /// # Errors
    /// [`JournalError::Store`] if this write or an earlier write failed, and [`JournalError::Suspended`] if the run is suspended.
    pub async fn commit(&self) -> Result<(), JournalError> {
        let _commit = self.commit_lock.lock().await;
        let batch = {
            let state = self.lock();
            state.check_open(&self.session)?;
            state.pending_entries.clone()
        };
        let Some(last) = batch.last().map(|entry| entry.sequence) else {
            return Ok(());
        };
        let stored = self.writer.append(batch).await;
        let mut state = self.lock();
        match &stored {
            // If this future is dropped during the write, the entries stay in `pending_entries`. The next commit passes them to
            // the writer again, and the writer skips those that it has stored.
            Ok(()) => state.pending_entries.retain(|entry| entry.sequence > last),
            Err(JournalError::Store { message, .. }) => {
                state.closed_reason = Some(ClosedReason::WriteFailed(message.clone()));
            }
            Err(error) => state.closed_reason = Some(ClosedReason::WriteFailed(error.to_string())),
        }
        stored
    }

    /// Stores all events so far, and closes the journal, so that later events are not stored. Another process then finds the
    /// run interrupted at this point.
    pub(crate) async fn suspend(&self) -> Result<(), JournalError> {
        loop {
            self.commit().await?;
            let mut state = self.lock();
            if state.pending_entries.is_empty() {
                state.closed_reason = Some(ClosedReason::Suspended);
                return Ok(());
            }
        }
    }

    /// Takes the entries of earlier processes out of the journal, with those of the conversation's agents.
    pub(crate) fn take_earlier_entries(&self) -> Vec<TraceEntry> {
        let mut earlier = self.earlier_entries.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *earlier)
    }

    /// Returns the number of the open question about a call, and whether the question is stored. Returns `None` if no question
    /// about the call is open.
    pub(super) fn question_about(&self, call: &str) -> Option<(u64, bool)> {
        let state = self.lock();
        let number = state.questions.find(call)?.number;
        let is_stored = state
            .pending_entries
            .first()
            .is_none_or(|entry| entry.sequence > number);
        Some((number, is_stored))
    }

    pub(super) fn writer(&self) -> &dyn JournalWriter {
        &*self.writer
    }

    /// Omits the values of artifacts that would make the artifacts of the run exceed [`RECORDED_RUN_ARTIFACTS_BYTES_MAX`].
    pub(crate) fn limit_artifacts(&self, outcome: &mut RecordedOutcome) {
        outcome.omit_artifacts_beyond(&mut self.lock().artifact_bytes_left);
    }

    /// Waits until the call whose start was recorded last may have an effect. The start of a call that can change something
    /// is stored first. That of a call that changes nothing is stored with later entries.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub(crate) async fn admit_call(&self, class: EffectClass) -> Result<(), JournalError> {
        if class != EffectClass::Read {
            return self.commit().await;
        }
        let pending_count = {
            let state = self.lock();
            state.check_open(&self.session)?;
            state.pending_entries.len()
        };
        if pending_count < PENDING_ENTRIES_MAX {
            return Ok(());
        }
        self.commit().await
    }

    /// Returns the context of a call with this id, with its idempotency key for the interceptors that decide about it. The key
    /// can change when the call [starts](Self::idempotency_key).
    pub(crate) fn with_key(&self, context: ToolContext, call: &str) -> ToolContext {
        context.with(IDEMPOTENCY_KEY, format!("{}/{call}", self.session))
    }

    /// Returns the idempotency key of a call: no other call of the session has the same key. A call that runs again after a
    /// crash has the key of its earlier start, unless its tool or its `arguments` (without secrets) differ.
    pub(crate) fn idempotency_key(&self, call: &str, tool: &ToolId, arguments: &Arguments) -> String {
        let key = format!("{}/{call}", self.session);
        self.earlier_keys.key_for(call, key, tool, arguments)
    }

    /// Returns the journal of the conversation to which a context belongs. For an agent, this is the journal of the
    /// conversation in which the agent runs.
    pub(crate) fn of(context: &ToolContext) -> Option<&Arc<Self>> {
        context.extension::<Arc<Self>>()
    }

    fn lock(&self) -> MutexGuard<'_, JournalState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The writer of a journal that stores nothing.
struct UnstoredWriter;

#[async_trait]
impl JournalWriter for UnstoredWriter {
    async fn append(&self, _entries: Vec<TraceEntry>) -> Result<(), JournalError> {
        Ok(())
    }

    async fn store_answer(&self, _question: u64, _answer: &ApprovalAnswer) -> Result<bool, JournalError> {
        Ok(true)
    }

    async fn answer(&self, _question: u64) -> Result<Option<ApprovalAnswer>, JournalError> {
        Ok(None)
    }

    async fn wait_for_answer(&self, _question: u64) -> Result<ApprovalAnswer, JournalError> {
        std::future::pending().await
    }
}

impl Observer for Journal {
    fn observe(&self, event: &Event, origin: &Origin) {
        // Progress is only displayed. A resumed conversation does not need it.
        if matches!(event, Event::Progress { .. }) {
            return;
        }
        let mut state = self.lock();
        if matches!(event, Event::TurnStarted { .. }) && origin.parent_call.is_none() {
            state.artifact_bytes_left = RECORDED_RUN_ARTIFACTS_BYTES_MAX;
        }
        let entry = TraceEntry::now(state.next_number, event.clone(), origin.clone());
        state.next_number += 1;
        state.questions.apply(&entry);
        state.pending_entries.push(entry);
    }
}

/// Starts a task of the current runtime that stores the last events of the dropped conversation, such as the end of a cancelled
/// run. The events are lost if there is no runtime, or if a write failed or the run is suspended.
impl Drop for Journal {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        let pending_entries = std::mem::take(&mut state.pending_entries);
        if pending_entries.is_empty() || state.closed_reason.is_some() {
            return;
        }
        let writer = self.writer.clone();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                if let Err(error) = writer.append(pending_entries).await {
                    tracing::warn!(%error, "the last events of a session were not stored");
                }
            });
        }
    }
}
