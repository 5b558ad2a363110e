//! With `--json`, standard output is exactly one JSON document, also on failure. A script prints one for each call.

use serde_json::json;

use crate::guests::{FOREIGN, PLAIN};
use crate::support::Workspace;

#[test]
fn every_failure_is_one_json_document() {
    let workspace = Workspace::with("plain", PLAIN)
        .and("foreign", FOREIGN)
        .file("junk.wasm", "junk");
    let cases = [
        (&["--json"][..], 2, "configuration"),
        (&["lst", "--json"], 2, "configuration"),
        (&["list", "--json", "--nonsense"], 2, "configuration"),
        (&["call", "--json"], 2, "configuration"),
        (&["call", "spin", "--json", "--timeout", "5"], 2, "configuration"),
        (&["list", "--json", "--plugins", "missing"], 2, "io"),
        (
            &["show", "nothing", "--json", "--plugins", "tools/plain.wasm"],
            2,
            "unknown-tool",
        ),
        (&["call", "add", "[]", "--json"], 2, "invalid-arguments"),
        (&["call", "add", "{}", "--json"], 2, "invalid-arguments"),
        (&["call", "foreign#ask", "--json"], 3, "unknown-import"),
        (&["inspect", "junk.wasm", "--json"], 3, "malformed-component"),
        (&["call", "crash", "--json"], 1, "trap"),
    ];
    for (arguments, code, kind) in cases {
        let (found, document) = workspace.json(arguments);
        assert_eq!(
            (found, &document["ok"]),
            (Some(code), &json!(false)),
            "{arguments:?}: {document}"
        );
        let error = document["error"].as_object().unwrap();
        assert_eq!(error["kind"], kind, "{arguments:?}: {document}");
        for key in ["phase", "plugin", "tool", "message", "suggestion"] {
            assert!(error.contains_key(key), "{key} in {document}");
        }
    }
}

#[test]
fn standard_error_is_empty_with_json() {
    let workspace = Workspace::with("plain", PLAIN);
    for arguments in [
        &["call", "crash", "--json"][..],
        &["list", "--json"],
        &["call", "add", "--json"],
    ] {
        let run = workspace.run(arguments);
        assert_eq!(run.stderr, "", "{run}");
    }
}
