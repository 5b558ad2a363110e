//! A registry that keeps up with its directory. Time is taken out: a look is asked for, and files are as old as they say.

use super::*;

use toolwit_core::{Arguments, Tool, ToolContext};

const JUST_NOW: Duration = Duration::ZERO;

async fn live(place: &Path) -> LiveRegistry {
    let store = Arc::new(MemoryStore::new());
    LiveRegistry::open(&runtime(), &[place.to_owned()], MissingPath::Error, store)
        .await
        .unwrap()
}

async fn is_changed(live: &LiveRegistry) -> bool {
    live.refresh().await.unwrap().is_changed
}

fn names(live: &LiveRegistry) -> Vec<String> {
    let registry = live.current();
    registry.packages().iter().map(|package| package.name.clone()).collect()
}

/// A component whose tool `answer` gives this number.
fn answering(number: i32) -> Vec<u8> {
    let text = format!(
        r#"(component
            (core module $m (func (export "f") (result i32) i32.const {number}))
            (core instance $i (instantiate $m))
            (func (export "answer") (result s32) (canon lift (core func $i "f"))))"#
    );
    wat::parse_str(text).unwrap()
}

async fn ask(tool: &Arc<dyn Tool>) -> String {
    let result = tool.call(Arguments::new(), &ToolContext::new()).await;
    result.unwrap().for_llm
}

/// Replaces a file as careful programs do.
fn replace(path: &Path, bytes: &[u8], age: Duration) {
    let beside = path.with_extension("new");
    write_settled(&beside, bytes, age);
    fs::rename(beside, path).unwrap();
}

// attack: H1
#[tokio::test]
async fn a_file_that_is_being_written_is_believed_when_it_is_whole() {
    let directory = tempfile::tempdir().unwrap();
    let live = live(directory.path()).await;
    let (path, whole) = (directory.path().join("slow.wasm"), answering(1));
    let half = &whole[..whole.len() / 2];
    write_settled(&path, half, JUST_NOW);
    let looked = live.refresh().await.unwrap();
    assert!(!looked.is_changed && looked.is_unsettled, "{looked:?}");
    assert_eq!(names(&live), [""; 0], "half a file is no package yet");

    write_settled(&path, &whole, JUST_NOW);
    assert!(is_changed(&live).await, "the whole file is one");
    assert!(live.current().packages()[0].reason().is_none());

    write_settled(&path, half, JUST_NOW);
    assert!(!is_changed(&live).await);
    assert!(
        live.current().packages()[0].reason().is_none(),
        "what was known stays meanwhile"
    );

    write_settled(&path, half, LONG_AGO);
    assert!(is_changed(&live).await, "a half that nobody writes any more is broken");
    assert!(live.current().packages()[0].reason().is_some());

    write_settled(&path, &whole, LONG_AGO / 2);
    assert!(is_changed(&live).await, "and heals");
    assert!(live.current().packages()[0].reason().is_none());
}

// attack: H2, accept: 117
#[tokio::test]
async fn each_real_change_is_one_event_and_a_call_ends_on_the_version_that_it_began_on() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("oracle.wasm");
    write_settled(&path, &answering(1), LONG_AGO);
    let live = live(directory.path()).await;
    let mut events = live.changes();
    let scope = Scope::new();
    let old = live.current().tool("oracle#answer", &scope).unwrap();
    let plugin = live.current().plugin_of("oracle#answer").unwrap().clone();
    assert_eq!(ask(&old).await, "1");

    write_settled(&path, &answering(1), LONG_AGO / 2);
    assert!(!is_changed(&live).await, "the same bytes at another time are no change");
    replace(&path, &answering(1), LONG_AGO / 3);
    assert!(!is_changed(&live).await, "nor is the same in another file");
    assert!(!events.has_changed().unwrap());
    assert!(
        Arc::ptr_eq(&plugin, live.current().plugin_of("oracle#answer").unwrap()),
        "the plugin goes on with its machine code and its sessions"
    );

    replace(&path, &answering(2), JUST_NOW);
    assert!(is_changed(&live).await && !is_changed(&live).await, "one event");
    events.changed().await.unwrap();
    assert!(!events.has_changed().unwrap());
    let new = live.current().tool("oracle#answer", &scope).unwrap();
    assert_eq!((ask(&old).await, ask(&new).await), ("1".to_owned(), "2".to_owned()));

    fs::remove_file(&path).unwrap();
    assert!(is_changed(&live).await && !is_changed(&live).await);
    assert!(live.current().tool("oracle#answer", &scope).is_none());
    assert_eq!(ask(&new).await, "2", "who holds the tool can still call it");
}

