//! Plugins that tell their tools only when they run.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use toolwit::limits::LimitRequest;
use toolwit::model::ScriptedModel;
use toolwit::registry::{DiscoveryTargets, DynamicDiscovery, Query, WatchOptions};
use toolwit::sandbox::Scope;
use toolwit::store::MemoryStore;
use toolwit::{Arguments, Error, ErrorKind, ToolContext, ToolResult, Toolwit, ToolwitBuilder};
use toolwit_tests::Guests;

use crate::place::{Place, until};

const SOUP: &str = "menu/toolwit:plugin/dynamic@0.1.0#soup";

/// A directory with the guest `menu`, which finds these settings.
pub(crate) async fn menu(settings: &[(&str, &str)]) -> Place {
    let place = Place::new();
    place.put_bytes("menu.wasm", &Guests::rust_bytes("menu").await);
    set(&place, settings);
    place
}

pub(crate) fn set(place: &Place, settings: &[(&str, &str)]) {
    let settings: Vec<_> = settings
        .iter()
        .map(|(key, value)| format!("{key} = \"{value}\""))
        .collect();
    let grants = format!(
        "version = 1\n[[grant]]\nplugin = \"menu\"\nany-version = true\nconfig = {{ {} }}\n",
        settings.join(", ")
    );
    place.put_bytes("grants.toml", grants.as_bytes());
}

pub(crate) fn host(place: &Place) -> ToolwitBuilder {
    place.host().grants(place.path().join("grants.toml"))
}

pub(crate) fn names(host: &Toolwit) -> Vec<String> {
    let registry = host.registry();
    let tools = registry.plugins().flat_map(|plugin| &plugin.inspection().tools);
    tools.map(|tool| tool.name().to_owned()).collect()
}

pub(crate) async fn call(host: &Toolwit, tool: &str, arguments: serde_json::Value) -> Result<ToolResult, Error> {
    let tool = host.find(&host.tools(&Scope::new()), tool)?;
    let arguments: Arguments = serde_json::from_value(arguments).unwrap();
    tool.call(arguments, &ToolContext::new()).await.map_err(Error::from)
}

