//! Components of the contract of IronClaw: each function of their host under its grant, and what hostile ones cannot do.

use std::sync::Arc;

use serde_json::{Value, json};
use toolwit::limits::LimitOverrides;
use toolwit::tool::ToolCaller;
use toolwit::{Error, ErrorKind, ToolContext, ToolSet};

use crate::host::{Setup, TestHost};
use crate::server::{Answer, ScriptedResolver, Server};
use crate::tls::Authority;

const NAME: &str = "api.example.com";
const VALUE: &str = "hunter2-and-more";

fn near_setup() -> Setup {
    Setup::new().contracts()
}

fn attempt_arguments(action: &str, with: &str) -> Value {
    json!({"do": action, "with": with})
}

/// Returns the lines of a grant for requests to a server.
fn http_grant(server: &Server) -> String {
    let port = server.port;
    format!("http = [{{ host = \"127.0.0.1\", scheme = \"http\", port = {port}, methods = [\"GET\", \"POST\"] }}]")
}

#[tokio::test]
async fn component_of_ironclaw_is_one_tool_with_its_name() {
    let host = near_setup().start().await;
    let tool = toolwit::Toolwit::find_tool(host.tools(), "nearby").unwrap();
    assert_eq!(tool.definition().id.as_str(), "nearby/near:agent/tool@0.3.0#nearby");
    assert_eq!(tool.definition().description, "Attempts what a test requests.");
    let params = attempt_arguments("params", "\u{fc}");
    assert_eq!(host.value("nearby", params.clone()).await, params);
    assert_eq!(
        host.call("nearby", attempt_arguments("text", ""))
            .await
            .unwrap()
            .for_llm,
        "this is no JSON"
    );
    assert_eq!(host.value("nearby", attempt_arguments("read", "x")).await, json!(null));
    let error = host.call("nearby", json!({"with": 1})).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::InvalidArguments);
}

#[tokio::test]
async fn errors_of_ironclaw_are_never_successes() {
    let host = near_setup().start().await;
    assert_eq!(
        host.failure("nearby", attempt_arguments("jump", "")).await,
        "there is no way to do jump"
    );
    assert_eq!(
        host.failure("nearby", attempt_arguments("both", "")).await,
        "it went wrong"
    );
    let with = |text: &str| json!({"with": text});
    for (text, kind) in [("input", ErrorKind::InvalidArguments), ("denied", ErrorKind::Denied)] {
        let error = host.call("neighbor", with(text)).await.unwrap_err();
        assert_eq!((error.kind, &*error.message), (kind, "the neighbor is out"));
    }
    assert_eq!(host.failure("neighbor", with("failed")).await, "E42");
    let auth = host.call("neighbor", with("auth")).await.unwrap();
    assert!(auth.is_error());
    assert_eq!(
        auth.value.unwrap(),
        json!({"kind": "auth-required", "code": "E42", "message": "the neighbor is out"})
    );
}

#[tokio::test]
async fn clock_is_that_of_the_grant() {
    let real = near_setup()
        .start()
        .await
        .value("nearby", attempt_arguments("now", ""))
        .await;
    assert!(real.as_u64().unwrap() > 1_700_000_000_000, "{real}");
    let frozen = near_setup().grant("clock = { frozen = 42 }").start().await;
    assert_eq!(
        frozen.value("nearby", attempt_arguments("now", "")).await,
        json!(42_000)
    );
}

#[tokio::test]
async fn workspace_is_a_granted_directory() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    std::fs::create_dir_all(data.join("in")).unwrap();
    std::fs::write(data.join("in/note.txt"), "granted").unwrap();
    std::fs::write(data.join("binary"), [0xff, 0xfe]).unwrap();
    std::fs::write(directory.path().join("outside"), "not granted").unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink("../outside", data.join("link")).unwrap();
    let lines = "files = [{ host = \"{dir}/data\", guest = \"/workspace\", access = \"read\" }]";
    let host = near_setup().directory(directory).grant(lines).start().await;
    let read = async |path: &str| host.value("nearby", attempt_arguments("read", path)).await;
    assert_eq!(read("in/note.txt").await, json!("granted"));
    assert_eq!(read("./in//note.txt").await, json!("granted"));
    for path in [
        "",
        "in",
        "missing",
        "link",
        "binary",
        "../outside",
        "in/../../outside",
        "/workspace/in/note.txt",
    ] {
        assert_eq!(read(path).await, json!(null), "{path}");
    }
    let binary = host.call("nearby", attempt_arguments("read", "binary")).await.unwrap();
    assert!(binary.denied[0].reason.contains("not text"), "{:?}", binary.denied);
    let host = near_setup().start().await;
    let denied = host
        .call("nearby", attempt_arguments("read", "in/note.txt"))
        .await
        .unwrap();
    assert_eq!(denied.value, Some(json!(null)), "the guest cannot tell why");
    let missing = denied.denied[0].missing_grant.as_ref().unwrap();
    assert_eq!((&*missing.key, &*missing.value), ("files", "read /workspace/in"));
}

