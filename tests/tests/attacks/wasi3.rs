//! WASI 0.3: the refusals and limits of 0.2, for async functions, streams and futures.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use toolwit::limits::{EngineLimits, LimitOverrides};
use toolwit::sandbox::{WasiVersions, guest_files_max};
use toolwit::{ErrorKind, Toolwit};

use crate::host::{Setup, guests3};
use crate::server::{Answer, ScriptedResolver, Server};
use crate::tls::Authority;

const READ: &str = r#"files = [{ host = "{dir}/data", guest = "/data", access = "read" }]"#;
const WRITE: &str = r#"files = [{ host = "{dir}/data", guest = "/data", access = "read-write", quota = "200KiB" }]"#;
const QUOTA_BYTES: u64 = 200 << 10;

fn request(authority: &str) -> Value {
    json!({"method": "GET", "scheme": "http", "authority": authority, "path": "/", "headers": [], "body": ""})
}

// attack: A8, attack: Q5
#[tokio::test]
async fn without_the_switch_a_component_of_wasi_3_is_refused_with_its_name() {
    let refused = Toolwit::builder().plugins(guests3().await).build().await.unwrap();
    let registry = refused.registry();
    let reason = registry.package("river").unwrap().broken_reason().unwrap();
    assert_eq!(reason.kind, ErrorKind::UnknownImport);
    assert!(
        reason.message.contains("@0.3.0`") && reason.message.contains("no security patches"),
        "{reason}"
    );
    assert!(
        reason
            .suggestion
            .as_ref()
            .unwrap()
            .contains("`WasiVersions::Wasi2And3`"),
        "{reason:?}"
    );
    let enabled = Toolwit::builder()
        .plugins(guests3().await)
        .wasi(WasiVersions::Wasi2And3);
    let enabled = enabled.build().await.unwrap();
    assert!(enabled.registry().package("river").unwrap().broken_reason().is_none());
}

#[tokio::test]
async fn streams_and_futures_are_results() {
    let host = Setup::new().wasi3().start().await;
    assert_eq!(host.value("add", json!({"a": 1, "b": 2})).await, 3);
    let text = host.value("text", json!({"text": "abc ", "times": 1_000})).await;
    assert_eq!(text.as_str().map(str::len), Some(4_000));
    assert_eq!(
        host.value("bytes", json!({})).await,
        "data:application/octet-stream;base64,//4A"
    );
    let counted = host.value("count", json!({"to": 20_000})).await;
    assert_eq!(counted.as_array().map(Vec::len), Some(20_000));
    assert_eq!(counted[19_999], 20_000);
    assert_eq!(
        host.value("words", json!({"text": "one two"})).await,
        json!(["one", "two"])
    );
    assert_eq!(
        host.value("promise", json!({"text": "kept"})).await,
        json!({"ok": "kept"})
    );
    assert_eq!(
        host.value("promise", json!({})).await,
        json!({"err": "there is no text"})
    );
    assert_eq!(
        host.value("both", json!({"text": "four"})).await,
        json!(["four", 4]),
        "the guest keeps the promise before it writes"
    );
    assert_eq!(host.value("perhaps", json!({"text": "here"})).await, "here");
    assert_eq!(host.failure("perhaps", json!({})).await, "there is no text");
    let skipped: Vec<_> = host
        .host
        .registry()
        .package("river")
        .unwrap()
        .plugin()
        .unwrap()
        .inspection()
        .skipped
        .clone();
    let reasons: Vec<_> = skipped
        .iter()
        .map(|skipped| (skipped.export.as_str(), skipped.reason.as_str()))
        .collect();
    assert_eq!(reasons.len(), 1, "{reasons:?}");
    assert!(
        reasons
            .iter()
            .any(|(export, reason)| export.ends_with("#many") && reason.contains("in a list"))
    );
}

