//! Calls that wait: for the key–value store of the host, and for another call of the conversation.

use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use toolwit::ErrorKind;
use toolwit::limits::LimitOverrides;
use toolwit::sandbox::{KeyValueError, KeyValueStore};

use crate::host::{Setup, TestHost};

const KEYVALUE: &str = r#"keyvalue = { quota = "1KiB" }"#;

/// A store that answers only when it is opened, like a database that another process has locked.
#[derive(Debug)]
struct LockedStore {
    is_open: Mutex<bool>,
    opened: Condvar,
    /// Reports each call that waits.
    waits: UnboundedSender<()>,
}

impl LockedStore {
    fn new() -> (Arc<Self>, UnboundedReceiver<()>) {
        let (waits, waiting) = unbounded_channel();
        let store = Self {
            is_open: Mutex::new(false),
            opened: Condvar::new(),
            waits,
        };
        (Arc::new(store), waiting)
    }

    fn open(&self) {
        *self.is_open.lock().unwrap() = true;
        self.opened.notify_all();
    }
}

impl KeyValueStore for LockedStore {
    fn get(&self, _: &str, _: &str, key: &str) -> Result<Option<Vec<u8>>, KeyValueError> {
        self.waits.send(()).ok();
        let is_open = self.is_open.lock().unwrap();
        drop(self.opened.wait_while(is_open, |is_open| !*is_open).unwrap());
        Ok(Some(key.as_bytes().to_vec()))
    }

    fn set(&self, _: &str, _: &str, _: &str, _: &[u8], _: u64) -> Result<(), KeyValueError> {
        Ok(())
    }

    fn delete(&self, _: &str, _: &str, _: &str) -> Result<(), KeyValueError> {
        Ok(())
    }

    fn keys(&self, _: &str, _: &str, _: Option<&str>, _: usize) -> Result<Vec<String>, KeyValueError> {
        Ok(Vec::new())
    }
}

fn recall() -> Value {
    json!({"bucket": "b", "key": "k"})
}

// The test has one thread: a store that blocks it never lets it end. attack: B8
#[tokio::test]
async fn a_store_that_does_not_answer_ends_with_the_time_of_the_call() {
    let (store, _waiting) = LockedStore::new();
    let limits = LimitOverrides::default().with_wall_max(Duration::from_millis(300));
    let setup = Setup::new().keyvalue(store.clone()).limits(limits);
    let host = setup.grant(KEYVALUE).start().await;
    let error = host.call("recall", recall()).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Timeout, "{error}");
    store.open();
    assert_eq!(host.value("recall", recall()).await, "k");
}

/// Starts a call that waits for the store, and a second one, which waits until the instance of the conversation is free. `meanwhile`
/// runs while both wait. Returns the outcome of the second one, and expects that the first one succeeds.
async fn outcome_of_a_waiting_call(meanwhile: impl FnOnce(&TestHost)) -> Result<Value, toolwit::Error> {
    let (store, mut waiting) = LockedStore::new();
    let host = Setup::new().keyvalue(store.clone()).grant(KEYVALUE).start().await;
    let mut first = std::pin::pin!(host.call("recall", recall()));
    tokio::select! {
        outcome = &mut first => panic!("it waits for the store: {outcome:?}"),
        wait = waiting.recv() => wait.unwrap(),
    }
    let mut second = std::pin::pin!(host.call("recall", recall()));
    assert!(futures::poll!(&mut second).is_pending());
    meanwhile(&host);
    store.open();
    let (first, second) = tokio::join!(first, second);
    assert_eq!(first.unwrap().value.unwrap(), "k", "a call that runs keeps its rights");
    second.map(|result| result.value.unwrap())
}

// attack: D7
#[tokio::test]
async fn a_grant_that_is_revoked_while_a_call_waits_does_not_apply_to_it() {
    assert_eq!(outcome_of_a_waiting_call(|_| {}).await.unwrap(), "k");
    let more = format!("{KEYVALUE}\n[[grant]]\nplugin = \"keeper\"\nany-version = true\nconfig = {{ a = \"b\" }}");
    let kept = outcome_of_a_waiting_call(|host| host.regrant(&more)).await;
    assert_eq!(kept.unwrap(), "k", "an additional grant takes nothing away");
    for changed in ["", r#"keyvalue = { quota = "2KiB" }"#] {
        let refused = outcome_of_a_waiting_call(|host| host.regrant(changed))
            .await
            .unwrap_err();
        assert_eq!(refused.kind, ErrorKind::Denied, "{refused}");
        assert!(refused.message.contains("while the call waited"), "{refused}");
    }
}
