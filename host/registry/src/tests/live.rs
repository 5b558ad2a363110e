//! Tests of live registries. They call `refresh` and set the modification times of files. Only the test of
//! [`LiveRegistry::watch`] waits.

use super::*;

use toolwit_core::{Arguments, Tool, ToolContext};

/// The age of a file that may still be changing.
const UNSETTLED_AGE: Duration = Duration::ZERO;

async fn open_live(directory: &Path) -> LiveRegistry {
    let store = Arc::new(MemoryStore::new());
    LiveRegistry::open(&runtime(), &[directory.to_owned()], MissingPath::Error, store, None)
        .await
        .unwrap()
}

/// Refreshes the registry. Returns whether the registry has changed.
async fn refresh_finds_change(live: &LiveRegistry) -> bool {
    live.refresh().await.unwrap().is_changed
}

fn package_names(live: &LiveRegistry) -> Vec<String> {
    let registry = live.current();
    registry.packages().iter().map(|package| package.name.clone()).collect()
}

/// Returns a component whose tool `answer` returns this number.
fn answering_component(number: i32) -> Vec<u8> {
    let text = format!(
        r#"(component
            (core module $m (func (export "f") (result i32) i32.const {number}))
            (core instance $i (instantiate $m))
            (func (export "answer") (result s32) (canon lift (core func $i "f"))))"#
    );
    wat::parse_str(text).unwrap()
}

async fn call(tool: &Arc<dyn Tool>) -> String {
    let result = tool.call(Arguments::new(), &ToolContext::new()).await;
    result.unwrap().for_llm
}

/// Replaces a file atomically.
fn replace(path: &Path, bytes: &[u8], age: Duration) {
    let temporary = path.with_extension("new");
    write_aged(&temporary, bytes, age);
    fs::rename(temporary, path).unwrap();
}

// attack: H1
#[tokio::test]
async fn incomplete_file_is_ignored_until_it_is_valid() {
    let directory = tempfile::tempdir().unwrap();
    let live = open_live(directory.path()).await;
    let (path, complete) = (directory.path().join("slow.wasm"), answering_component(1));
    let half = &complete[..complete.len() / 2];
    write_aged(&path, half, UNSETTLED_AGE);
    let outcome = live.refresh().await.unwrap();
    assert!(!outcome.is_changed && outcome.is_unsettled, "{outcome:?}");
    assert_eq!(package_names(&live), [""; 0], "an incomplete file is not a package yet");

    write_aged(&path, &complete, UNSETTLED_AGE);
    assert!(refresh_finds_change(&live).await, "the complete file is a package");
    assert!(live.current().packages()[0].broken_reason().is_none());

    write_aged(&path, half, UNSETTLED_AGE);
    assert!(!refresh_finds_change(&live).await);
    assert!(
        live.current().packages()[0].broken_reason().is_none(),
        "the package stays usable while its file is written"
    );

    write_aged(&path, half, SETTLED_AGE);
    assert!(
        refresh_finds_change(&live).await,
        "an incomplete file that is no longer written is broken"
    );
    assert!(live.current().packages()[0].broken_reason().is_some());

    write_aged(&path, &complete, SETTLED_AGE / 2);
    assert!(refresh_finds_change(&live).await, "a complete file repairs the package");
    assert!(live.current().packages()[0].broken_reason().is_none());
}

// attack: H2, accept: 117
#[tokio::test]
async fn each_change_is_one_notification_and_earlier_tools_keep_their_version() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("oracle.wasm");
    write_aged(&path, &answering_component(1), SETTLED_AGE);
    let live = open_live(directory.path()).await;
    let mut changes = live.changes();
    let scope = Scope::new();
    let old_tool = live.current().tool("oracle#answer", &scope).unwrap();
    let plugin = live.current().plugin_of("oracle#answer").unwrap().clone();
    assert_eq!(call(&old_tool).await, "1");

    write_aged(&path, &answering_component(1), SETTLED_AGE / 2);
    assert!(!refresh_finds_change(&live).await, "a new timestamp is not a change");
    replace(&path, &answering_component(1), SETTLED_AGE / 3);
    assert!(
        !refresh_finds_change(&live).await,
        "a new file with the same bytes is not a change"
    );
    assert!(!changes.has_changed().unwrap());
    assert!(
        Arc::ptr_eq(&plugin, live.current().plugin_of("oracle#answer").unwrap()),
        "the plugin stays loaded, with its code and its sessions"
    );

    replace(&path, &answering_component(2), UNSETTLED_AGE);
    assert!(
        refresh_finds_change(&live).await && !refresh_finds_change(&live).await,
        "one notification"
    );
    changes.changed().await.unwrap();
    assert!(!changes.has_changed().unwrap());
    let new_tool = live.current().tool("oracle#answer", &scope).unwrap();
    assert_eq!(
        (call(&old_tool).await, call(&new_tool).await),
        ("1".to_owned(), "2".to_owned())
    );

    fs::remove_file(&path).unwrap();
    assert!(refresh_finds_change(&live).await && !refresh_finds_change(&live).await);
    assert!(live.current().tool("oracle#answer", &scope).is_none());
    assert_eq!(call(&new_tool).await, "2", "an earlier tool can still be called");
}

