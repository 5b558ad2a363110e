//! When plugins are asked for their tools, how long that may take, and what becomes of those that tell none.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use toolwit::ErrorKind;
use toolwit::limits::LimitRequest;
use toolwit::registry::{DiscoveryTargets, DynamicDiscovery, LiveRegistry};
use toolwit::store::MemoryStore;
use toolwit_tests::Guests;

use crate::dynamic::{call, host, menu, names, set, untold};
use crate::place::{Place, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plugin_that_tells_nothing_usable_says_why_keeps_its_other_tools_and_is_asked_again() {
    let place = menu(&[("mode", "closed")]).await;
    let store = Arc::new(MemoryStore::new());
    let closed = host(&place).store(store.clone()).build().await.unwrap();
    let reason = untold(&closed);
    assert_eq!(reason.kind, ErrorKind::Tool);
    assert!(reason.message.contains("the kitchen is closed"), "{reason}");
    assert!(
        reason
            .suggestion
            .as_deref()
            .unwrap()
            .contains("LiveRegistry::discover_dynamic_tools"),
        "{reason:?}"
    );
    assert_eq!(call(&closed, "count", json!({})).await.unwrap().for_llm, "0");
    closed.live_registry().refresh().await.unwrap();
    assert_eq!(untold(&closed).kind, ErrorKind::Tool, "a look does not heal it");
    set(&place, &[]);
    assert!(
        closed
            .live_registry()
            .discover_dynamic_tools(DiscoveryTargets::Pending)
            .await
            .unwrap()
            .is_empty(),
        "not at once"
    );
    closed
        .live_registry()
        .discover_dynamic_tools(DiscoveryTargets::Named(&["menu".to_owned()]))
        .await
        .unwrap();
    assert_eq!(names(&closed), ["count", "soup", "tea"]);

    set(&place, &[("mode", "closed")]);
    let other = Arc::new(MemoryStore::new());
    host(&place).store(other.clone()).build().await.unwrap();
    set(&place, &[]);
    let open = host(&place).store(other).build().await.unwrap();
    assert_eq!(names(&open), ["count", "soup", "tea"], "the failure was kept nowhere");
}

// attack: B8
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plugin_that_sleeps_is_woken_by_the_deadline_and_holds_up_no_other() {
    let place = menu(&[("mode", "sleep")]).await;
    let short = host(&place).limits(LimitRequest::none().wall(Duration::from_millis(200)));
    let started = Instant::now();
    let asleep = short.build().await.unwrap();
    assert!(started.elapsed() < Duration::from_secs(60));
    assert_eq!(untold(&asleep).kind, ErrorKind::Timeout);
    assert_eq!(call(&asleep, "count", json!({})).await.unwrap().for_llm, "0");

    // Without a grant it has no mode.
    place.put_bytes("other.wasm", &Guests::rust_bytes("menu").await);
    let both = host(&place)
        .dynamic_discovery(DynamicDiscovery::Never)
        .build()
        .await
        .unwrap();
    let live = both.live_registry().clone();
    let asking = tokio::spawn(async move { live.discover_dynamic_tools(DiscoveryTargets::All).await });
    until(both.live_registry(), |registry| {
        registry.definition("other/toolwit:plugin/dynamic@0.1.0#soup").is_some()
    })
    .await;
    assert!(!asking.is_finished(), "the other one still sleeps");
    asking.abort();
}

#[tokio::test]
async fn a_plugin_that_told_nothing_is_asked_again_after_a_pause() {
    let place = menu(&[("mode", "closed")]).await;
    let host = host(&place).build().await.unwrap();
    let ask = || host.live_registry().discover_dynamic_tools(DiscoveryTargets::Pending);
    set(&place, &[]);
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(290)).await;
    tokio::time::resume();
    assert!(ask().await.unwrap().is_empty(), "too early");
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(20)).await;
    tokio::time::resume();
    let asked = ask().await.unwrap();
    assert_eq!((asked.len(), asked[0].tools.as_ref().unwrap()), (1, &3));
    assert_eq!(names(&host), ["count", "soup", "tea"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_registry_that_never_changes_asks_nobody_and_stays_as_it_is() {
    let place = menu(&[]).await;
    let host = host(&place)
        .dynamic_discovery(DynamicDiscovery::Never)
        .build()
        .await
        .unwrap();
    let fixed = LiveRegistry::from(host.registry());
    for ask in [DiscoveryTargets::Pending, DiscoveryTargets::All] {
        assert!(fixed.discover_dynamic_tools(ask).await.unwrap().is_empty());
    }
    assert!(fixed.current().is_same(&host.registry()));
    assert_eq!(fixed.current().packages().len(), 1);
    assert_eq!(
        host.live_registry()
            .discover_dynamic_tools(DiscoveryTargets::All)
            .await
            .unwrap()
            .len(),
        1
    );
    assert_eq!(names(&host).len(), 3);
}

// accept: 136
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_missing_key_leaves_out_what_a_plugin_tells_and_nothing_else() {
    let manifest = "[[environment]]\nname = \"stove-key\"\ndescription = \"of the stove\"\nrequired = true\n";
    let place = menu(&[]).await;
    place.put_bytes("menu.toml", manifest.as_bytes());
    let without = host(&place).build().await.unwrap();
    let error = untold(&without);
    assert_eq!(error.kind, ErrorKind::MissingKey);
    assert!(error.message.contains("stove-key"), "{error}");
    assert_eq!(names(&without), ["count"]);
    set(&place, &[("stove-key", "7")]);
    let with = host(&place).build().await.unwrap();
    assert_eq!(names(&with), ["count", "soup", "tea"]);
}

#[tokio::test]
async fn a_host_is_there_after_ten_seconds_whoever_still_thinks_about_his_tools() {
    let place = Place::new();
    let mut grants = "version = 1\n".to_owned();
    for at in 1..=5 {
        place.put_bytes(&format!("menu{at}.wasm"), &Guests::rust_bytes("menu").await);
        grants += &format!("[[grant]]\nplugin = \"menu{at}\"\nany-version = true\nconfig = {{ mode = \"sleep\" }}\n");
    }
    place.put_bytes("grants.toml", grants.as_bytes());
    tokio::time::pause();
    let started = tokio::time::Instant::now();
    let host = host(&place).build().await.unwrap();
    assert!(started.elapsed() < Duration::from_secs(11), "{:?}", started.elapsed());
    assert_eq!(names(&host).len(), 5, "the tools of their types");
    let unasked = host.registry().package("menu5").unwrap().discovery_error().unwrap();
    assert_eq!(
        unasked.kind,
        ErrorKind::ToolUnavailable,
        "four are asked at once: {unasked:?}"
    );
    until(host.live_registry(), |registry| {
        let last = registry.package("menu5").and_then(|package| package.discovery_error());
        last.is_some_and(|error| error.kind == ErrorKind::Timeout)
    })
    .await;
}
