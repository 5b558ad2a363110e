//! Components of the contract of ACT: their tools, and what hostile ones cannot do.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use toolwit::limits::LimitOverrides;
use toolwit::tool::EffectClass;
use toolwit::{Error, ErrorKind, Toolwit};

use crate::host::{Setup, TestHost, contract_guests3};
use crate::server::{Answer, Server};

const RAW: &str = "actor/act:tools/tool-provider@0.2.0#raw";

async fn act_host() -> TestHost {
    Setup::new().contracts().start().await
}

/// Returns the error with which the tools of the guest cannot be discovered in a mode.
async fn discovery_error(mode: &str, limits: LimitOverrides) -> Error {
    let lines = format!("config = {{ mode = \"{mode}\" }}");
    let host = Setup::new()
        .contracts()
        .limits(limits)
        .grant_to(&["actor"], &lines)
        .start()
        .await;
    let registry = host.host.registry();
    let package = registry.package("actor").unwrap();
    assert_eq!(package.plugin().unwrap().tool_count(), 0, "{mode}");
    package.discovery_error().unwrap_or_else(|| panic!("{mode} was listed"))
}

#[tokio::test]
async fn tools_of_act_take_and_return_json() {
    let host = act_host().await;
    let value = json!({"text": "\u{fc}", "numbers": [1, -2, 2.5, 1e300], "none": null, "deep": {"a": [true]}});
    assert_eq!(
        host.value("echo", json!({"value": value, "count": 3})).await,
        json!({"value": value, "count": 3})
    );
    let raw = host.call("raw", json!({"bb": 1, "c": -1, "a": 1.5})).await.unwrap();
    assert_eq!(
        raw.for_llm,
        "a36161f93e00616320626262".to_owned() + "01",
        "deterministic CBOR"
    );
    assert!(raw.usage.is_some_and(|usage| usage.fuel > 0));
    let stream = host.call("stream", json!({})).await.unwrap();
    assert_eq!(stream.for_llm, "0 \n1 x\n2 xx");
    let picture = host.call("picture", json!({})).await.unwrap();
    assert_eq!(picture.for_llm, "[image/png, 3 bytes]");
    assert_eq!(picture.artifacts[0].kind, "image/png");
    assert_eq!(picture.artifacts[0].value, json!({"data": "AQID"}));
    let mixed = host.call("mixed", json!({})).await.unwrap();
    assert_eq!(mixed.for_llm, "two\n{\"a\":1}\n[application/octet-stream, 1 bytes]");
    assert_eq!(host.value("nothing", json!({})).await, json!(null));
}

#[tokio::test]
async fn arguments_that_the_schema_refuses_reach_no_guest() {
    let host = act_host().await;
    for arguments in [json!({}), json!({"value": 1, "count": "three"})] {
        let error = host.call("echo", arguments).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::InvalidArguments, "{error}");
    }
}

#[tokio::test]
async fn errors_of_act_are_never_successes() {
    let host = act_host().await;
    for (tool, kind) in [
        ("missing", ErrorKind::ToolUnavailable),
        ("wrong", ErrorKind::InvalidArguments),
        ("forbidden", ErrorKind::Denied),
        ("bound", ErrorKind::Unsupported),
        ("junk", ErrorKind::Tool),
        ("liar", ErrorKind::Tool),
        ("trap", ErrorKind::Trap),
    ] {
        let error = host.call(tool, json!({})).await.unwrap_err();
        assert_eq!(error.kind, kind, "{tool}: {error}");
        assert_eq!(error.plugin.as_deref(), Some("actor"));
    }
    for (tool, text) in [
        ("slow", "it failed"),
        ("odd", "it failed"),
        ("partial", "half\nno time for the rest"),
        ("unfinished", "0 \n1 x\nthe ink ran out"),
    ] {
        assert_eq!(host.failure(tool, json!({})).await, text, "{tool}");
    }
    let odd = host.call("odd", json!({})).await.unwrap();
    assert_eq!(odd.value.unwrap()["kind"], "test:odd");
}

#[tokio::test]
async fn tool_that_needs_a_session_is_refused_by_name() {
    let error = act_host().await.call("bound", json!({})).await.unwrap_err();
    assert_eq!(
        error.message,
        "the tool needs a session of ACT, which this host does not support: it failed"
    );
    assert!(error.suggestion.is_some(), "{error:?}");
}

#[tokio::test]
async fn claims_of_act_raise_no_trust() {
    let lines = "files = [{ host = \"{dir}/data\", guest = \"/data\", access = \"read-write\" }]";
    let host = Setup::new().contracts().grant(lines).start().await;
    let class = async |host: &TestHost, name: &str| {
        let tool = Toolwit::find_tool(host.tools(), name).unwrap();
        tool.access(&Default::default(), &host.context).await.effect.class
    };
    assert_eq!(
        class(&host, "echo").await,
        EffectClass::Write,
        "the claim `read-only` does not prove it"
    );
    let host = act_host().await;
    assert_eq!(
        class(&host, "echo").await,
        EffectClass::Read,
        "without grants, the sandbox proves it"
    );
    assert_eq!(
        class(&host, "burn").await,
        EffectClass::Write,
        "a claim can ask for more care"
    );
    let tool: Arc<_> = Toolwit::find_tool(host.tools(), "echo").unwrap();
    assert_eq!(tool.definition().description, "Repeats its arguments.\n\nOften.");
}

