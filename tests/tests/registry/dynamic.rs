//! Plugins with dynamic tools.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use toolwit::limits::LimitOverrides;
use toolwit::model::ScriptedModel;
use toolwit::registry::{DiscoveryTargets, DynamicDiscovery, Query, WatchOptions};
use toolwit::sandbox::Scope;
use toolwit::store::MemoryStore;
use toolwit::{Arguments, Error, ErrorKind, ToolContext, ToolResult, Toolwit, ToolwitBuilder};
use toolwit_tests::Guests;

use crate::place::{Place, until};

const SOUP: &str = "menu/toolwit:plugin/dynamic@0.1.0#soup";

/// A plugin directory with the guest `menu` and these settings.
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
    let tool = Toolwit::find_tool(&host.tools(&Scope::new()), tool)?;
    let arguments: Arguments = serde_json::from_value(arguments).unwrap();
    tool.call(arguments, &ToolContext::new()).await.map_err(Error::from)
}

/// Returns why the dynamic tools of `menu` could not be discovered.
pub(crate) fn discovery_error(host: &Toolwit) -> Error {
    let registry = host.registry();
    let package = registry.package("menu").unwrap();
    assert!(
        package.broken_reason().is_none(),
        "its other tools work: {:?}",
        package.broken_reason()
    );
    package.discovery_error().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dynamic_tools_are_available_in_addition_to_static_ones() {
    let place = menu(&[]).await;
    let host = host(&place).build().await.unwrap();
    assert_eq!(
        names(&host),
        ["count", "soup", "tea"],
        "the functions of the dynamic interface are not tools themselves"
    );
    let result = call(&host, SOUP, json!({"guests": 2})).await.unwrap();
    assert_eq!(result.for_llm, r#"soup {"guests":2} 1"#);
    assert_eq!(result.for_user.as_deref(), Some("Here is your soup."));
    assert_eq!(result.artifacts[0].value, json!({"dish": "soup"}));
    assert!(result.usage.is_some_and(|usage| usage.fuel > 0));
    let again = call(&host, "soup", json!({"guests": 2})).await.unwrap();
    assert_eq!(
        again.for_llm, r#"soup {"guests":2} 1"#,
        "each call has its own instance"
    );
    let found = host.registry().search(&Query::new("cooks some tea"), |_| true);
    assert_eq!(found[0].name, "tea");
    let definition = host.registry().definition(SOUP).cloned().unwrap();
    assert_eq!(definition.input_schema["properties"]["guests"]["$ref"], "#/$defs/count");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn arguments_of_a_dynamic_tool_are_validated_before_the_guest_runs() {
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
async fn error_of_a_dynamic_tool_keeps_its_kind() {
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
        assert_eq!((result.is_error(), result.for_llm.as_str()), (true, text));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_discovery_no_guest_runs_and_discovered_tools_are_stored_by_digest() {
    let place = menu(&[]).await;
    let store = Arc::new(MemoryStore::new());
    let without_discovery = || async {
        let host = host(&place)
            .store(store.clone())
            .dynamic_discovery(DynamicDiscovery::Never);
        host.build().await.unwrap()
    };
    let before = without_discovery().await;
    assert_eq!(names(&before), ["count"]);
    let error = before.registry().package("menu").unwrap().discovery_error().unwrap();
    assert!(
        error
            .suggestion
            .as_deref()
            .unwrap()
            .contains("LiveRegistry::discover_dynamic_tools"),
        "{error:?}"
    );
    host(&place).store(store.clone()).build().await.unwrap();
    // A discovery would fail from now on.
    set(&place, &[("mode", "closed")]);
    let after = without_discovery().await;
    assert_eq!(names(&after), ["count", "soup", "tea"]);
    assert!(after.registry().package("menu").unwrap().discovery_error().is_none());
    assert_eq!(
        names(&host(&place).store(store.clone()).build().await.unwrap()).len(),
        3,
        "a component is discovered once"
    );

    let outcomes = after
        .live_registry()
        .discover_dynamic_tools(DiscoveryTargets::Named(&["menu".to_owned()]))
        .await
        .unwrap();
    let error = outcomes[0].tools.as_ref().unwrap_err();
    assert!(error.message.contains("the kitchen is closed"), "{error}");
    assert_eq!(names(&after).len(), 3, "the tools of the earlier discovery stay");
    set(&place, &[("dishes", "cake")]);
    let outcomes = after
        .live_registry()
        .discover_dynamic_tools(DiscoveryTargets::Named(&["menu".to_owned()]))
        .await
        .unwrap();
    assert_eq!(outcomes[0].tools.as_ref().unwrap(), &2);
    assert_eq!(names(&after), ["count", "cake"]);

    // A component with other bytes has its own tools.
    let mut bytes = Guests::rust_bytes("menu").await;
    bytes.extend([0, 2, 1, b'x']);
    place.put_bytes("menu.wasm", &bytes);
    assert_eq!(names(&without_discovery().await), ["count"]);
}

// attack: B4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_tool_list_is_limited_and_refused_with_its_reason() {
    for (mode, kind, reason) in [
        ("trap", ErrorKind::Trap, ""),
        ("many", ErrorKind::Memory, ""),
        ("crowd", ErrorKind::InvalidProvider, "1000 tools; at most 256"),
        ("long", ErrorKind::ResultBytes, "1 MiB"),
        (
            "twice",
            ErrorKind::InvalidProvider,
            "`get_soup` and `get-soup`, which have the same name in a tool set",
        ),
        ("deep", ErrorKind::InvalidProvider, "its input schema"),
        ("none", ErrorKind::InvalidProvider, "is not JSON"),
    ] {
        let place = menu(&[("mode", mode)]).await;
        let host = host(&place).build().await.unwrap();
        let error = discovery_error(&host);
        assert_eq!(names(&host), ["count"], "{mode}");
        assert_eq!(error.kind, kind, "{mode}: {error:?}");
        assert!(error.message.contains(reason), "{mode}: {error}");
        assert_eq!(error.plugin.as_deref(), Some("menu"));
    }
}

// attack: B1
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reference_out_of_a_schema_is_left_out_and_its_tool_is_kept() {
    let place = menu(&[("mode", "outside")]).await;
    let host = host(&place).build().await.unwrap();
    let definition = host.registry().definition(SOUP).cloned().unwrap();
    let schema = definition.input_schema.to_string();
    assert!(!schema.contains("127.0.0.1:9"), "{schema}");
}

// attack: B1
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn endless_discovery_ends_with_its_fuel_and_other_plugins_work() {
    let place = menu(&[("mode", "endless")]).await;
    place.put("adder", &crate::place::adder(1));
    let host = host(&place).limits(LimitOverrides::default().with_fuel_max(50_000_000));
    let started = Instant::now();
    let host = host.build().await.unwrap();
    assert!(started.elapsed() < Duration::from_secs(60));
    assert_eq!(discovery_error(&host).kind, ErrorKind::Fuel);
    assert_eq!(call(&host, "add", json!({"a": 1, "b": 2})).await.unwrap().for_llm, "3");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn conversation_uses_dynamic_tools_of_a_plugin_that_is_added_while_it_runs() {
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
async fn embedder_discovers_the_tools_of_a_single_plugin() {
    let plugin = Guests::new().rust("menu").await;
    assert!(plugin.dynamic_tools_state().is_undiscovered());
    assert_eq!(plugin.tools(&Scope::new()).len(), 1);
    let discovered = plugin.discover_tools().await.unwrap();
    assert_eq!(
        (
            discovered.dynamic_tools_state().is_undiscovered(),
            discovered.tools(&Scope::new()).len()
        ),
        (false, 3)
    );
    assert!(
        Arc::ptr_eq(&discovered, &discovered.discover_tools().await.unwrap()),
        "a second discovery does nothing"
    );
    let tools = discovered.inspection().discovered_tools().unwrap();
    assert_eq!(plugin.with_discovered_tools(&tools).unwrap().tool_count(), 3);
    assert!(plugin.with_discovered_tools("damage").is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn plugin_calls_a_dynamic_tool_of_another_only_with_a_grant() {
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
