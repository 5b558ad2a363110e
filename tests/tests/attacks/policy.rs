//! Compares `explain` with enforcement: its decision must match the outcome of a guest's attempt.

use std::fs;
use std::sync::Arc;

use serde_json::{Value, json};
use toolwit::grants::{AccessMode, AccessRequest, Explanation, RequestTarget};
use toolwit::tool::{Artifact, Blackboard, MemoryBlackboard};
use toolwit::{ErrorKind, ToolResult};

use crate::host::{Setup, TestHost};
use crate::reach::{BURN, conversation, relay};

/// Number of random grants files. A case takes about 60 ms in a debug build.
const CASES: u64 = 40;

/// Number of accesses that are attempted with each grants file.
const ACCESSES_PER_CASE: u64 = 8;

/// The first 16 random bytes of a guest whose randomness is frozen with the seed 1, in hex.
const SEED_1_BYTES: &str = "b444ef65ca887541981f656c850012e8";

/// A deterministic generator of pseudo-random choices.
struct Choices(u64);

impl Choices {
    /// Returns a number below `end`.
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    fn pick<'a>(&mut self, options: &[&'a str]) -> &'a str {
        options[usize::try_from(self.below(options.len() as u64)).unwrap()]
    }
}

/// Returns the lines of a random grant. `case` makes each grant distinct, so that a grant for one call is not used up already.
fn random_grant(choices: &mut Choices, case: u64) -> String {
    let mut lines = vec![format!(
        "scope = \"{}\"\nissued = {case}",
        choices.pick(&["always", "always", "session", "once"])
    )];
    let mut directories = Vec::new();
    // Among them a directory inside another, at the same path for the guest, and one that does not exist.
    for (hosts, guest) in [
        (&["data"][..], "/data"),
        (&["deep", "data/in", "missing"], "/data/in"),
        (&["out", "data/in", "missing"], "/out"),
    ] {
        let host = choices.pick(hosts);
        let access = choices.pick(&["", "read", "read-write"]);
        if !access.is_empty() {
            directories.push(format!(
                "{{ host = \"{{dir}}/{host}\", guest = \"{guest}\", access = \"{access}\" }}"
            ));
        }
    }
    lines.push(format!("files = [{}]", directories.join(", ")));
    for options in [
        &[
            "",
            "env = [{ name = \"A\", value = \"1\" }]",
            "env = [{ name = \"TOOLWIT_UNSET\" }, { name = \"PATH\" }]",
        ][..],
        &[
            "",
            "config = { colour = \"red\" }",
            "config = { colour = \"red\", size = \"7\" }",
        ],
        &["", "keyvalue = { quota = \"1KiB\" }"],
        &[
            "",
            "tools = [\"native#shout\"]",
            &format!("tools = [\"native#shout\", \"{BURN}\"]"),
        ],
        &["", "context = [\"tenant\"]", "context = [\"token\", \"tenant\"]"],
        &["", "blackboard = \"read\"", "blackboard = \"read-write\""],
        &["", "clock = { frozen = 1 }"],
        &["", "random = { frozen = 1 }"],
        &["", "http = [{ host = \"127.0.0.1\", scheme = \"http\", port = 1 }]"],
        &[
            "",
            "",
            "secrets = [{ name = \"key\", expose = true, variable = \"KEY\" }]",
            "secrets = [{ name = \"gone\", expose = true, variable = \"KEY\" }]",
        ],
    ] {
        lines.push(choices.pick(options).to_owned());
    }
    lines.join("\n")
}

/// An access, and the tool call with which a guest attempts it.
struct Attempt {
    plugin: &'static str,
    request: AccessRequest<'static>,
    tool: &'static str,
    arguments: Value,
    /// Returns whether the result shows that the guest got access.
    has_access: Box<dyn Fn(&ToolResult) -> bool>,
}

fn attempt(
    plugin: &'static str,
    request: AccessRequest<'static>,
    tool: &'static str,
    arguments: Value,
    has_access: impl Fn(&Value) -> bool + 'static,
) -> Attempt {
    let has_access = move |result: &ToolResult| !result.is_error() && has_access(result.value.as_ref().unwrap());
    Attempt {
        plugin,
        request,
        tool,
        arguments,
        has_access: Box::new(has_access),
    }
}

fn leaked(text: String) -> &'static str {
    text.leak()
}

/// Returns whether a list of pairs contains a name.
fn has_name(pairs: &Value, name: &str) -> bool {
    pairs.as_array().unwrap().iter().any(|pair| pair[0] == name)
}