#[tokio::test]
async fn act_reads_a_file_only_with_a_grant() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("data")).unwrap();
    std::fs::write(directory.path().join("data/note.txt"), "granted").unwrap();
    let lines = "files = [{ host = \"{dir}/data\", guest = \"/data\", access = \"read\" }]";
    let host = Setup::new().contracts().directory(directory).grant(lines).start().await;
    assert_eq!(host.call("read", json!({})).await.unwrap().for_llm, "granted");
    let denied = act_host().await.denial("read", json!({})).await;
    assert_eq!(denied.denied[0].access, "read `/data/note.txt`", "{denied:?}");
}

/// A request of a component of ACT without the grant is refused by name and opens no connection, and passes with the grant.
async fn request_needs_the_grant(setup: fn() -> Setup) {
    let server = Server::start(Answer::text("the page")).await;
    let authority = format!("127.0.0.1:{}", server.port);
    let arguments = json!({"authority": authority});
    let denied = setup().start().await.denial("fetch", arguments.clone()).await;
    let missing = denied.denied[0].missing_grant.as_ref().unwrap();
    assert_eq!(
        (&*missing.key, &*missing.value),
        ("http", &*format!("GET http://{authority}/"))
    );
    assert_eq!(server.connections(), 0);
    let lines = format!(
        "http = [{{ host = \"127.0.0.1\", scheme = \"http\", port = {} }}]",
        server.port
    );
    let host = setup().grant(&lines).start().await;
    assert_eq!(host.call("fetch", arguments).await.unwrap().for_llm, "the page");
    host.denial("fetch", json!({"authority": "127.0.0.1:1"})).await;
    assert_eq!(server.connections(), 1);
    let limits = LimitOverrides::default().with_http_requests_max(0);
    let host = setup().grant(&lines).limits(limits).start().await;
    let limited = host.denial("fetch", json!({"authority": authority})).await;
    assert!(limited.message.contains("at most 0 requests"), "{limited}");
    assert_eq!(server.connections(), 1);
}

// attack: C9
#[tokio::test]
async fn request_of_act_is_allowed_only_with_a_grant() {
    request_needs_the_grant(|| Setup::new().contracts()).await;
}

// attack: C9
#[tokio::test]
async fn request_of_act_through_wasi_3_is_allowed_only_with_a_grant() {
    request_needs_the_grant(|| Setup::new().contracts().wasi3()).await;
}

// attack: A8
#[tokio::test]
async fn component_of_act_that_uses_wasi_3_needs_the_switch() {
    let refused = Toolwit::builder()
        .plugins(contract_guests3().await)
        .build()
        .await
        .unwrap();
    let registry = refused.registry();
    let reason = registry.package("understudy").unwrap().broken_reason().unwrap();
    assert_eq!(reason.kind, ErrorKind::UnknownImport);
    assert!(reason.message.contains("@0.3.0`"), "{reason}");
}

// attack: B1, attack: B2
#[tokio::test]
async fn hostile_tools_of_act_end_with_the_limit_that_they_reach() {
    let limits = LimitOverrides::default()
        .with_fuel_max(2_000_000_000)
        .with_wall_max(Duration::from_secs(20));
    let host = Setup::new().contracts().limits(limits).start().await;
    let started = Instant::now();
    for (tool, kind) in [
        ("spin", ErrorKind::Fuel),
        ("giant", ErrorKind::HostCallBytes),
        ("endless_stream", ErrorKind::ResultBytes),
        ("flood", ErrorKind::HostCalls),
    ] {
        let error = host.call(tool, json!({})).await.unwrap_err();
        assert_eq!(error.kind, kind, "{tool}: {error:?}");
        assert!(error.limit.is_some(), "{tool}: {error:?}");
    }
    assert!(started.elapsed() < Duration::from_secs(120));
    assert_eq!(
        host.value("nothing", json!({})).await,
        json!(null),
        "the host still works"
    );
}

// attack: B4
#[tokio::test]
async fn hostile_lists_of_act_are_refused() {
    for (mode, kind, reason) in [
        ("closed", ErrorKind::Tool, "not on Sundays"),
        ("many", ErrorKind::ResultBytes, "the result has"),
        ("crowd", ErrorKind::InvalidProvider, "at most 256 are allowed"),
        ("long", ErrorKind::ResultBytes, "the result has"),
        ("text", ErrorKind::InvalidProvider, "is not JSON"),
        ("trap", ErrorKind::Trap, "the curtain falls"),
    ] {
        let error = discovery_error(mode, LimitOverrides::default()).await;
        assert_eq!(error.kind, kind, "{mode}: {error:?}");
        assert!(error.message.contains(reason), "{mode}: {error}");
    }
    let endless = discovery_error("endless", LimitOverrides::default().with_fuel_max(50_000_000)).await;
    assert_eq!(endless.kind, ErrorKind::Fuel);
}

// attack: B4
#[tokio::test]
async fn a_reference_out_of_a_schema_is_left_out_and_never_followed() {
    let host = Setup::new()
        .contracts()
        .grant_to(&["actor"], "config = { mode = \"outside\" }")
        .start()
        .await;
    assert!(!host.tools().is_empty());
    for tool in host.tools() {
        let schema = &tool.definition().input_schema;
        assert!(!schema.to_string().contains("127.0.0.1:9"), "{schema}");
    }
}

#[tokio::test]
async fn tools_of_act_have_ids_of_their_interface() {
    let host = act_host().await;
    let tool = Toolwit::find_tool(host.tools(), RAW).unwrap();
    assert_eq!(tool.definition().name(), "raw");
    let inspection = host
        .host
        .registry()
        .package("actor")
        .unwrap()
        .plugin()
        .unwrap()
        .inspection()
        .clone();
    assert_eq!(inspection.contract(), Some("act:tools/tool-provider@0.2.0"));
}