#[tokio::test]
async fn streams_and_futures_are_arguments() {
    let host = Setup::new().wasi3().start().await;
    assert_eq!(host.value("drain", json!({"data": "four"})).await, 4);
    let long = "x".repeat(100_000);
    assert_eq!(host.value("drain", json!({"data": long})).await, 100_000);
    let bytes = "data:application/octet-stream;base64,//4A";
    assert_eq!(host.value("drain", json!({"data": bytes})).await, 3);
    assert_eq!(host.value("sum", json!({"numbers": [[1, 2], [], [3]]})).await, 6);
    assert_eq!(
        host.value(
            "sum",
            json!({"numbers": [], "more": [4_000_000_000_u32, 4_000_000_000_u32]})
        )
        .await,
        8_000_000_000_u64
    );
    let relayed = host
        .value("relay", json!({"promised": {"ok": "kept"}, "words": ["one", "two"]}))
        .await;
    assert_eq!(relayed, json!([{"ok": "kept"}, ["one", "two"]]));
    assert_eq!(host.value("ignore", json!({"data": "nothing"})).await, "not read");
    for (name, arguments, reason) in [
        ("drain", json!({"data": 1}), "data"),
        (
            "drain",
            json!({"data": "data:application/octet-stream;base64,?"}),
            "base64",
        ),
        ("sum", json!({"numbers": [[-1]]}), "numbers"),
        ("relay", json!({"promised": "kept", "words": []}), "promised"),
    ] {
        let error = host.call(name, arguments).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::InvalidArguments, "{error:?}");
        assert!(error.to_string().contains(reason), "{error}");
    }
}

// attack: Q3
#[tokio::test]
async fn streams_are_limited_in_size_time_and_number() {
    let limits = LimitOverrides::default()
        .with_wall_max(Duration::from_millis(500))
        .with_resources_max(200);
    let host = Setup::new().wasi3().limits(limits).start().await;
    let error = host.call("endless", json!({})).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::ResultBytes, "{error:?}");
    let started = Instant::now();
    let error = host.call("stuck", json!({})).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Timeout, "{error:?}");
    let error = host.call("wait", json!({"ms": 60_000})).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Timeout, "{error:?}");
    assert!(started.elapsed() < Duration::from_secs(10));
    assert_eq!(host.value("brood", json!({"streams": 50})).await, 50);
    let error = host.call("brood", json!({"streams": 1_000})).await.unwrap_err();
    assert!(
        matches!(error.kind, ErrorKind::Resources | ErrorKind::Trap),
        "{error:?}"
    );
    assert_eq!(
        host.value("add", json!({"a": 1, "b": 2})).await,
        3,
        "the next call works"
    );
}

// attack: Q3
#[tokio::test]
async fn memory_of_streams_counts_for_the_limit_of_host_memory() {
    let limits = LimitOverrides::default().with_host_memory_bytes_max(32 << 20);
    let host = Setup::new().wasi3().limits(limits).start().await;
    assert_eq!(host.value("brood", json!({"streams": 100})).await, 100);
    let error = host.call("brood", json!({"streams": 1_500})).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Resources, "{error:?}");
}

// attack: C20, attack: Q4
#[tokio::test]
async fn nothing_of_the_process_is_visible_without_a_grant() {
    let frozen = "clock = { frozen = 1000000000 }\nrandom = { frozen = 7 }";
    let host = Setup::new().wasi3().grant(frozen).start().await;
    assert_eq!(host.value("environment", json!({})).await, json!([]));
    assert_eq!(host.value("time", json!({})).await, json!([1_000_000_000, 0]));
    let random = host.value("random", json!({})).await;
    assert_eq!(random, host.value("random", json!({})).await);
    let result = host.call("say", json!({"text": "hello"})).await.unwrap();
    assert_eq!(result.log.as_deref(), Some("hello"));
    let refused = host.denial("connect", json!({"port": 1})).await;
    assert_eq!(refused.denied[0].access, "open a TCP socket");
    let refused = host.denial("lookup", json!({"name": "localhost"})).await;
    assert_eq!(refused.denied[0].access, "look up the name `localhost`");
    let granted = "env = [{ name = \"COLOUR\", value = \"red\" }]\nclock = \"real\"\nrandom = \"real\"";
    let host = Setup::new().wasi3().grant(granted).start().await;
    assert_eq!(host.value("environment", json!({})).await, json!([["COLOUR", "red"]]));
    assert!(host.value("time", json!({})).await[0].as_i64() > Some(1_700_000_000));
    assert_ne!(
        host.value("random", json!({})).await,
        host.value("random", json!({})).await
    );
}

