//! One suite for every store of sessions.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use toolwit_agent::{Event, JournalError, JournalStore, MemoryJournalStore, SessionId, TraceEntry};
use toolwit_core::Origin;
use toolwit_journal::SqliteJournalStore;

/// Runs a check on each store.
async fn on_each<F: Future<Output = ()>>(check: impl Fn(Arc<dyn JournalStore>) -> F) {
    check(Arc::new(MemoryJournalStore::new())).await;
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteJournalStore::open(directory.path().join("sessions.db"))
        .await
        .unwrap();
    check(Arc::new(store)).await;
}

fn id(name: &str) -> SessionId {
    name.parse().unwrap()
}

fn entry(sequence: u64, text: &str) -> TraceEntry {
    let event = Event::PromptExtended { text: text.to_owned() };
    TraceEntry::now(sequence, event, Origin::default())
}

#[tokio::test]
async fn entries_are_returned_in_order_and_large_texts_unchanged() {
    on_each(async |store| {
        let entries = [entry(0, "a"), entry(1, &"ü".repeat(5000)), entry(2, &"ü".repeat(5000))];
        let writer = store.create(&id("s")).await.unwrap();
        writer.append(entries[..2].to_vec()).await.unwrap();
        writer.append(entries[1..].to_vec()).await.unwrap();
        assert_eq!(store.entries(&id("s")).await.unwrap(), entries);
    })
    .await;
}

#[tokio::test]
async fn only_one_writer_can_hold_a_session() {
    on_each(async |store| {
        let writer = store.create(&id("s")).await.unwrap();
        assert!(matches!(store.open(&id("s")).await, Err(JournalError::Busy(_))));
        assert!(matches!(store.remove(&id("s")).await, Err(JournalError::Busy(_))));
        assert!(matches!(store.create(&id("s")).await, Err(JournalError::Exists(_))));
        drop(writer);
        drop(store.open(&id("s")).await.unwrap());
        store.remove(&id("s")).await.unwrap();
        assert!(matches!(store.open(&id("s")).await, Err(JournalError::Missing(_))));
    })
    .await;
}

#[tokio::test]
async fn a_fork_has_the_first_entries_and_is_independent() {
    on_each(async |store| {
        let writer = store.create(&id("s")).await.unwrap();
        writer.append((0..4).map(|n| entry(n, "text")).collect()).await.unwrap();
        store.fork(&id("s"), &id("t"), 2).await.unwrap();
        assert!(matches!(
            store.fork(&id("s"), &id("t"), 2).await,
            Err(JournalError::Exists(_))
        ));
        assert!(matches!(
            store.fork(&id("u"), &id("v"), 2).await,
            Err(JournalError::Missing(_))
        ));
        assert_eq!(store.entries(&id("t")).await.unwrap().len(), 2);
        drop(writer);
        store.remove(&id("s")).await.unwrap();
        let summaries = store.sessions().await.unwrap();
        let names: Vec<_> = summaries
            .iter()
            .map(|summary| (summary.session.as_str(), summary.entries))
            .collect();
        assert_eq!(names, [("t", 2)]);
    })
    .await;
}

#[test]
fn names_of_sessions_are_file_names() {
    for name in ["", ".", "..", "a/b", "-x", "a b", "ü", &"x".repeat(65)] {
        assert!(name.parse::<SessionId>().is_err(), "{name}");
    }
    assert!("2026-11-23_tea.1".parse::<SessionId>().is_ok());
}

#[tokio::test]
async fn a_file_of_another_program_is_refused_and_not_changed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("notes.db");
    std::fs::write(&path, "these are my notes, not a database at all").unwrap();
    let refused = SqliteJournalStore::open(&path).await;
    assert!(matches!(refused, Err(JournalError::Store { .. })));
    assert!(std::fs::read_to_string(&path).unwrap().starts_with("these are"));
}