// attack: H4
#[tokio::test]
async fn directory_can_be_deleted_and_created_again() {
    let directory = tempfile::tempdir().unwrap();
    let plugins = directory.path().join("plugins");
    let store = Arc::new(MemoryStore::new());
    let opened = LiveRegistry::open(
        &runtime(),
        std::slice::from_ref(&plugins),
        MissingPath::Error,
        store.clone(),
        None,
    )
    .await;
    assert!(opened.is_err(), "a missing path is an error at the start");
    let live = LiveRegistry::open(
        &runtime(),
        std::slice::from_ref(&plugins),
        MissingPath::Empty,
        store,
        None,
    )
    .await
    .unwrap();
    assert!(!refresh_finds_change(&live).await);
    fs::create_dir(&plugins).unwrap();
    write_aged(&plugins.join("one.wasm"), &answering_component(1), UNSETTLED_AGE);
    write_aged(&plugins.join("old.wasm~"), &answering_component(1), UNSETTLED_AGE);
    write_aged(&plugins.join(".one.wasm.swp"), &answering_component(1), UNSETTLED_AGE);
    assert!(refresh_finds_change(&live).await);
    assert_eq!(package_names(&live), ["one"]);
    fs::rename(&plugins, directory.path().join("away")).unwrap();
    assert!(refresh_finds_change(&live).await);
    assert_eq!(package_names(&live), [""; 0]);
    fs::rename(directory.path().join("away"), &plugins).unwrap();
    fs::rename(plugins.join("one.wasm"), plugins.join("other.wasm")).unwrap();
    assert!(refresh_finds_change(&live).await);
    assert_eq!(package_names(&live), ["other"]);
    assert_eq!(
        search_ids(&live.current(), "answer"),
        ["other#answer"],
        "the search index is updated"
    );
}

#[tokio::test]
async fn removing_one_of_two_packages_with_conflicting_names_repairs_the_other() {
    let directory = tempfile::tempdir().unwrap();
    let path_of = |name: &str| directory.path().join(name);
    // `a-b` and `a_b` have the same snake-case form, so the two packages cannot be used together.
    write_aged(&path_of("a-b.wasm"), &component("play-song"), SETTLED_AGE);
    let live = open_live(directory.path()).await;
    write_aged(&path_of("a_b.wasm"), &component("play-song"), SETTLED_AGE);
    assert!(refresh_finds_change(&live).await);
    assert_eq!(search_ids(&live.current(), "play a song"), [""; 0]);
    fs::remove_file(path_of("a-b.wasm")).unwrap();
    assert!(refresh_finds_change(&live).await);
    assert_eq!(search_ids(&live.current(), "play a song"), ["a_b#play-song"]);
}

/// Waits until the registry meets a condition. Panics after a minute.
async fn wait_until(live: &LiveRegistry, is_met: impl Fn(&Registry) -> bool) {
    let mut changes = live.changes();
    let wait = async {
        while !is_met(&changes.borrow_and_update()) {
            changes.changed().await.unwrap();
        }
    };
    tokio::time::timeout(Duration::from_secs(60), wait).await.unwrap();
}

// attack: H4
#[tokio::test]
async fn changes_are_detected_with_events_and_by_polling() {
    for events in [WatchEvents::Off, WatchEvents::System] {
        let directory = tempfile::tempdir().unwrap();
        let plugins = directory.path().join("plugins");
        fs::create_dir(&plugins).unwrap();
        let live = open_live(&plugins).await;
        let poll_every = match events {
            WatchEvents::Off => Duration::from_millis(5),
            // This is long enough that events arrive first. Only a directory that is created again needs polling.
            _ => Duration::from_millis(500),
        };
        let options = WatchOptions {
            quiet: Duration::from_millis(5),
            poll_every,
            events,
            ..WatchOptions::default()
        };
        let watch_guard = live.watch(options);
        fs::write(plugins.join("one.wasm"), answering_component(1)).unwrap();
        wait_until(&live, |registry| registry.packages().len() == 1).await;
        replace(&plugins.join("one.wasm"), &component("other"), UNSETTLED_AGE);
        wait_until(&live, |registry| registry.definition("one#other").is_some()).await;
        fs::remove_dir_all(&plugins).unwrap();
        wait_until(&live, |registry| registry.packages().is_empty()).await;
        fs::create_dir(&plugins).unwrap();
        fs::write(plugins.join("two.wasm"), answering_component(2)).unwrap();
        wait_until(&live, |registry| registry.package("two").is_some()).await;
        drop(watch_guard);
    }
}

