#![allow(clippy::unwrap_used)]

use super::*;
use crate::principal::Principal;
use crate::stateless::live_session_counter::LiveSessionCounter;
use toolwit::Toolwit;

async fn begin_session() -> Arc<LiveSession> {
    let principal = Principal::new("ada", Toolwit::builder().build().await.unwrap());
    let permit = LiveSessionCounter::default().permit("ada").unwrap();
    Arc::new(LiveSession::begin(&principal, Some(permit)).await.unwrap())
}

fn customer(id: &str) -> (EntityKind, String) {
    let kind = EntityKind {
        plugin: "crm".to_owned(),
        name: "customer".to_owned(),
    };
    (kind, id.to_owned())
}

fn issue(table: &HandleTable, session: &Arc<LiveSession>, principal: &str, id: &str) -> String {
    table.issue(session, principal, [customer(id)]).remove(0).unwrap()
}

#[tokio::test]
async fn an_entity_keeps_its_handle_and_only_its_principal_can_use_it() {
    let (table, session) = (HandleTable::default(), begin_session().await);
    let handle = issue(&table, &session, "ada", "c-1");
    assert_eq!(issue(&table, &session, "ada", "c-1"), handle);
    assert_ne!(issue(&table, &session, "ada", "c-2"), handle);
    assert_eq!(table.entity(&handle, "ada").unwrap().id, "c-1");
    assert!(table.entity(&handle, "bob").is_none());
    assert!(table.entity("customer_guessed", "ada").is_none());
    assert!(looks_like_handle(&handle, "customer") && !looks_like_handle(&handle, "order"));
    assert!(!looks_like_handle("customer_guessed", "customer"));
}

#[tokio::test(start_paused = true)]
async fn a_handle_expires_after_its_last_use_and_ends_its_session() {
    let (table, session) = (HandleTable::default(), begin_session().await);
    let handle = issue(&table, &session, "ada", "c-1");
    tokio::time::advance(HANDLE_TTL - Duration::from_secs(1)).await;
    assert!(table.entity(&handle, "ada").is_some());
    tokio::time::advance(HANDLE_TTL - Duration::from_secs(1)).await;
    assert!(table.entity(&handle, "ada").is_some(), "a use extends the validity");
    tokio::time::advance(HANDLE_TTL).await;
    assert!(table.entity(&handle, "ada").is_none());
    assert_eq!((table.len(), Arc::strong_count(&session)), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn the_use_of_a_handle_extends_only_the_handles_of_its_session() {
    let (table, session, other_session) = (HandleTable::default(), begin_session().await, begin_session().await);
    let used = issue(&table, &session, "ada", "c-1");
    let unused = issue(&table, &session, "ada", "c-2");
    let other_handle = issue(&table, &other_session, "ada", "c-3");
    tokio::time::advance(HANDLE_TTL - Duration::from_secs(1)).await;
    assert!(table.entity(&used, "ada").is_some());
    tokio::time::advance(HANDLE_TTL - Duration::from_secs(1)).await;
    assert!(table.entity(&unused, "ada").is_some());
    assert!(table.entity(&other_handle, "ada").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_session_above_the_maximum_replaces_the_least_recently_used_session() {
    let table = HandleTable::default();
    let mut handles = Vec::new();
    for number in 0..=SESSIONS_PER_PRINCIPAL_MAX {
        tokio::time::advance(Duration::from_millis(1)).await;
        handles.push(issue(&table, &begin_session().await, "ada", &number.to_string()));
    }
    assert!(table.entity(&handles[0], "ada").is_none());
    assert!(table.entity(&handles[1], "ada").is_some());
    assert_eq!(table.len(), SESSIONS_PER_PRINCIPAL_MAX);
}
