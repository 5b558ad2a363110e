//! A hostile tool in Python, which attempts what a desktop program could do with the full standard library.
//!
//! It is built with `componentize-py`, which CI does not have: `just hostile-python` runs it where that is installed.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

use std::net::{TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use toolwit::limits::LimitOverrides;
use toolwit::sandbox::{CodeCacheLocation, Plugin};
use toolwit::{Error, ErrorKind, ToolResult};
use toolwit_tests::{Conversation, Guests};

/// Builds the component, once for both tests.
fn component() -> &'static [u8] {
    static BUILT: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();
    BUILT.get_or_init(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("guests/python/hostile");
        let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("hostile.wasm");
        let mut build = Command::new("componentize-py");
        build.args(["-d", "wit", "-w", "hostile", "componentize", "app", "-o"]);
        let status = build.arg(&out).current_dir(source).status();
        let status = status.unwrap_or_else(|error| {
            panic!("`componentize-py` cannot be started: {error}; install it with `pip install componentize-py`")
        });
        assert!(status.success(), "`componentize-py` failed: {status}");
        std::fs::read(out).unwrap()
    })
}

/// The tool in a host, with its grants.
struct Desk {
    plugin: Arc<Plugin>,
    _guests: Guests,
}

impl Desk {
    async fn with(grants: Option<PathBuf>) -> Self {
        let code = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python-code");
        let guests = Guests::with(|options| {
            options.code_cache = CodeCacheLocation::Directory(code);
            options.grants_file = grants;
        });
        let plugin = guests.bytes("hostile", component().to_vec()).await.unwrap();
        plugin.compile().await.unwrap();
        Self {
            plugin,
            _guests: guests,
        }
    }

    async fn attempt(&self, limits: LimitOverrides, name: &str, argument: &str) -> Result<ToolResult, Error> {
        let mut conversation = Conversation::over(&[&self.plugin]).limited(limits);
        conversation
            .call("attempt", json!({"name": name, "argument": argument}))
            .await
    }

    /// Makes an attempt that must succeed.
    async fn succeed(&self, name: &str, argument: &str) -> String {
        match self.attempt(LimitOverrides::default(), name, argument).await {
            Ok(result) if !result.is_error() => result.for_llm,
            other => panic!("{name} {argument:?}: {other:?}"),
        }
    }

    /// Makes an attempt that must fail inside Python.
    async fn fail_in_python(&self, name: &str, argument: &str) {
        match self.attempt(LimitOverrides::default(), name, argument).await {
            Ok(result) if result.is_error() => {
                let missing = ["ModuleNotFoundError", "LookupError", "NameError"];
                let message = &result.for_llm;
                assert!(
                    !missing.iter().any(|error| message.contains(error)),
                    "the attempt did not run: {message}"
                );
            }
            other => panic!("{name} {argument:?}: {other:?}"),
        }
    }

    /// Makes an attempt that the host must stop.
    async fn be_stopped(&self, limits: LimitOverrides, name: &str, argument: &str, kind: ErrorKind) {
        let error = match self.attempt(limits, name, argument).await {
            Err(error) => error,
            Ok(result) => panic!("{name} {argument:?}: {}", result.for_llm),
        };
        assert_eq!(error.kind, kind, "{name} {argument:?}: {error}");
        assert!(!error.to_string().chars().any(char::is_control), "{error}");
    }
}

