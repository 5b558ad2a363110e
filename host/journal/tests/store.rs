//! One suite for every store of sessions.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::sync::Arc;

use serde_json::json;
use toolwit_agent::{
    Event, JournalError, JournalStore, MemoryJournalStore, RunUsage, SessionId, StopReason, TraceEntry,
};
use toolwit_core::{Approval, ApprovalAnswer, ApprovalScope, ArgumentPattern, Arguments, Origin};
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
        store.fork(&id("s"), &id("t"), Some(2)).await.unwrap();
        assert!(matches!(
            store.fork(&id("s"), &id("t"), Some(2)).await,
            Err(JournalError::Exists(_))
        ));
        assert!(matches!(
            store.fork(&id("u"), &id("v"), Some(2)).await,
            Err(JournalError::Missing(_))
        ));
        assert_eq!(store.entries(&id("t")).await.unwrap().len(), 2);
        store.fork(&id("s"), &id("all"), None).await.unwrap();
        assert_eq!(store.entries(&id("all")).await.unwrap().len(), 4);
        store.remove(&id("all")).await.unwrap();
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

#[tokio::test]
async fn a_fork_after_the_last_entry_is_refused() {
    on_each(async |store| {
        let writer = store.create(&id("s")).await.unwrap();
        writer.append((0..4).map(|n| entry(n, "text")).collect()).await.unwrap();
        for end in [5, 999, u64::MAX] {
            let refused = store.fork(&id("s"), &id("t"), Some(end)).await;
            assert!(
                matches!(refused, Err(JournalError::Position { entries: 4, .. })),
                "{refused:?}"
            );
        }
        assert!(matches!(store.entries(&id("t")).await, Err(JournalError::Missing(_))));
        store.fork(&id("s"), &id("t"), Some(4)).await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_session_of_a_newer_version_does_not_hide_the_others() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("sessions.db");
    let store = SqliteJournalStore::open(&file).await.unwrap();
    for name in ["old", "new"] {
        let writer = store.create(&id(name)).await.unwrap();
        writer.append(vec![entry(0, name)]).await.unwrap();
    }
    let newer = "UPDATE entries SET entry = replace(entry, 'prompt_extended', 'dreamt') WHERE entry LIKE '%\"new\"%'";
    let changed = rusqlite::Connection::open(&file).unwrap().execute(newer, []).unwrap();
    assert_eq!(changed, 1);
    let summaries = store.sessions().await.unwrap();
    let [old, new] = summaries.as_slice() else {
        panic!("{summaries:?}")
    };
    assert_eq!((old.session.as_str(), old.problem.as_deref()), ("old", None));
    let problem = "entry 0 of the session cannot be read: unknown variant `dreamt`";
    assert_eq!((new.entries, new.problem.as_deref()), (1, Some(problem)));
    assert!(matches!(
        store.entries(&id("new")).await,
        Err(JournalError::Entry { sequence: 0, .. })
    ));
}

#[tokio::test]
async fn a_stored_name_that_no_session_may_have_does_not_hide_the_others() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("sessions.db");
    let store = SqliteJournalStore::open(&file).await.unwrap();
    store.create(&id("valid")).await.unwrap();
    let insert = "INSERT INTO sessions (name) VALUES ('../invalid')";
    rusqlite::Connection::open(&file).unwrap().execute(insert, []).unwrap();
    let summaries = store.sessions().await.unwrap();
    let names: Vec<_> = summaries.iter().map(|summary| summary.session.as_str()).collect();
    assert_eq!(names, ["valid"]);
}

fn question(sequence: u64, call: &str, callers: &[&str]) -> TraceEntry {
    let event = json!({
        "event": "approval_requested", "id": call, "name": "pay", "tool": "bank#pay", "arguments": {"amount": 5},
        "effect": {"class": "write", "source": "default"}, "callers": callers, "digest": "d",
    });
    let event = serde_json::from_value(event).unwrap();
    TraceEntry::now(sequence, event, Origin::default())
}

fn denied(reason: &str) -> ApprovalAnswer {
    let reason = reason.to_owned();
    Approval::Denied { reason }.into()
}

#[tokio::test]
async fn an_answer_has_the_same_scope_after_it_was_stored() {
    let arguments = Arguments::from_iter([("path".to_owned(), json!("*"))]);
    let scopes = [
        ApprovalScope::ExactArguments(arguments.clone()),
        ApprovalScope::MatchingArguments(ArgumentPattern::new(arguments)),
        ApprovalScope::Tool,
    ];
    on_each(async |store| {
        let writer = store.create(&id("s")).await.unwrap();
        for (number, scope) in (0..).zip(&scopes) {
            writer
                .append(vec![question(number, &number.to_string(), &[])])
                .await
                .unwrap();
            let answer = ApprovalAnswer::from(Approval::Approved).with_scope(scope.clone());
            store.answer_approval(&id("s"), number, answer.clone()).await.unwrap();
            assert_eq!(writer.answer(number).await.unwrap(), Some(answer));
        }
        drop(writer);
        store.remove(&id("s")).await.unwrap();
    })
    .await;
}

// attack: M4
#[tokio::test]
async fn the_first_answer_to_a_question_counts_from_any_process() {
    on_each(async |store| {
        let writer = store.create(&id("s")).await.unwrap();
        writer
            .append(vec![question(0, "a", &[]), question(1, "b", &[])])
            .await
            .unwrap();
        let pending = store.pending_approvals(&id("s")).await.unwrap();
        let calls: Vec<_> = pending
            .iter()
            .map(|pending| (pending.number, &*pending.question.id))
            .collect();
        assert_eq!(calls, [(0, "a"), (1, "b")]);
        // Another process, while the writer holds the session.
        store.answer_approval(&id("s"), 0, denied("first")).await.unwrap();
        let late = store.answer_approval(&id("s"), 0, denied("second")).await;
        assert!(matches!(late, Err(JournalError::Answered(_, 0))), "{late:?}");
        assert!(!writer.store_answer(0, &denied("third")).await.unwrap());
        assert_eq!(writer.answer(0).await.unwrap(), Some(denied("first")));
        // The conversation that asked.
        assert!(writer.store_answer(1, &denied("mine")).await.unwrap());
        let late = store.answer_approval(&id("s"), 1, denied("late")).await;
        assert!(matches!(late, Err(JournalError::Answered(_, 1))), "{late:?}");
        let unknown = store.answer_approval(&id("s"), 7, denied("why")).await;
        assert!(matches!(unknown, Err(JournalError::NotPending(_, 7))), "{unknown:?}");
        let missing = store.answer_approval(&id("none"), 0, denied("why")).await;
        assert!(matches!(missing, Err(JournalError::Missing(_))), "{missing:?}");
        let answers: Vec<_> = store.answers(&id("s")).await.unwrap().into_iter().collect();
        assert_eq!(answers, [(0, denied("first")), (1, denied("mine"))]);
        store.fork(&id("s"), &id("t"), Some(2)).await.unwrap();
        assert!(store.answers(&id("t")).await.unwrap().is_empty(), "a fork asks again");
        drop(writer);
        store.remove(&id("s")).await.unwrap();
        assert!(matches!(store.answers(&id("s")).await, Err(JournalError::Missing(_))));
    })
    .await;
}

// attack: M4
#[tokio::test]
async fn an_edit_that_does_not_match_the_schema_is_refused_and_the_question_stays_open() {
    on_each(async |store| {
        let mut with_schema = question(0, "a", &[]);
        if let Event::ApprovalRequested(request) = &mut with_schema.event {
            request.input_schema = Some(json!({"type": "object", "properties": {"amount": {"type": "integer"}}}));
        }
        let writer = store.create(&id("s")).await.unwrap();
        // The question of an earlier version has no schema, so the run checks its edit.
        writer.append(vec![with_schema, question(1, "b", &[])]).await.unwrap();
        let edit = |amount| {
            ApprovalAnswer::from(Approval::Edited {
                arguments: Arguments::from_iter([("amount".to_owned(), amount)]),
            })
        };
        let refused = store.answer_approval(&id("s"), 0, edit(json!("much"))).await;
        assert!(
            matches!(&refused, Err(JournalError::Edit(reason)) if reason.contains("amount")),
            "{refused:?}"
        );
        assert!(store.answers(&id("s")).await.unwrap().is_empty());
        store.answer_approval(&id("s"), 0, edit(json!(7))).await.unwrap();
        store.answer_approval(&id("s"), 1, edit(json!("much"))).await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_question_that_waits_gets_the_answer() {
    on_each(async |store| {
        let writer = store.create(&id("s")).await.unwrap();
        writer.append(vec![question(0, "a", &[])]).await.unwrap();
        let mut waiting = Box::pin(writer.wait_for_answer(0));
        tokio::select! {
            biased;
            answer = &mut waiting => panic!("nobody answered: {answer:?}"),
            () = tokio::task::yield_now() => {}
        }
        let session = id("s");
        let answered = store.answer_approval(&session, 0, denied("no"));
        let (answer, answered) = tokio::join!(waiting, answered);
        answered.unwrap();
        assert_eq!(answer.unwrap(), denied("no"));
        assert_eq!(writer.wait_for_answer(0).await.unwrap(), denied("no"), "it is stored");
    })
    .await;
}

#[tokio::test]
async fn an_answer_of_another_process_is_noticed() {
    let directory = tempfile::tempdir().unwrap();
    let open = || SqliteJournalStore::open(directory.path().join("sessions.db"));
    // Two connections, as of two processes.
    let (asking, answering) = (open().await.unwrap(), open().await.unwrap());
    let writer = asking.create(&id("s")).await.unwrap();
    writer.append(vec![question(0, "a", &[])]).await.unwrap();
    assert!(answering.is_open(&id("s")).await.unwrap());
    let session = id("s");
    let answered = answering.answer_approval(&session, 0, denied("no"));
    let (answer, answered) = tokio::join!(writer.wait_for_answer(0), answered);
    answered.unwrap();
    assert_eq!(answer.unwrap(), denied("no"));
    drop(writer);
    assert!(!answering.is_open(&id("s")).await.unwrap());
}

#[tokio::test]
async fn a_question_ends_with_its_call_its_run_and_for_nested_calls_with_the_process() {
    on_each(async |store| {
        let numbers = async || -> Vec<u64> {
            let pending = store.pending_approvals(&id("s")).await.unwrap();
            pending.iter().map(|pending| pending.number).collect()
        };
        let event = |sequence, event| {
            let event = serde_json::from_value(event).unwrap();
            TraceEntry::now(sequence, event, Origin::default())
        };
        let decided = |sequence, call: &str, decision: &str| {
            let decided = json!({"event": "approval_decided", "id": call, "tool": "bank#pay", "decision": decision, "basis": "approver"});
            event(sequence, decided)
        };
        let writer = store.create(&id("s")).await.unwrap();
        let questions = [question(0, "a", &[]), question(1, "b", &[]), question(2, "c/1", &["shop#buy"]), question(3, "d", &[])];
        writer.append(questions.to_vec()).await.unwrap();
        assert_eq!(numbers().await, [0, 1, 2, 3]);
        writer.append(vec![decided(4, "a", "denied")]).await.unwrap();
        assert_eq!(numbers().await, [1, 2, 3]);
        let started = json!({"event": "tool_started", "id": "b", "name": "pay", "tool": "bank#pay"});
        // An approval that was not used is not lost with its process.
        writer.append(vec![decided(5, "b", "approved")]).await.unwrap();
        assert_eq!(numbers().await, [1, 2, 3]);
        writer.append(vec![event(6, started)]).await.unwrap();
        assert_eq!(numbers().await, [2, 3]);
        drop(writer);
        assert_eq!(numbers().await, [3], "the caller of the nested call has ended");
        let writer = store.open(&id("s")).await.unwrap();
        let resumed = json!({"event": "run_resumed", "loop_id": "l", "again": []});
        writer.append(vec![event(7, resumed), question(8, "d", &[])]).await.unwrap();
        assert_eq!(numbers().await, [3], "it is the same question");
        writer.append(vec![question(9, "d", &[])]).await.unwrap();
        assert_eq!(numbers().await, [9], "it is asked a second time");
        let finished = Event::Finished {
            stop: StopReason::Cancelled,
            iterations: 1,
            tool_calls: 0,
            usage: RunUsage::default(),
            wall_ms: 1,
        };
        let finished = TraceEntry::now(10, finished, Origin::default());
        writer.append(vec![finished]).await.unwrap();
        assert!(numbers().await.is_empty());
    })
    .await;
}

#[tokio::test]
async fn a_store_of_the_first_version_gets_answers() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sessions.db");
    let store = SqliteJournalStore::open(&path).await.unwrap();
    drop(store.create(&id("s")).await.unwrap());
    drop(store);
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection
        .execute_batch("DROP TABLE answers; DROP TABLE origin; PRAGMA user_version = 1")
        .unwrap();
    drop(connection);
    let store = SqliteJournalStore::open(&path).await.unwrap();
    assert!(store.store_answer(&id("s"), 0, &denied("no")).await.unwrap());
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.execute_batch("PRAGMA user_version = 4").unwrap();
    assert!(matches!(
        SqliteJournalStore::open(&path).await,
        Err(JournalError::Store { .. })
    ));
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
    let [_, locks] = SqliteJournalStore::paths(&path);
    assert!(!locks.exists(), "nothing is created next to the file");
}

#[tokio::test]
async fn only_a_file_of_this_program_gets_a_directory_of_locks() {
    let directory = tempfile::tempdir().unwrap();
    let foreign = directory.path().join("foreign.db");
    let connection = rusqlite::Connection::open(&foreign).unwrap();
    connection.execute_batch("CREATE TABLE notes (text TEXT)").unwrap();
    drop(connection);
    let refused = SqliteJournalStore::open(&foreign).await;
    assert!(matches!(refused, Err(JournalError::Store { .. })));
    let entries = std::fs::read_dir(directory.path()).unwrap();
    let names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["foreign.db"]);

    let own = directory.path().join("sessions.db");
    SqliteJournalStore::open(&own).await.unwrap();
    let [_, locks] = SqliteJournalStore::paths(&own);
    assert!(locks.is_dir());
}