// attack: C1, attack: C2, attack: C5, attack: Q4
#[cfg(unix)]
#[tokio::test]
async fn only_granted_files_are_accessible() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    std::fs::create_dir_all(data.join("sub")).unwrap();
    std::fs::write(data.join("inside"), "here").unwrap();
    std::fs::write(directory.path().join("outside"), "secret").unwrap();
    std::os::unix::fs::symlink("../outside", data.join("link")).unwrap();
    let host = Setup::new().wasi3().grant(READ).directory(directory).start().await;
    assert_eq!(host.value("read", json!({"path": "/data/inside"})).await, "here");
    assert_eq!(
        host.value("entries", json!({"path": "/data"})).await,
        json!(["inside", "link", "sub"])
    );
    for path in [
        "/data/link",
        "/data/../outside",
        "/data/sub/../../outside",
        "/etc/passwd",
        "/outside",
    ] {
        let error = host.failure("read", json!({ "path": path })).await;
        assert!(!error.contains("secret"), "{path}: {error}");
    }
    for (how, path, other) in [
        ("mkdir", "/data/new", ""),
        ("unlink", "/data/inside", ""),
        ("symlink", "/data/new", "/etc/passwd"),
        ("rename", "/data/inside", "/data/new"),
        ("link", "/data/inside", "/data/new"),
        ("resize", "/data/inside", "0"),
    ] {
        host.failure("change", json!({"how": how, "path": path, "other": other}))
            .await;
    }
    host.failure("write", json!({"path": "/data/inside", "offset": 0, "text": "x"}))
        .await;
    assert_eq!(host.value("read", json!({"path": "/data/inside"})).await, "here");
    // The operator reads which path was denied, if the guest has no directory and so sees an empty root.
    let bare = Setup::new().wasi3().start().await;
    let result = bare.call("read", json!({"path": "/etc/passwd"})).await.unwrap();
    assert!(
        result.denied.iter().any(|denied| denied.access.contains("/etc/passwd")),
        "{:?}",
        result.denied
    );
}

// attack: B18, attack: L5, attack: Q4
#[cfg(unix)]
#[tokio::test]
async fn concurrent_writes_stay_within_the_quota() {
    let host = Setup::new().wasi3().grant(WRITE).start().await;
    host.value("write", json!({"path": "/data/a", "offset": 0, "text": "four"}))
        .await;
    host.value("write", json!({"path": "/data/a", "offset": 4, "text": "more"}))
        .await;
    assert_eq!(host.value("read", json!({"path": "/data/a"})).await, "fourmore");
    let fill = json!({"path": "/data/full", "bytes": 100_000, "streams": 8});
    let size = host.value("fill", fill).await.as_u64().unwrap();
    assert!(size <= QUOTA_BYTES, "{size}");
    let far = json!({"path": "/data/far", "offset": 1_u64 << 40, "text": "x"});
    assert!(host.failure("write", far).await.contains("InsufficientSpace"));
    let resize = json!({"how": "resize", "path": "/data/far", "other": (1_u64 << 40).to_string()});
    assert!(host.failure("change", resize).await.contains("InsufficientSpace"));
    // No file can have this size, with or without a quota.
    let impossible = json!({"how": "resize", "path": "/data/far", "other": u64::MAX.to_string()});
    assert!(host.failure("change", impossible).await.contains("Invalid"));
    let length = |name: &str| std::fs::metadata(host.data().join(name)).map_or(0, |file| file.len());
    assert!(length("full") + length("far") <= QUOTA_BYTES);
}

// attack: C3
#[cfg(unix)]
#[tokio::test]
async fn a_pipe_is_not_opened() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(directory.path().join("data")).unwrap();
    let pipe = directory.path().join("data/pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let host = Setup::new().wasi3().grant(WRITE).directory(directory).start().await;
    assert!(
        host.failure("read", json!({"path": "/data/pipe"}))
            .await
            .contains("NotPermitted")
    );
}