// attack: C9
#[tokio::test]
async fn request_is_allowed_only_with_a_grant() {
    let server = Server::start(Answer::Echo).await;
    let url = format!("http://127.0.0.1:{}/path?q=1", server.port);
    let denied = near_setup()
        .start()
        .await
        .denial("nearby", attempt_arguments("fetch", &url))
        .await;
    let missing = denied.denied[0].missing_grant.as_ref().unwrap();
    assert_eq!(missing.value, format!("POST http://127.0.0.1:{}/path", server.port));
    assert_eq!(server.connections(), 0);
    let lines = http_grant(&server);
    let host = near_setup().grant(&lines).start().await;
    let response = host.call("nearby", attempt_arguments("fetch", &url)).await.unwrap();
    assert!(
        response.for_llm.starts_with(r#"{"status": 200, "#),
        "{}",
        response.for_llm
    );
    let request = server.requests().concat().to_lowercase();
    assert!(
        request.starts_with("post /path?q=1 http/1.1") && request.contains("x-guest: nearby"),
        "{request}"
    );
    assert!(request.ends_with("body"), "{request}");
    let refused = host.failure("nearby", attempt_arguments("header", &url)).await;
    assert!(refused.contains("`host` is reserved for the host"), "{refused}");
    for url in [
        "http://127.0.0.1:1/",
        "file:///etc/passwd",
        "/path",
        "http://user@127.0.0.1/",
        "no URL",
    ] {
        match host.call("nearby", attempt_arguments("fetch", url)).await {
            Ok(result) => assert!(result.is_error(), "{url}: {}", result.for_llm),
            Err(error) => assert_eq!(error.kind, ErrorKind::Denied, "{url}: {error}"),
        }
    }
    assert_eq!(server.connections(), 1);
    let typed = host.value("neighbor", json!({"with": "http://127.0.0.1:1/"})).await;
    assert_eq!(typed, json!({"kind": "HttpErrorKind::NetworkDenied", "sent": false}));
}

#[tokio::test]
async fn requests_and_responses_are_limited() {
    let server = Server::start(Answer::text(&"x".repeat(100_000))).await;
    let lines = http_grant(&server);
    let url = format!("http://127.0.0.1:{}/", server.port);
    let limits = LimitOverrides::default().with_http_bytes_max(50_000);
    let host = near_setup().grant(&lines).limits(limits).start().await;
    host.failure("nearby", attempt_arguments("fetch", &url)).await;
    let limits = LimitOverrides::default().with_http_requests_max(0);
    let host = near_setup().grant(&lines).limits(limits).start().await;
    let denied = host.denial("nearby", attempt_arguments("fetch", &url)).await;
    assert!(denied.message.contains("at most 0 requests"), "{denied}");
    assert_eq!(server.connections(), 1);
}

// attack: C14, attack: C19
#[tokio::test]
async fn secret_is_placed_by_the_host_and_never_seen() {
    let authority = Authority::new();
    let server = authority.answering(NAME, Answer::Echo).await;
    let port = server.port;
    let lines = format!(
        "http = [{{ host = \"{NAME}\", port = {port}, methods = [\"POST\"], addresses = [\"127.0.0.1\"] }}]\n\
         secrets = [{{ name = \"key\", host = \"{NAME}\", port = {port}, bearer = true }}]"
    );
    let setup = || near_setup().secret("key", VALUE).roots(&authority.pem);
    let resolver = || ScriptedResolver::new(&[&["127.0.0.1"]]);
    let host = setup().grant(&lines).resolver(resolver()).start().await;
    let exists = async |host: &TestHost, name: &str| host.value("nearby", attempt_arguments("secret", name)).await;
    assert_eq!(exists(&host, "key").await, json!(true));
    assert_eq!(exists(&host, "other").await, json!(false));
    let url = format!("https://{NAME}:{port}/");
    let response = host.call("nearby", attempt_arguments("fetch", &url)).await.unwrap();
    assert!(!response.is_error(), "{}", response.for_llm);
    assert!(
        !response.for_llm.contains(VALUE),
        "the echo of the secret is masked: {}",
        response.for_llm
    );
    let seen = server.requests().concat();
    assert!(
        seen.contains(&format!("\r\nauthorization: Bearer {VALUE}\r\n")),
        "{seen}"
    );
    assert!(!seen.contains("of-the-guest"), "{seen}");
    let logged = host.call("nearby", attempt_arguments("params", VALUE)).await.unwrap();
    assert!(!logged.for_llm.contains(VALUE), "{}", logged.for_llm);

    let host = setup().resolver(resolver()).start().await;
    assert_eq!(
        exists(&host, "key").await,
        json!(false),
        "without a grant it does not exist"
    );
    host.denial("nearby", attempt_arguments("fetch", &url)).await;
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn tool_is_invoked_only_with_a_grant() {
    let invoked = async |setup: Setup| {
        let mut host = setup.start().await;
        let tools = ToolSet::from_iter(host.tools().iter().cloned());
        host.context = ToolContext::new().with_tools(Arc::new(tools) as Arc<dyn ToolCaller>);
        host
    };
    let lines = "tools = [\"actor/act:tools/tool-provider@0.2.0#raw\"]";
    let host = invoked(near_setup().grant(lines)).await;
    for alias in ["raw", "actor/act:tools/tool-provider@0.2.0#raw"] {
        let result = host.value("nearby", attempt_arguments("tool", alias)).await;
        assert_eq!(result, json!("a2616114616216"), "{alias}");
    }
    let refused = host.denial("nearby", attempt_arguments("tool", "echo")).await;
    assert!(refused.message.contains("may not call `echo`"), "{refused}");
    let host = invoked(near_setup()).await;
    let refused = host.denial("nearby", attempt_arguments("tool", "raw")).await;
    assert!(refused.message.contains("may not call `raw`"), "{refused}");
}

// attack: B1, attack: B12
#[tokio::test]
async fn hostile_component_of_ironclaw_ends_with_the_limit_that_it_reaches() {
    let limits = LimitOverrides::default().with_fuel_max(2_000_000_000);
    let host = near_setup().limits(limits).start().await;
    for (action, kind) in [
        ("spin", ErrorKind::Fuel),
        ("trap", ErrorKind::Trap),
        ("calls", ErrorKind::HostCalls),
    ] {
        let error = host.call("nearby", attempt_arguments(action, "")).await.unwrap_err();
        assert_eq!(error.kind, kind, "{action}: {error:?}");
    }
    let log = host
        .call("nearby", attempt_arguments("log", ""))
        .await
        .unwrap()
        .log
        .unwrap();
    assert_eq!(&*log, "warn: the door is open\n");
    let flood = host
        .call("nearby", attempt_arguments("flood", ""))
        .await
        .unwrap()
        .log
        .unwrap();
    assert!(
        flood.len() < 300_000 && flood.contains("were dropped"),
        "{}",
        flood.len()
    );
}

// attack: B4
#[tokio::test]
async fn hostile_descriptions_of_ironclaw_are_refused() {
    let error = async |mode: &str, limits: LimitOverrides| -> Error {
        let lines = format!("config = {{ mode = \"{mode}\" }}");
        let host = near_setup().limits(limits).grant_to(&["nearby"], &lines).start().await;
        let registry = host.host.registry();
        registry.package("nearby").unwrap().discovery_error().unwrap()
    };
    for (mode, kind, reason) in [
        ("long", ErrorKind::ResultBytes, "the result has"),
        ("text", ErrorKind::InvalidProvider, "is not JSON"),
        ("trap", ErrorKind::Trap, "the sign is gone"),
    ] {
        let error = error(mode, LimitOverrides::default()).await;
        assert_eq!(error.kind, kind, "{mode}: {error:?}");
        assert!(error.message.contains(reason), "{mode}: {error}");
    }
    let endless = error("endless", LimitOverrides::default().with_fuel_max(50_000_000)).await;
    assert_eq!(endless.kind, ErrorKind::Fuel);
}