/// Why the plugin told no tools when it was asked.
pub(crate) fn untold(host: &Toolwit) -> Error {
    let registry = host.registry();
    let package = registry.package("menu").unwrap();
    assert!(
        package.reason().is_none(),
        "its other tools work: {:?}",
        package.reason()
    );
    package.discovery_error().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_plugin_tells_are_tools_beside_those_of_its_types() {
    let place = menu(&[]).await;
    let host = host(&place).build().await.unwrap();
    assert_eq!(
        names(&host),
        ["count", "soup", "tea"],
        "the functions that tell are none themselves"
    );
    let result = call(&host, SOUP, json!({"guests": 2})).await.unwrap();
    assert_eq!(result.for_llm, r#"soup {"guests":2} 1"#);
    assert_eq!(result.for_user.as_deref(), Some("Here is your soup."));
    assert_eq!(result.artifacts[0].value, json!({"dish": "soup"}));
    assert!(result.usage.is_some_and(|usage| usage.fuel > 0));
    let again = call(&host, "soup", json!({"guests": 2})).await.unwrap();
    assert_eq!(
        again.for_llm, r#"soup {"guests":2} 1"#,
        "each call has an instance of its own"
    );
    let found = host.registry().search(&Query::new("cooks some tea"), |_| true);
    assert_eq!(found[0].name, "tea");
    let definition = host.registry().definition(SOUP).cloned().unwrap();
    assert_eq!(definition.input_schema["properties"]["guests"]["$ref"], "#/$defs/count");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn arguments_are_checked_by_the_told_schema_before_the_guest_runs() {
    let place = menu(&[]).await;
    let host = host(&place).build().await.unwrap();
    for wrong in [
        json!({}),
        json!({"guests": 0}),
        json!({"guests": 2, "wine": true}),
        json!({"guests": "2"}),
    ] {
        let error = call(&host, "soup", wrong.clone()).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::InvalidArguments, "{wrong}");
        assert_eq!(error.tool.as_deref(), Some(SOUP));
    }
    assert!(call(&host, "soup", json!({"guests": 12})).await.is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_error_keeps_its_kind() {
    let place = menu(&[("dishes", "wrong gone forbidden enough failed burnt")]).await;
    let host = host(&place).build().await.unwrap();
    for (dish, kind, text) in [
        ("wrong", ErrorKind::InvalidArguments, "it was not ordered so"),
        ("gone", ErrorKind::ToolUnavailable, "it is sold out"),
        ("forbidden", ErrorKind::Denied, "not without a licence"),
        ("enough", ErrorKind::Busy, "the stove is taken"),
    ] {
        let error = call(&host, dish, json!({"guests": 1})).await.unwrap_err();
        assert_eq!((error.kind, error.message.as_str()), (kind, text));
    }
    for (dish, text) in [("failed", "the power is out"), ("burnt", "it is burnt")] {
        let result = call(&host, dish, json!({"guests": 1})).await.unwrap();
        assert_eq!((result.is_error, result.for_llm.as_str()), (true, text));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_only_looks_runs_nothing_and_what_was_told_is_kept_by_digest() {
    let place = menu(&[]).await;
    let store = Arc::new(MemoryStore::new());
    let look = || async {
        let host = host(&place)
            .store(store.clone())
            .dynamic_discovery(DynamicDiscovery::Never);
        host.build().await.unwrap()
    };
    let before = look().await;
    assert_eq!(names(&before), ["count"]);
    let unasked = before.registry().package("menu").unwrap().discovery_error().unwrap();
    assert!(
        unasked.suggestion.as_deref().unwrap().contains("toolwit refresh menu"),
        "{unasked:?}"
    );
    host(&place).store(store.clone()).build().await.unwrap();
    // From now on the guest would tell nothing, if somebody asked.
    set(&place, &[("mode", "closed")]);
    let after = look().await;
    assert_eq!(names(&after), ["count", "soup", "tea"]);
    assert!(after.registry().package("menu").unwrap().discovery_error().is_none());
    assert_eq!(
        names(&host(&place).store(store.clone()).build().await.unwrap()).len(),
        3,
        "nobody asks twice"
    );

    let asked = after
        .live_registry()
        .discover_dynamic_tools(DiscoveryTargets::Named(&["menu".to_owned()]))
        .await
        .unwrap();
    let error = asked[0].tools.as_ref().unwrap_err();
    assert!(error.message.contains("the kitchen is closed"), "{error}");
    assert_eq!(names(&after).len(), 3, "what it told before stays");
    set(&place, &[("dishes", "cake")]);
    let asked = after
        .live_registry()
        .discover_dynamic_tools(DiscoveryTargets::Named(&["menu".to_owned()]))
        .await
        .unwrap();
    assert_eq!(asked[0].tools.as_ref().unwrap(), &2);
    assert_eq!(names(&after), ["count", "cake"]);

    // Other bytes are another component.
    let mut bytes = Guests::rust_bytes("menu").await;
    bytes.extend([0, 2, 1, b'x']);
    place.put_bytes("menu.wasm", &bytes);
    assert_eq!(names(&look().await), ["count"]);
}

// attack: B4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hostile_answer_is_bounded_and_refused_with_its_reason() {
    for (mode, kind, told) in [
        ("trap", ErrorKind::Trap, ""),
        ("many", ErrorKind::Memory, ""),
        ("crowd", ErrorKind::InvalidProvider, "1000 tools; at most 256"),
        ("long", ErrorKind::ResultBytes, "1 MiB"),
        (
            "twice",
            ErrorKind::InvalidProvider,
            "`get_soup` and `get-soup`, which are one name",
        ),
        (
            "outside",
            ErrorKind::InvalidProvider,
            "refers to `http://127.0.0.1:9/schema`",
        ),
        (
            "deep",
            ErrorKind::InvalidProvider,
            "the tool `soup` cannot be used: its input schema",
        ),
        ("none", ErrorKind::InvalidProvider, "is no JSON"),
    ] {
        let place = menu(&[("mode", mode)]).await;
        let host = host(&place).build().await.unwrap();
        let error = untold(&host);
        assert_eq!(names(&host), ["count"], "{mode}");
        assert_eq!(error.kind, kind, "{mode}: {error:?}");
        assert!(error.message.contains(told), "{mode}: {error}");
        assert_eq!(error.plugin.as_deref(), Some("menu"));
    }
}

// attack: B1
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_endless_answer_ends_with_its_fuel_and_harms_no_other() {
    let place = menu(&[("mode", "endless")]).await;
    place.put("adder", &crate::place::adder(1));
    let host = host(&place).limits(LimitRequest::none().fuel(50_000_000));
    let started = Instant::now();
    let host = host.build().await.unwrap();
    assert!(started.elapsed() < Duration::from_secs(60));
    assert_eq!(untold(&host).kind, ErrorKind::Fuel);
    assert_eq!(call(&host, "add", json!({"a": 1, "b": 2})).await.unwrap().for_llm, "3");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conversation_has_told_tools_like_others_and_new_plugins_are_asked_while_it_runs() {
    let place = Place::new();
    set(&place, &[]);
    let host = host(&place).watch(WatchOptions::default()).build().await.unwrap();
    let model = ScriptedModel::new()
        .answer("Nothing.")
        .call("soup", json!({"guests": 3}))
        .answer("{{result}}");
    let mut conversation = host.conversation().model(Arc::new(model)).build().unwrap();
    conversation.run("What is there?").await.unwrap();
    place.put_bytes("menu.wasm", &Guests::rust_bytes("menu").await);
    until(host.live_registry(), |registry| registry.definition(SOUP).is_some()).await;
    let outcome = conversation.run("Some soup for three").await.unwrap();
    assert_eq!(outcome.text(), r#"soup {"guests":3} 1"#);
    assert_eq!(outcome.artifacts[0].kind, "meal");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_embedder_without_a_directory_asks_for_himself() {
    let plugin = Guests::new().rust("menu").await;
    assert!(plugin.dynamic_tools().is_undiscovered());
    assert_eq!(plugin.tools(&Scope::new()).len(), 1);
    let told = plugin.discover_tools().await.unwrap();
    assert_eq!(
        (told.dynamic_tools().is_undiscovered(), told.tools(&Scope::new()).len()),
        (false, 3)
    );
    assert!(
        Arc::ptr_eq(&told, &told.discover_tools().await.unwrap()),
        "once is enough"
    );
    let kept = told.inspection().discovered_tools().unwrap();
    assert_eq!(plugin.with_discovered_tools(&kept).unwrap().tool_count(), 3);
    assert!(plugin.with_discovered_tools("damage").is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_plugin_calls_a_told_tool_where_its_grant_names_it() {
    let place = menu(&[]).await;
    place.put_bytes("courier.wasm", &Guests::rust_bytes("courier").await);
    let arguments = json!({"tool": SOUP, "arguments": "{\"guests\": 2}", "times": 1});
    let relayed = async |grants: &str| {
        place.put_bytes("grants.toml", format!("version = 1\n{grants}").as_bytes());
        let host = host(&place).build().await.unwrap();
        let model = ScriptedModel::new()
            .call("relay", arguments.clone())
            .answer("{{result}}");
        let outcome = host.conversation().model(Arc::new(model)).run("go").await.unwrap();
        outcome.text().to_owned()
    };
    let refused = relayed("").await;
    assert!(
        refused.contains("may not call") && !refused.contains("soup {"),
        "{refused}"
    );
    let grant = format!("[[grant]]\nplugin = \"courier\"\nany-version = true\ntools = [\"{SOUP}\"]\n");
    let cooked = relayed(&grant).await;
    assert!(cooked.contains(r#"soup {"guests":2} 1"#), "{cooked}");
}