// attack: Q6
#[tokio::test]
async fn unread_directories_hold_no_threads_of_the_host() {
    if guest_files_max(&EngineLimits::default()) < 2_048 {
        return; // This process may not open enough directories.
    }
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    std::fs::create_dir_all(&data).unwrap();
    for number in 0..10 {
        std::fs::write(data.join(number.to_string()), "").unwrap();
    }
    let limits = LimitOverrides::default().with_host_memory_bytes_max(256 << 20);
    let host = Setup::new()
        .wasi3()
        .grant(READ)
        .limits(limits)
        .directory(directory)
        .start()
        .await;
    // More than the threads of a runtime for blocking work.
    let hoard = host.value("hoard", json!({"path": "/data", "streams": 600}));
    assert_eq!(hoard.await, 600);
    assert_eq!(
        host.value("entries", json!({"path": "/data"}))
            .await
            .as_array()
            .unwrap()
            .len(),
        10
    );
}

// attack: C9, attack: C10, attack: Q4
#[tokio::test]
async fn requests_are_checked_against_the_grant() {
    let server = Server::start(Answer::text("reached")).await;
    let authority = format!("127.0.0.1:{}", server.port);
    let denied = Setup::new().wasi3().start().await;
    let error = denied.denial("fetch", request(&authority)).await;
    assert!(error.message.contains(&authority), "{error}");
    assert_eq!(server.connections(), 0);

    let port = server.port;
    let grant = format!(
        "http = [{{ host = \"api.example.com\", scheme = \"http\", port = {port}, addresses = [\"127.0.0.1\"] }}]"
    );
    let limits = LimitOverrides::default().with_http_requests_max(3);
    let host = Setup::new()
        .wasi3()
        .grant(&grant)
        .limits(limits)
        .resolver(ScriptedResolver::new(&[&["127.0.0.1"]]))
        .start()
        .await;
    let reply = host.value("fetch", request(&format!("api.example.com:{port}"))).await;
    assert_eq!(
        (reply["status"].clone(), reply["body"].clone()),
        (json!(200), json!("reached"))
    );
    let reached = server.connections();
    for other in [authority.as_str(), "api.example.com.evil.com", "localhost"] {
        host.call("fetch", request(other)).await.unwrap_err();
    }
    let mut forbidden = request(&format!("api.example.com:{port}"));
    forbidden["headers"] = json!([["host", "evil.com"]]);
    assert!(host.failure("fetch", forbidden).await.contains("header"));
    assert_eq!(server.connections(), reached);
    let hammer = json!({"authority": format!("api.example.com:{port}"), "times": 9});
    assert_eq!(host.value("hammer", hammer).await, 3, "requests beyond the limit fail");
    assert_eq!(server.connections(), reached + 3);
}

// attack: C19, attack: Q4
#[tokio::test]
async fn secrets_are_inserted_and_masked() {
    const VALUE: &str = "hunter2-and-much-more";
    let certificates = Authority::new();
    let answer = Answer::text(&format!("your key is {VALUE}"));
    let server = certificates.answering("api.example.com", answer).await;
    let port = server.port;
    let grant = format!(
        "http = [{{ host = \"api.example.com\", port = {port}, addresses = [\"127.0.0.1\"] }}]\n\
         secrets = [{{ name = \"key\", host = \"api.example.com\", port = {port}, bearer = true }}]"
    );
    let host = Setup::new()
        .wasi3()
        .grant(&grant)
        .secret("key", VALUE)
        .roots(&certificates.pem)
        .resolver(ScriptedResolver::new(&[&["127.0.0.1"]]))
        .start()
        .await;
    let mut request = request(&format!("api.example.com:{port}"));
    request["scheme"] = json!("https");
    let reply = host.value("fetch", request).await;
    assert!(server.requests()[0].contains(VALUE), "the server receives it");
    let body = reply["body"].as_str().unwrap();
    assert!(body.starts_with("your key is ") && !body.contains("hunter2"), "{body}");
}
