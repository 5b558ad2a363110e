//! Notifications of changes, and clients that do not take them.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};
use toolwit_mcp_server::ServedContent;

use crate::content::library;
use crate::line_client::{LineClient, meta};

/// More than the time of a notification that nothing delays, and less than that of one that waits for a stalled client.
const PROMPT: Duration = Duration::from_secs(1);

/// The size of a buffer for a few notifications, in bytes.
const SMALL_BYTES: usize = 512;

async fn begin(client: &mut LineClient) {
    client.begin_session(json!({})).await;
    let subscribed = client
        .request("subscribe", "resources/subscribe", json!({"uri": "rules://review"}))
        .await;
    assert_eq!(subscribed["result"], json!({}));
}

/// Begins a subscription of revision 2026-07-28.
async fn listen(client: &mut LineClient, notifications: Value) {
    let params = json!({"notifications": notifications, "_meta": meta()});
    client
        .send(&json!({"jsonrpc": "2.0", "id": "listen", "method": "subscriptions/listen", "params": params}))
        .await;
    let acknowledged = client.next().await;
    assert_eq!(
        acknowledged["method"], "notifications/subscriptions/acknowledged",
        "{acknowledged}"
    );
}

fn all() -> Value {
    json!({"toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true,
           "resourceSubscriptions": ["rules://review"]})
}

// attack: G12
#[tokio::test(start_paused = true)]
async fn a_client_that_stops_reading_delays_no_other() {
    let (server, _directory) = library().await;
    let mut stalled = LineClient::connected_with(server.clone(), SMALL_BYTES);
    begin(&mut stalled).await;
    let mut stalled_subscription = LineClient::connected_with(server.clone(), SMALL_BYTES);
    listen(&mut stalled_subscription, all()).await;

    let mut session = LineClient::session_with(server.clone(), json!({})).await;
    let mut subscription = LineClient::connected_to(server.clone());
    listen(&mut subscription, all()).await;
    for round in 0..50 {
        server.set_content(ServedContent::default());
        for client in [&mut session, &mut subscription] {
            for method in [
                "notifications/prompts/list_changed",
                "notifications/resources/list_changed",
            ] {
                let next = tokio::time::timeout(PROMPT, client.next()).await;
                let next = next.unwrap_or_else(|_| panic!("round {round}: {method} is late"));
                assert_eq!(next["method"], method, "{next}");
            }
        }
    }
    // It reads again, and misses the notifications that it did not take in time.
    tokio::time::advance(Duration::from_secs(60)).await;
    let mut notifications = 0;
    while let Ok(next) = tokio::time::timeout(PROMPT, stalled.next()).await {
        assert!(next["method"].as_str().unwrap().ends_with("list_changed"), "{next}");
        notifications += 1;
    }
    assert!((1..100).contains(&notifications), "{notifications}");
    let pong = stalled.request("1", "ping", json!({})).await;
    assert_eq!(pong["result"], json!({}));
}

#[tokio::test(start_paused = true)]
async fn a_subscription_gets_what_it_listens_to_and_nothing_else() {
    let (server, directory) = library().await;
    let mut everything = LineClient::connected_to(server.clone());
    listen(&mut everything, all()).await;
    let mut prompts = LineClient::connected_to(server.clone());
    listen(&mut prompts, json!({"promptsListChanged": true})).await;

    // The files are compared with those of the start.
    tokio::time::sleep(PROMPT).await;
    fs::write(directory.path().join("rules.md"), "Errors have a hint, and a cause.").unwrap();
    let updated = everything.next().await;
    assert_eq!(updated["method"], "notifications/resources/updated", "{updated}");
    assert_eq!(updated["params"]["uri"], "rules://review");
    let id = &updated["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"];
    assert_eq!(id, "listen", "{updated}");

    server.set_content(ServedContent::default());
    let next = prompts.next().await;
    assert_eq!(
        next["method"], "notifications/prompts/list_changed",
        "neither the resource nor its list: {next}"
    );
    let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "listen"}});
    prompts.send(&cancelled).await;
    let found = prompts.request("1", "server/discover", json!({"_meta": meta()})).await;
    assert!(found["result"]["supportedVersions"].is_array(), "{found}");

    // The other client, whose subscription has the same id, still listens.
    for _ in 0..2 {
        everything.next().await;
    }
    server.set_content(ServedContent::default());
    let next = tokio::time::timeout(PROMPT, everything.next()).await;
    let next = next.expect("the subscription has not ended");
    assert_eq!(next["method"], "notifications/prompts/list_changed");
    let nothing = tokio::time::timeout(PROMPT, prompts.next()).await;
    assert!(nothing.is_err(), "its own has: {nothing:?}");
}