// attack: H4
#[tokio::test]
async fn a_directory_may_go_and_come_back() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("plugins");
    let store = Arc::new(MemoryStore::new());
    let missing = LiveRegistry::open(
        &runtime(),
        std::slice::from_ref(&place),
        MissingPath::Error,
        store.clone(),
    )
    .await;
    assert!(missing.is_err(), "a name that is wrong at the start is told");
    let live = LiveRegistry::open(&runtime(), std::slice::from_ref(&place), MissingPath::Empty, store)
        .await
        .unwrap();
    assert!(!is_changed(&live).await);
    fs::create_dir(&place).unwrap();
    write_settled(&place.join("one.wasm"), &answering(1), JUST_NOW);
    write_settled(&place.join("old.wasm~"), &answering(1), JUST_NOW);
    write_settled(&place.join(".one.wasm.swp"), &answering(1), JUST_NOW);
    assert!(is_changed(&live).await);
    assert_eq!(names(&live), ["one"]);
    fs::rename(&place, directory.path().join("away")).unwrap();
    assert!(is_changed(&live).await);
    assert_eq!(names(&live), [""; 0]);
    fs::rename(directory.path().join("away"), &place).unwrap();
    fs::rename(place.join("one.wasm"), place.join("other.wasm")).unwrap();
    assert!(is_changed(&live).await);
    assert_eq!(names(&live), ["other"]);
    assert_eq!(
        found(&live.current(), "answer"),
        ["other#answer"],
        "the search knows it too"
    );
}

#[tokio::test]
async fn two_that_claim_one_name_are_back_when_one_goes() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    write_settled(&at("a-b.wasm"), &component("play-song"), LONG_AGO);
    let live = live(directory.path()).await;
    write_settled(&at("a_b.wasm"), &component("play-song"), LONG_AGO);
    assert!(is_changed(&live).await);
    assert_eq!(found(&live.current(), "play a song"), [""; 0]);
    fs::remove_file(at("a-b.wasm")).unwrap();
    assert!(is_changed(&live).await);
    assert_eq!(found(&live.current(), "play a song"), ["a_b#play-song"]);
}

/// Waits until the registry is as it should be. What takes longer than a minute is lost.
async fn until(live: &LiveRegistry, is_right: impl Fn(&Registry) -> bool) {
    let mut changes = live.changes();
    let wait = async {
        while !is_right(&changes.borrow_and_update()) {
            changes.changed().await.unwrap();
        }
    };
    tokio::time::timeout(Duration::from_secs(60), wait).await.unwrap();
}

// attack: H4
#[tokio::test]
async fn changes_are_seen_with_events_and_without() {
    for events in [WatchEvents::Off, WatchEvents::System] {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("plugins");
        fs::create_dir(&place).unwrap();
        let live = live(&place).await;
        let poll_every = match events {
            WatchEvents::Off => Duration::from_millis(5),
            // What is seen is seen by events then; a directory that is made anew needs the clock.
            _ => Duration::from_millis(500),
        };
        let options = WatchOptions {
            quiet: Duration::from_millis(5),
            poll_every,
            events,
            ..WatchOptions::default()
        };
        let watching = live.watch(options);
        fs::write(place.join("one.wasm"), answering(1)).unwrap();
        until(&live, |registry| registry.packages().len() == 1).await;
        replace(&place.join("one.wasm"), &component("other"), JUST_NOW);
        until(&live, |registry| registry.definition("one#other").is_some()).await;
        fs::remove_dir_all(&place).unwrap();
        until(&live, |registry| registry.packages().is_empty()).await;
        fs::create_dir(&place).unwrap();
        fs::write(place.join("two.wasm"), answering(2)).unwrap();
        until(&live, |registry| registry.package("two").is_some()).await;
        drop(watching);
    }
}

// attack: H4
#[tokio::test]
async fn thousands_of_files_are_one_event() {
    let directory = tempfile::tempdir().unwrap();
    let live = live(directory.path()).await;
    let bytes = answering(1);
    for number in 0..2_000 {
        fs::write(directory.path().join(format!("tool{number}.wasm")), &bytes).unwrap();
    }
    assert!(is_changed(&live).await);
    assert_eq!(names(&live).len(), 2_000);
    assert!(!is_changed(&live).await);
}

// accept: 122, accept: 136
#[tokio::test]
async fn what_a_call_comes_to_moves_the_tool_for_the_next_search() {
    let directory = tempfile::tempdir().unwrap();
    let trapping = r#"(component
        (core module $m (func (export "f") unreachable))
        (core instance $i (instantiate $m))
        (func (export "play-song") (canon lift (core func $i "f"))))"#;
    write_settled(
        &directory.path().join("alpha.wasm"),
        &wat::parse_str(trapping).unwrap(),
        LONG_AGO,
    );
    write_settled(&directory.path().join("beta.wasm"), &component("play-song"), LONG_AGO);
    let live = live(directory.path()).await;
    let songs = || found(&live.current(), "play a song");
    assert_eq!(songs()[0], "alpha#play-song");
    let alpha = live.current().tool("alpha#play-song", &Scope::new()).unwrap();
    alpha.call(Arguments::new(), &ToolContext::new()).await.unwrap_err();
    assert_eq!(songs(), ["beta#play-song", "alpha#play-song"]);
    // A package that comes in between changes nothing about it, and the call of an old tool reaches the new view.
    write_settled(&directory.path().join("gamma.wasm"), &component("send-email"), LONG_AGO);
    assert!(is_changed(&live).await);
    assert_eq!(songs(), ["beta#play-song", "alpha#play-song"]);
}
