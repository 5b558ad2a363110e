//! Files of other hosts with the permissions that a component requests, as `toolwit grant` shows them.

use crate::grant::workspace;
use crate::guests::IRONCLAW;

#[test]
fn a_policy_of_another_host_is_a_list_of_requests() {
    let policy = "version: \"1.0\"\npermissions:\n  network:\n    allow:\n      - host: api.example.com\n      - cidr: 10.0.0.0/8\n  \
                  storage:\n    allow:\n      - uri: fs://work/**\n        access: [read]\n";
    let workspace = workspace().file("tools/settings.policy.yaml", policy);
    let shown = || workspace.run(&["grant", "settings"]).stdout;
    let before = shown();
    for line in [
        "requests: read /work, which is not granted\n",
        "hint: toolwit grant settings --read DIR::/work\n",
        "requests: GET https://api.example.com/, which is not granted\n",
        "hint: toolwit grant settings --http api.example.com\n",
        "requests: network 10.0.0.0/8, which a grant cannot express\n",
        "has: nothing\n",
    ] {
        assert!(before.contains(line), "{line}{before}");
    }
    let denied = workspace.run(&["explain", "settings", "https://api.example.com/"]);
    assert_eq!(denied.code, Some(4), "a request is not a grant: {denied}");
    workspace.run(&["grant", "settings", "--http", "api.example.com"]);
    assert!(
        shown().contains("requests: GET https://api.example.com/, which is granted\n"),
        "{}",
        shown()
    );
    let workspace = workspace.file("tools/settings.policy.yaml", "version: 9\n");
    let broken = workspace.run(&["grant", "settings"]);
    assert!(broken.stdout.contains("has: "), "the grants are shown: {broken}");
    let warning = "warning: settings.policy.yaml cannot be used: it has the version 9";
    assert!(broken.stderr.contains(warning), "{broken}");
}

#[test]
fn requests_above_the_limit_are_reported() {
    let variables: String = (0..259).map(|number| format!("      - key: V{number}\n")).collect();
    let policy = format!("version: \"1.0\"\npermissions:\n  environment:\n    allow:\n{variables}");
    let workspace = workspace().file("tools/settings.policy.yaml", &policy);
    let shown = workspace.run(&["grant", "settings"]).stdout;
    assert_eq!(shown.matches("requests: env ").count(), 256, "{shown}");
    assert!(shown.contains("requests: 3 more, which are not listed\n"), "{shown}");
    let (_, document) = workspace.json(&["grant", "settings", "--json"]);
    assert_eq!(document["requests_omitted"], 3, "{document}");
}

#[test]
fn a_capability_file_of_ironclaw_is_a_list_of_requests() {
    let file = r#"{"capabilities": {"http": {
        "allowlist": [{"host": "api.example.com", "path_prefix": "/v1", "methods": ["GET", "POST"]}],
        "credentials": {"key": {"secret_name": "key", "location": {"type": "bearer"}, "host_patterns": ["api.example.com"]}}
    }, "tool_invoke": {"aliases": {"find": "search"}}}}"#;
    let workspace = workspace()
        .and("near", IRONCLAW)
        .file("tools/near.capabilities.json", file);
    let shown = || workspace.run(&["grant", "near"]).stdout;
    for line in [
        "requests: GET,POST https://api.example.com/v1, which is not granted\n",
        "hint: toolwit grant near --http 'GET,POST https://api.example.com/v1'\n",
        "requests: secret key, which is not granted\n",
        "hint: toolwit grant near --secret key --to api.example.com --as bearer\n",
        "requests: tool search, named find, which a grant cannot express\n",
        "has: nothing\n",
    ] {
        assert!(shown().contains(line), "{line}{}", shown());
    }
    let denied = workspace.run(&["explain", "near", "https://api.example.com/v1"]);
    assert_eq!(denied.code, Some(4), "a request does not grant anything: {denied}");
    workspace.run(&["grant", "near", "--http", "https://api.example.com/v1"]);
    assert!(
        shown().contains("GET,POST https://api.example.com/v1, which is not granted"),
        "{}",
        shown()
    );
    workspace.run(&["grant", "near", "--http", "GET,POST https://api.example.com/v1"]);
    assert!(
        shown().contains("GET,POST https://api.example.com/v1, which is granted"),
        "{}",
        shown()
    );
    let broken = "{\"capabilities\": 7}";
    let workspace = workspace
        .file("tools/near.capabilities.json", broken)
        .file("tools/settings.capabilities.json", broken);
    let warned = workspace.run(&["grant", "near"]);
    assert!(
        warned
            .stderr
            .contains("warning: near.capabilities.json is not a capability file"),
        "{warned}"
    );
    let other = workspace.run(&["grant", "settings"]);
    assert_eq!(other.stderr, "", "the file of a component of no contract is not read");
}