fn random_attempt(choices: &mut Choices) -> Attempt {
    let directory = choices.pick(&["/data", "/data/in", "/out", "/other"]);
    match choices.below(13) {
        0 => {
            let path = leaked(format!("{directory}/a"));
            let request = AccessRequest::File(path, AccessMode::Read);
            attempt("probe", request, "read", json!({"path": path}), |_| true)
        }
        1 => {
            let path = leaked(format!("{directory}/written"));
            let request = AccessRequest::File(path, AccessMode::ReadWrite);
            attempt("probe", request, "write", json!({"path": path, "text": "x"}), |_| true)
        }
        2 => {
            let name = leaked(choices.pick(&["A", "PATH", "TOOLWIT_UNSET", "HOME"]).to_owned());
            let is_visible = move |pairs: &Value| has_name(pairs, name);
            attempt(
                "probe",
                AccessRequest::Variable(name),
                "environment",
                json!({}),
                is_visible,
            )
        }
        3 => {
            let key = leaked(choices.pick(&["colour", "size", "shape"]).to_owned());
            attempt(
                "keeper",
                AccessRequest::Setting(key),
                "settings",
                json!({}),
                move |pairs| has_name(pairs, key),
            )
        }
        4 => {
            let arguments = json!({"bucket": "b", "key": "k", "value": "v"});
            attempt("keeper", AccessRequest::KeyValue, "remember", arguments, |_| true)
        }
        5 => {
            let arguments = relay(BURN, &json!({"rounds": 1}), 1);
            attempt("courier", AccessRequest::Tool(BURN), "relay", arguments, |_| true)
        }
        6 => {
            let key = leaked(choices.pick(&["tenant", "token"]).to_owned());
            let arguments = json!({"key": key});
            attempt(
                "courier",
                AccessRequest::ContextKey(key),
                "read_context",
                arguments,
                |value| !value.is_null(),
            )
        }
        7 => {
            let request = AccessRequest::Blackboard(AccessMode::Read);
            attempt("courier", request, "names", json!({}), |names| {
                !names.as_array().unwrap().is_empty()
            })
        }
        8 => {
            let request = AccessRequest::Blackboard(AccessMode::ReadWrite);
            let arguments = json!({"name": "buyer", "kind": "customer", "value": "1"});
            Attempt {
                has_access: Box::new(|result| !result.is_error()),
                ..attempt("courier", request, "put", arguments, |_| true)
            }
        }
        9 => attempt("probe", AccessRequest::Clock, "time", json!({}), |_| true),
        11 => attempt("probe", AccessRequest::Random, "random", json!({}), |_| true),
        10 => attempt(
            "probe",
            AccessRequest::Secret("key"),
            "environment",
            json!({}),
            |pairs| has_name(pairs, "KEY"),
        ),
        _ => {
            let port = choices.pick(&["1", "2"]);
            let method = leaked(choices.pick(&["GET", "POST"]).to_owned());
            let authority = format!("127.0.0.1:{port}");
            let target = RequestTarget::new(method, "http", &authority, "/").unwrap();
            let arguments = json!({
                "method": method, "scheme": "http", "authority": authority, "path": "/", "headers": [], "body": ""
            });
            // No server listens on these ports: an allowed request fails in the guest, a denied one in the host.
            Attempt {
                has_access: Box::new(|_| true),
                ..attempt(
                    "probe",
                    AccessRequest::Http(Box::leak(Box::new(target))),
                    "fetch",
                    arguments,
                    |_| true,
                )
            }
        }
    }
}

async fn explain(host: &TestHost, attempt: &Attempt) -> Explanation {
    let registry = host.host.registry();
    let plugin = registry
        .plugins()
        .find(|plugin| plugin.name() == attempt.plugin)
        .unwrap();
    plugin.explain(&attempt.request).await.unwrap()
}

/// Attempts an access in a new conversation. Returns whether it was granted.
async fn is_granted(host: &TestHost, attempt: &Attempt, explanation: &Explanation) -> bool {
    let tools = host.another_conversation();
    match host.call_in(&tools, attempt.tool, attempt.arguments.clone()).await {
        Ok(result) => {
            let value = result.value.clone().unwrap_or_default();
            match (&attempt.request, &explanation.rule) {
                (AccessRequest::Clock, rule) => assert_eq!(value[0] == 1, rule.is_some(), "{explanation}: {value}"),
                (AccessRequest::Random, Some(_)) => assert_eq!(value, SEED_1_BYTES, "{explanation}"),
                (AccessRequest::Random, None) => {
                    let again = host.call_in(&tools, attempt.tool, json!({})).await.unwrap();
                    assert_ne!(again.value, result.value, "{explanation}");
                }
                _ => {}
            }
            (attempt.has_access)(&result)
        }
        Err(error) => {
            let is_refusal = matches!(error.kind, ErrorKind::Denied | ErrorKind::MissingKey);
            assert!(is_refusal, "{:?}: {error:?}", attempt.request);
            false
        }
    }
}

#[tokio::test]
async fn explain_matches_enforcement() {
    let directory = tempfile::tempdir().unwrap();
    for host in ["data", "deep", "out"] {
        fs::create_dir_all(directory.path().join(host).join("in")).unwrap();
        fs::write(directory.path().join(host).join("a"), "inside").unwrap();
        fs::write(directory.path().join(host).join("in/a"), "inside").unwrap();
    }
    let setup = Setup::new()
        .grant("")
        .directory(directory)
        .secret("key", "correct horse battery");
    let mut host = conversation(setup).await;
    let board: Arc<dyn Blackboard> = Arc::new(MemoryBlackboard::new());
    board
        .put_named("seller", Artifact::new("customer", json!("c-0")))
        .unwrap();
    host.context = host.context.clone().with_blackboard(board);
    let (mut choices, mut allowed, mut denied) = (Choices(7), 0, 0);
    for case in 0..CASES {
        let grant = random_grant(&mut choices, case);
        host.regrant(&grant);
        for _ in 0..ACCESSES_PER_CASE {
            let attempt = random_attempt(&mut choices);
            let explanation = explain(&host, &attempt).await;
            let has_access = is_granted(&host, &attempt, &explanation).await;
            assert_eq!(
                explanation.decision.is_allowed(),
                has_access,
                "{:?} under\n{grant}\nexplained as: {explanation}",
                attempt.request
            );
            if has_access { allowed += 1 } else { denied += 1 }
        }
    }
    assert!(
        allowed > 30 && denied > 30,
        "too few cases: {allowed} allowed and {denied} denied accesses"
    );
}
