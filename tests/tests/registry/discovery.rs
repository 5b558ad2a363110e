//! Discovery of dynamic tools: when it runs, how long it may take, and what happens when it fails.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use toolwit::ErrorKind;
use toolwit::limits::LimitOverrides;
use toolwit::registry::{DiscoveryTargets, DynamicDiscovery, LiveRegistry};
use toolwit::sandbox::CodeCacheLocation;
use toolwit::store::MemoryStore;
use toolwit_tests::Guests;

use crate::dynamic::{call, discovery_error, host, menu, names, set};
use crate::place::{Place, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failed_discovery_is_reported_with_its_reason_and_can_be_repeated() {
    let place = menu(&[("mode", "closed")]).await;
    let store = Arc::new(MemoryStore::new());
    let closed = host(&place).store(store.clone()).build().await.unwrap();
    let reason = discovery_error(&closed);
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
    assert_eq!(
        discovery_error(&closed).kind,
        ErrorKind::Tool,
        "a refresh does not repeat the discovery"
    );
    set(&place, &[]);
    assert!(
        closed
            .live_registry()
            .discover_dynamic_tools(DiscoveryTargets::Pending)
            .await
            .unwrap()
            .is_empty(),
        "not before the pause"
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
    assert_eq!(names(&open), ["count", "soup", "tea"], "a failure is not stored");
}

// attack: B8
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn discovery_of_a_sleeping_plugin_times_out_and_delays_no_other() {
    let place = menu(&[("mode", "sleep")]).await;
    let short = host(&place).limits(LimitOverrides::default().with_wall_max(Duration::from_millis(200)));
    let started = Instant::now();
    let asleep = short.build().await.unwrap();
    assert!(started.elapsed() < Duration::from_secs(60));
    assert_eq!(discovery_error(&asleep).kind, ErrorKind::Timeout);
    assert_eq!(call(&asleep, "count", json!({})).await.unwrap().for_llm, "0");

    // It has no grant, and so no `mode` setting: it does not sleep.
    place.put_bytes("other.wasm", &Guests::rust_bytes("menu").await);
    let both = host(&place)
        .dynamic_discovery(DynamicDiscovery::Never)
        .build()
        .await
        .unwrap();
    let live = both.live_registry().clone();
    let discovery = tokio::spawn(async move { live.discover_dynamic_tools(DiscoveryTargets::All).await });
    until(both.live_registry(), |registry| {
        registry.definition("other/toolwit:plugin/dynamic@0.1.0#soup").is_some()
    })
    .await;
    assert!(!discovery.is_finished(), "the other one still sleeps");
    discovery.abort();
}

#[tokio::test]
async fn failed_discovery_is_pending_again_after_five_minutes() {
    let place = menu(&[("mode", "closed")]).await;
    let host = host(&place).build().await.unwrap();
    let discover = || host.live_registry().discover_dynamic_tools(DiscoveryTargets::Pending);
    set(&place, &[]);
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(290)).await;
    tokio::time::resume();
    assert!(discover().await.unwrap().is_empty(), "too early");
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(20)).await;
    tokio::time::resume();
    let outcomes = discover().await.unwrap();
    assert_eq!((outcomes.len(), outcomes[0].tools.as_ref().unwrap()), (1, &3));
    assert_eq!(names(&host), ["count", "soup", "tea"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fixed_registry_discovers_nothing_and_does_not_change() {
    let place = menu(&[]).await;
    let host = host(&place)
        .dynamic_discovery(DynamicDiscovery::Never)
        .build()
        .await
        .unwrap();
    let fixed = LiveRegistry::from(host.registry());
    for targets in [DiscoveryTargets::Pending, DiscoveryTargets::All] {
        assert!(fixed.discover_dynamic_tools(targets).await.unwrap().is_empty());
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
async fn missing_key_prevents_only_the_discovery() {
    let manifest = "[[environment]]\nname = \"stove-key\"\ndescription = \"of the stove\"\nrequired = true\n";
    let place = menu(&[]).await;
    place.put_bytes("menu.toml", manifest.as_bytes());
    let without = host(&place).build().await.unwrap();
    let error = discovery_error(&without);
    assert_eq!(error.kind, ErrorKind::MissingKey);
    assert!(error.message.contains("stove-key"), "{error}");
    assert_eq!(names(&without), ["count"]);
    set(&place, &[("stove-key", "7")]);
    let with = host(&place).build().await.unwrap();
    assert_eq!(names(&with), ["count", "soup", "tea"]);
}

// attack: B19
#[tokio::test]
async fn plugins_that_sleep_delay_neither_the_host_nor_the_discovery_of_others() {
    const SLEEPING: usize = 12;
    let place = Place::new();
    let menu = Guests::rust_bytes("menu").await;
    let mut grants = "version = 1\n".to_owned();
    for at in 1..=SLEEPING {
        place.put_bytes(&format!("menu{at}.wasm"), &menu);
        grants += &format!("[[grant]]\nplugin = \"menu{at}\"\nany-version = true\nconfig = {{ mode = \"sleep\" }}\n");
    }
    place.put_bytes("open.wasm", &menu);
    place.put_bytes("grants.toml", grants.as_bytes());
    let code = tempfile::tempdir().unwrap();
    let cached = CodeCacheLocation::Directory(code.path().join("code"));
    let builder = host(&place).code_cache(cached);
    let warm = builder
        .clone()
        .dynamic_discovery(DynamicDiscovery::Never)
        .build()
        .await
        .unwrap();
    warm.registry().plugin_of("open").unwrap().compile().await.unwrap();
    tokio::time::pause();
    let started = tokio::time::Instant::now();
    let host = builder.build().await.unwrap();
    assert!(started.elapsed() < Duration::from_secs(11), "{:?}", started.elapsed());
    let names = names(&host);
    assert!(names.iter().any(|name| name == "soup"), "{names:?}");
    assert_eq!(names.len(), SLEEPING + 3, "the others have the tools in their WIT");
    until(host.live_registry(), |registry| {
        (1..=SLEEPING).all(|at| {
            let package = registry.package(&format!("menu{at}"));
            let error = package.and_then(|package| package.discovery_error());
            error.is_some_and(|error| error.kind == ErrorKind::Timeout)
        })
    })
    .await;
}
