//! Approvals, removals and definitions of plugin tools while their files change.

use super::*;
use crate::strategy::RegistryTools;
use toolwit_agent::injection::{Playbook, Unlock};
use toolwit_core::{Approval, ApprovalGate, ApprovalRequest, Decorator, ToolExt, ToolId};
use toolwit_registry::LiveRegistry;
use toolwit_registry::store::MemoryStore;

/// Writes a component with the function `get-forecast`, which returns its argument. `parameter` is the name of its only
/// parameter.
fn write_forecast(directory: &Path, parameter: &str) {
    let text = format!(
        r#"(component
            (core module $m (func (export "f") (param i32) (result i32) local.get 0))
            (core instance $i (instantiate $m))
            (func (export "get-forecast") (param "{parameter}" s32) (result s32) (canon lift (core func $i "f"))))"#
    );
    fs::write(directory.join("weather.wasm"), wat::parse_str(text).unwrap()).unwrap();
}

/// Writes the plugin `weather` to a directory, and returns the live registry of the directory.
pub(super) async fn live_registry(directory: &Path) -> LiveRegistry {
    write_forecast(directory, "a");
    let options = RuntimeOptions {
        code_cache: CodeCacheLocation::Off,
        ..RuntimeOptions::default()
    };
    let runtime = Runtime::new(options).unwrap();
    let (paths, store) = ([directory.to_owned()], Arc::new(MemoryStore::new()));
    LiveRegistry::open(&runtime, &paths, MissingPath::Error, store, None)
        .await
        .unwrap()
}

/// Returns an approval gate that denies all calls.
fn denying_gate() -> impl Decorator {
    ApprovalGate::new(|_: &ApprovalRequest| Approval::Denied {
        reason: "never".to_owned(),
    })
}

/// Returns the last message of each request: the user's message or the result of a call.
pub(super) fn last_messages(recorder: &Recorder) -> Vec<String> {
    let requests = recorder.requests.lock().unwrap();
    let last_message = |request: &Request| request.messages.last().unwrap().content().to_owned();
    requests.iter().map(last_message).collect()
}

/// The id of the tool of the plugin `weather`.
const FORECAST_ID: &str = "weather#get-forecast";

// accept: 80, accept: 121
#[tokio::test]
async fn an_approval_and_a_lock_stay_on_a_plugin_tool_whose_file_changes() {
    let directory = tempfile::tempdir().unwrap();
    let live = live_registry(directory.path()).await;
    let call_old_version = || call("get_forecast", json!({"a": 2}));
    let call_new_version = || call("get_forecast", json!({"b": 2}));
    type SetUp = Box<dyn Fn(ConversationBuilder) -> ConversationBuilder>;
    let forecast_tool = live.current().tool(FORECAST_ID, &Scope::new()).unwrap();
    let set_ups: [(SetUp, &str); 4] = [
        (
            Box::new(|builder| builder.decorate(FORECAST_ID, denying_gate())),
            "not approved",
        ),
        (
            Box::new(|builder| builder.decorate("get_forecast", denying_gate())),
            "not approved",
        ),
        (
            Box::new(move |builder| builder.tool(forecast_tool.clone().with_decorator(denying_gate()))),
            "not approved",
        ),
        (
            Box::new(|builder| {
                let lock = Unlock::when("the operator must agree", |_: &_| false);
                builder.strategy(Playbook::new().with_lock(FORECAST_ID, lock))
            }),
            "the operator must agree",
        ),
    ];
    for (set_up, expected) in set_ups {
        write_forecast(directory.path(), "a");
        live.refresh().await.unwrap();
        let (builder, recorder) =
            recording_builder([call_old_version(), answer("one"), call_new_version(), answer("two")]);
        let builder = builder.strategy(RegistryTools::new(live.clone(), Scope::new()));
        let mut conversation = set_up(builder).build().unwrap();
        conversation.run("one").await.unwrap();
        write_forecast(directory.path(), "b");
        assert!(live.refresh().await.unwrap().is_changed);
        conversation.run("two").await.unwrap();
        let last_messages = last_messages(&recorder);
        assert!(
            last_messages[1].contains(expected) && last_messages[3].contains(expected),
            "{last_messages:?}"
        );
        let requests = recorder.requests.lock().unwrap().clone();
        assert!(
            requests[2].definitions[0].contains(r#""b""#),
            "the tool has the parameter of the new version: {:?}",
            requests[2].definitions
        );
        assert!(
            !requests[2].definitions[0].contains(r#""a""#),
            "{:?}",
            requests[2].definitions
        );
    }
}

// accept: 110, accept: 80
#[tokio::test]
async fn an_approval_applies_to_a_tool_that_a_search_finds() {
    let directory = tempfile::tempdir().unwrap();
    let search = tool_search(directory.path()).await;
    let (builder, recorder) = recording_builder([call("get_forecast", json!({"a": 2})), answer("done")]);
    let mut conversation = builder
        .strategy(search)
        .decorate(FORECAST_ID, denying_gate())
        .build()
        .unwrap();
    conversation.run("Tell me what the weather is like").await.unwrap();
    assert!(last_messages(&recorder)[1].contains("not approved"));
    // Building a conversation fails for an approval of a tool that does not exist.
    let search = tool_search(directory.path()).await;
    let (builder, _) = recording_builder([]);
    assert!(
        builder
            .strategy(search)
            .decorate("weather#get-forecasts", denying_gate())
            .build()
            .is_err()
    );
}

// accept: 23, accept: 110
#[tokio::test]
async fn a_tool_that_the_application_removed_is_not_added_by_a_search_or_a_changed_file() {
    let directory = tempfile::tempdir().unwrap();
    let id = ToolId::from_text(FORECAST_ID);
    let search = tool_search(directory.path()).await;
    let need = || call("search_tools", json!({"need": "weather forecast"}));
    let (builder, recorder) = recording_builder([need(), answer("one"), need(), answer("two")]);
    let mut conversation = builder.strategy(search).build().unwrap();
    conversation.run("Tell me what the weather is like").await.unwrap();
    conversation.remove_tool(&id);
    conversation.run("Tell me what the weather is like").await.unwrap();
    let results = last_messages(&recorder);
    assert!(results[1].contains(FORECAST_ID), "{}", results[1]);
    assert!(
        !results[3].contains(FORECAST_ID),
        "the search does not find the removed tool: {}",
        results[3]
    );
    let requests = recorder.requests.lock().unwrap().clone();
    assert!(requests[0].names.contains(&"get_forecast".to_owned()));
    assert!(
        requests[2..]
            .iter()
            .all(|request| !request.names.contains(&"get_forecast".to_owned()))
    );

    let directory = tempfile::tempdir().unwrap();
    let live = live_registry(directory.path()).await;
    let (builder, recorder) = recording_builder([answer("one"), answer("two")]);
    let mut conversation = builder
        .strategy(RegistryTools::new(live.clone(), Scope::new()))
        .build()
        .unwrap();
    conversation.run("one").await.unwrap();
    conversation.remove_tool(&id);
    write_forecast(directory.path(), "b");
    assert!(live.refresh().await.unwrap().is_changed);
    conversation.run("two").await.unwrap();
    let requests = recorder.requests.lock().unwrap().clone();
    assert_eq!((requests[0].names.len(), requests[1].names.len()), (1, 0));
}