// attack: H4
#[tokio::test]
async fn thousands_of_files_are_one_notification() {
    let directory = tempfile::tempdir().unwrap();
    let live = open_live(directory.path()).await;
    let bytes = answering_component(1);
    for number in 0..2_000 {
        fs::write(directory.path().join(format!("tool{number}.wasm")), &bytes).unwrap();
    }
    assert!(refresh_finds_change(&live).await);
    assert_eq!(package_names(&live).len(), 2_000);
    assert!(!refresh_finds_change(&live).await);
}

// accept: 122, accept: 136
#[tokio::test]
async fn outcome_of_a_call_changes_the_rank_of_the_tool() {
    let directory = tempfile::tempdir().unwrap();
    let trapping = r#"(component
        (core module $m (func (export "f") unreachable))
        (core instance $i (instantiate $m))
        (func (export "play-song") (canon lift (core func $i "f"))))"#;
    write_aged(
        &directory.path().join("alpha.wasm"),
        &wat::parse_str(trapping).unwrap(),
        SETTLED_AGE,
    );
    write_aged(
        &directory.path().join("beta.wasm"),
        &component("play-song"),
        SETTLED_AGE,
    );
    let live = open_live(directory.path()).await;
    let songs = || search_ids(&live.current(), "play a song");
    assert_eq!(songs()[0], "alpha#play-song");
    let alpha = live.current().tool("alpha#play-song", &Scope::new()).unwrap();
    alpha.call(Arguments::new(), &ToolContext::new()).await.unwrap_err();
    assert_eq!(songs(), ["beta#play-song", "alpha#play-song"]);
    // A new package does not change the rank.
    write_aged(
        &directory.path().join("gamma.wasm"),
        &component("send-email"),
        SETTLED_AGE,
    );
    assert!(refresh_finds_change(&live).await);
    assert_eq!(songs(), ["beta#play-song", "alpha#play-song"]);
}

/// An embedding model that counts the texts that it embeds.
#[derive(Clone, Default)]
struct CountingModel(Arc<AtomicUsize>);

impl EmbeddingModel for CountingModel {
    fn embed(&self, text: &str) -> Option<Vec<f32>> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Some(if text.contains("sum") || text == "total" {
            vec![1.0, 0.0]
        } else {
            vec![0.0, 1.0]
        })
    }
}

#[tokio::test]
async fn only_changed_packages_are_embedded_again() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, export: &str| write_aged(&directory.path().join(name), &component(export), SETTLED_AGE);
    write("a.wasm", "sum");
    write("b.wasm", "other");
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let open = |model: CountingModel| {
        let (paths, model) = (
            [directory.path().to_owned()],
            Some(Arc::new(model) as Arc<dyn EmbeddingModel>),
        );
        let store = store.clone();
        async move {
            LiveRegistry::open(&runtime(), &paths, MissingPath::Error, store, model)
                .await
                .unwrap()
        }
    };
    let ids_for_total = |live: &LiveRegistry| search_ids(&live.current(), "total");
    let model = CountingModel::default();
    let live = open(model.clone()).await;
    assert_eq!(ids_for_total(&live), ["a#sum"]);
    let take_embedded_count = || model.0.swap(0, Ordering::Relaxed);
    let count_at_start = take_embedded_count();
    assert!(!refresh_finds_change(&live).await);
    assert_eq!(take_embedded_count(), 0, "nothing changed");
    write("b.wasm", "sum-up");
    assert!(refresh_finds_change(&live).await);
    let count_after_change = take_embedded_count();
    assert!(
        0 < count_after_change && count_after_change < count_at_start,
        "{count_after_change} of {count_at_start}"
    );
    assert_eq!(ids_for_total(&live), ["a#sum", "b#sum-up"]);
    let restarted = open(CountingModel::default()).await;
    assert_eq!(
        ids_for_total(&restarted),
        ["a#sum", "b#sum-up"],
        "packages that are restored from the store are embedded, too"
    );
}