#[tokio::test]
#[ignore = "needs componentize-py: `just hostile-python`"]
async fn python_tool_without_grants_accesses_nothing_and_stays_within_its_limits() {
    let desk = Desk::with(None).await;
    let (tcp, udp) = (
        TcpListener::bind("127.0.0.1:0").unwrap(),
        UdpSocket::bind("127.0.0.1:0").unwrap(),
    );
    tcp.set_nonblocking(true).unwrap();
    udp.set_nonblocking(true).unwrap();
    let port = tcp.local_addr().unwrap().port().to_string();
    let url = format!("http://127.0.0.1:{port}/");
    let owned = tempfile::tempdir().unwrap();
    let file = owned.path().join("owned").to_str().unwrap().to_owned();
    assert_eq!(desk.succeed("environment", "").await, "{}");
    assert_eq!(desk.succeed("arguments", "").await, "[]");
    for (name, argument) in [
        ("read", "/etc/passwd"),
        ("read", "/proc/self/environ"),
        ("read", "../../etc/passwd"),
        ("entries", "/"),
        ("entries", "."),
        ("write", &file),
        ("write", "owned"),
        ("connect", &port),
        ("listen", ""),
        ("datagram", &udp.local_addr().unwrap().port().to_string()),
        ("lookup", "localhost"),
        ("fetch", &url),
        ("fetch", "file:///etc/passwd"),
        ("process", ""),
        ("shell", ""),
        ("fork", ""),
        ("kill", ""),
        ("thread", ""),
        ("bomb", ""),
        ("big_integer", ""),
        ("nothing", ""),
    ] {
        desk.fail_in_python(name, argument).await;
    }
    assert!(
        tcp.accept().is_err() && udp.recv(&mut [0]).is_err(),
        "nothing was received"
    );
    assert!(std::fs::read_dir(owned.path()).unwrap().next().is_none());

    let none = LimitOverrides::default;
    let wall = || none().with_wall_max(Duration::from_millis(500));
    desk.be_stopped(none().with_fuel_max(1_000_000_000), "spin", "", ErrorKind::Fuel)
        .await;
    desk.be_stopped(wall(), "spin", "", ErrorKind::Timeout).await;
    desk.be_stopped(wall(), "sleep", "", ErrorKind::Timeout).await;
    desk.be_stopped(none(), "recurse", "", ErrorKind::Stack).await;
    desk.be_stopped(none(), "long_result", "2", ErrorKind::ResultBytes)
        .await;
    desk.be_stopped(none(), "long_result", "100", ErrorKind::ResultBytes)
        .await;
    desk.be_stopped(none(), "flood", "", ErrorKind::HostCalls).await;
    for (name, argument) in [
        ("leave", "0"),
        ("leave", "3"),
        ("leave_at_once", "0"),
        ("abort", ""),
        ("raise_surrogate", ""),
    ] {
        desk.be_stopped(none(), name, argument, ErrorKind::Trap).await;
    }
    assert_eq!(desk.succeed("print_escapes", "").await, "printed");
    assert_eq!(desk.succeed("evaluate", "6 * 7").await, "42", "the host still works");
}

#[cfg(unix)]
#[tokio::test]
#[ignore = "needs componentize-py: `just hostile-python`"]
async fn python_tool_accesses_only_what_is_granted() {
    let (own, granted) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let data = granted.path();
    std::fs::write(data.join("a"), "inside").unwrap();
    std::os::unix::fs::symlink("/etc/passwd", data.join("link")).unwrap();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    tcp.set_nonblocking(true).unwrap();
    let port = tcp.local_addr().unwrap().port();
    let grants = own.path().join("grants.toml");
    let lines = format!(
        "version = 1\n[[grant]]\nplugin = \"hostile\"\nany-version = true\n\
         files = [{{ host = \"{}\", guest = \"/data\" }}]\nenv = [{{ name = \"A\", value = \"1\" }}]\n",
        data.display()
    );
    std::fs::write(&grants, lines).unwrap();
    let desk = Desk::with(Some(grants)).await;
    assert_eq!(desk.succeed("environment", "").await, "{'A': '1'}");
    assert_eq!(desk.succeed("read", "/data/a").await, "inside");
    for (name, argument) in [
        ("read", "/data/link"),
        ("read", "/data/../etc/passwd"),
        ("read", "/etc/passwd"),
        ("entries", "/data/.."),
        ("write", "/data/b"),
        ("write", "/data/a"),
        ("evaluate", "__import__('os').symlink('/etc', '/data/x')"),
        ("evaluate", "__import__('os').readlink('/data/link')"),
        ("evaluate", "__import__('os').utime('/data/a')"),
        ("evaluate", "__import__('os').unlink('/data/a')"),
        ("evaluate", "__import__('os').rename('/data/a', '/data/b')"),
        ("connect", &port.to_string()),
    ] {
        desk.fail_in_python(name, argument).await;
    }
    let mut names: Vec<_> = data
        .read_dir()
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["a", "link"]);
    assert_eq!(std::fs::read_to_string(data.join("a")).unwrap(), "inside");
    assert!(tcp.accept().is_err());
}
