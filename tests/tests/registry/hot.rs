//! Packages that are replaced or removed while they are called.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::future::join_all;
use serde_json::{Value, json};
use toolwit::limits::LimitOverrides;
use toolwit::model::ScriptedModel;
use toolwit::sandbox::Scope;
use toolwit::{Arguments, ErrorKind, NativeTool, ToolContext, ToolResult};
use toolwit_tests::component_of;

use crate::place::{Place, adder};

const COMPONENTS: u32 = 8;

fn arguments(value: Value) -> Arguments {
    match value {
        Value::Object(arguments) => arguments,
        other => panic!("{other} is not an object"),
    }
}

/// Returns the number of open files of this process.
fn open_files() -> usize {
    fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)
}

// attack: I1, attack: H2
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_are_correct_while_their_components_are_replaced() {
    let place = Place::new();
    for number in 0..COMPONENTS {
        place.put(&format!("adder{number}"), &adder(number));
    }
    let host = place.host().build().await.unwrap();
    let (live, done) = (host.live_registry().clone(), Arc::new(AtomicBool::new(false)));
    let before = open_files();
    let swaps = async {
        let mut version = 100;
        // At least ten, and more while calls run.
        while version < 110 || !done.load(Ordering::Relaxed) {
            version += 1;
            place.put(&format!("adder{}", version % COMPONENTS), &adder(version));
            assert!(live.refresh().await.unwrap().is_changed, "each replacement is a change");
            tokio::task::yield_now().await;
        }
        version - 100
    };
    let adds = async {
        let calls = (0..1_000_u32).map(|number| {
            let live = &live;
            async move {
                let scope = Scope::new();
                let id = format!("adder{}#add", number % COMPONENTS);
                let tool = live.current().tool(&id, &scope).unwrap();
                let (a, b) = (number.wrapping_mul(0x9e37_79b9), u32::MAX - number);
                let result = tool.call(arguments(json!({"a": a, "b": b})), &ToolContext::new()).await;
                match result {
                    Ok(result) => {
                        assert_eq!(result.value, Some(json!(a.wrapping_add(b))));
                        true
                    }
                    // It was replaced between its lookup and its first call, so nothing ran.
                    Err(error) => {
                        let report = error.report();
                        assert_eq!(report.kind, ErrorKind::Io, "{report}");
                        assert!(report.message.contains("changed after it was inspected"), "{report}");
                        false
                    }
                }
            }
        });
        let results = join_all(calls).await;
        done.store(true, Ordering::Relaxed);
        results.into_iter().filter(|right| *right).count()
    };
    let (swapped, right) = tokio::join!(swaps, adds);
    assert!(swapped >= 10 && right >= 100, "{swapped} swaps, {right} answers");
    assert!(
        open_files() <= before + 8,
        "{before} files were open before, {} are open now",
        open_files()
    );
}

// attack: H2
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn running_call_continues_after_its_file_is_deleted() {
    let place = Place::new();
    place.put("compute", include_str!("../../guests/wat/compute.wat"));
    let host = place.host().build().await.unwrap();
    let spin = host.registry().tool("compute#spin", &Scope::new()).unwrap();
    let fine = host.registry().tool("compute#fine", &Scope::new()).unwrap();
    fine.call(Arguments::new(), &ToolContext::new()).await.unwrap();
    let limits = LimitOverrides::default()
        .with_fuel_max(3_000_000_000)
        .with_wall_max(Duration::from_secs(60));
    let running = tokio::spawn(async move {
        let context = ToolContext::new().with_extension(limits);
        spin.call(Arguments::new(), &context).await
    });
    fs::remove_file(place.path().join("compute.wasm")).unwrap();
    assert!(host.live_registry().refresh().await.unwrap().is_changed);
    assert!(host.registry().packages().is_empty());
    let ended = running.await.unwrap().unwrap_err();
    assert_eq!(ended.report().kind, ErrorKind::Fuel, "it ends with its fuel");
    fine.call(Arguments::new(), &ToolContext::new()).await.unwrap();
}

// attack: H2
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conversation_uses_the_new_version_from_its_next_turn_on() {
    let place = Place::new();
    place.put("one", &adder(1));
    place.put("gone", &adder(7));
    let host = place.host().build().await.unwrap();
    let model = Arc::new(
        ScriptedModel::new()
            .call("version", json!({}))
            .answer("{{result}}")
            .call("one_version", json!({}))
            .answer("{{result}}"),
    );
    let mut conversation = host.conversation().model(model.clone()).build().unwrap();
    assert_eq!(conversation.run("Which version?").await.unwrap().text(), "7");
    let names = |at: usize| -> Vec<String> {
        let requests = model.requests();
        requests[at].tools.iter().map(ToString::to_string).collect()
    };
    assert_eq!(names(0), ["add", "version", "one_add", "one_version"]);

    place.put("one", &adder(2));
    place.put("new", &adder(3));
    fs::remove_file(place.path().join("gone.wasm")).unwrap();
    host.live_registry().refresh().await.unwrap();
    assert_eq!(conversation.run("And now?").await.unwrap().text(), "2");
    assert_eq!(
        names(2),
        ["one_add", "one_version", "new_add", "new_version"],
        "an assigned name stays, and is not assigned to another tool"
    );
}

// attack: H2
#[tokio::test]
async fn held_tool_works_for_the_turn_when_its_file_changes_before_it_is_compiled() {
    let place = Place::new();
    place.put("one", &adder(1));
    let host = place.host().build().await.unwrap();
    let path = place.path().join("one.wasm");
    let (changed, watched) = (component_of(&adder(2)), path.clone());
    let change = move |_: Arguments, _: ToolContext| {
        // In place, so that an open file would change, too.
        fs::write(&watched, &changed).unwrap();
        async { Ok(ToolResult::text("changed")) }
    };
    let schema = json!({"type": "object", "properties": {}});
    let change_file = NativeTool::new("change_file", "Changes the file.", schema, change).unwrap();
    let model = ScriptedModel::new()
        .call("change_file", json!({}))
        .call("version", json!({}))
        .answer("{{result}}");
    let mut conversation = host.conversation().model(model).tool(change_file).build().unwrap();
    assert_eq!(conversation.run("Which version?").await.unwrap().text(), "1");

    // A tool that no conversation holds has nothing but its file. Its error names no path of the host.
    fs::write(&path, component_of(&adder(1))).unwrap();
    let host = place.host().build().await.unwrap();
    let unheld = host.registry().tool("one#version", &Scope::new()).unwrap();
    fs::write(&path, component_of(&adder(3))).unwrap();
    let error = unheld.call(Arguments::new(), &ToolContext::new()).await.unwrap_err();
    let text = serde_json::to_string(error.report()).unwrap();
    assert!(text.contains("changed after it was inspected"), "{text}");
    assert!(!text.contains(place.path().to_str().unwrap()), "{text}");
}
