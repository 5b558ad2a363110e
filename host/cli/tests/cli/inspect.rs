//! `toolwit inspect`.

use insta::assert_snapshot;
use serde_json::json;

use crate::guests::{COUNTER, FOREIGN, PLAIN};
use crate::support::Workspace;

#[test]
fn inspect_shows_tools_and_imports() {
    let workspace = Workspace::with("foreign", FOREIGN);
    insta::with_settings!({filters => vec![("[0-9a-f]{64}", "[digest]"), (r"\d+ bytes", "[size]")]}, {
        assert_snapshot!(workspace.run(&["inspect", "tools/foreign.wasm"]), @"
        exit: 0

        --- stdout
        foreign  tools/foreign.wasm
          sha256  [digest]
          size    [size]
          engine  plain
          status  broken: it imports `acme:cloud/api@1.0.0`, which the host does not offer
                  hint: compose it with a component that exports this import, or build it without

        Tools
          ask() → integer (0 to 4294967295)
              `ask() -> u32` of `foreign`.

        Imports
          acme:cloud/api@1.0.0  unknown to the host

        WIT
          package acme:cloud@1.0.0;

          interface api {
            ask: func() -> u32;
          }


          package root:component;

          world root {
            import acme:cloud/api@1.0.0;

            export ask: func() -> u32;
          }
        ");
    });
}

#[test]
fn an_import_of_sockets_is_listed_as_denied_under_every_grant() {
    let text = r#"(component (import "wasi:sockets/network@0.2.0" (instance (export "network" (type (sub resource)))))
        (import "wasi:io/error@0.2.0" (instance (export "error" (type (sub resource))))))"#;
    let shown = Workspace::with("net", text).run(&["inspect", "tools/net.wasm"]);
    assert!(
        shown
            .stdout
            .contains("wasi:sockets/network@0.2.0  linked; every use is denied, because no grant allows sockets"),
        "{shown}"
    );
    assert!(
        shown
            .stdout
            .contains("wasi:io/error@0.2.0  linked; a use is denied unless granted"),
        "{shown}"
    );
}

#[test]
fn json_document_of_inspect_extends_that_of_list() {
    let workspace = Workspace::with("counter", COUNTER).and("foreign", FOREIGN);
    let (code, counter) = workspace.json(&["inspect", "tools/counter.wasm", "--json"]);
    assert_eq!(code, Some(0));
    let (_, listed) = workspace.json(&["list", "--json"]);
    for (key, value) in listed["plugins"][0].as_object().unwrap() {
        assert_eq!(&counter[key], value, "{key}");
    }
    assert_eq!(counter["entities"][0]["name"], "counter");
    assert_eq!(counter["entities"][0]["methods"][0]["name"], "counter_next");
    assert_eq!((&counter["skipped"], &counter["requests"]), (&json!([]), &json!([])));
    let (_, foreign) = workspace.json(&["inspect", "tools/foreign.wasm", "--json"]);
    assert_eq!(
        foreign["imports"],
        json!([{ "name": "acme:cloud/api@1.0.0", "support": "unknown" }])
    );
    assert_eq!(foreign["status"], "broken");
}

// attack: A1
#[test]
fn invalid_component_is_refused_with_one_line() {
    let plain = wat::parse_str(PLAIN).unwrap();
    let workspace = Workspace::new()
        .file("empty.wasm", "")
        .file("junk.wasm", "junk")
        .file("cut.wasm", &plain[..plain.len() / 2])
        .file("module.wasm", wat::parse_str("(module)").unwrap());
    for file in [
        "empty.wasm",
        "junk.wasm",
        "cut.wasm",
        "module.wasm",
        "missing.wasm",
        ".",
    ] {
        let run = workspace.run(&["inspect", file]);
        assert_eq!(run.code, Some(3), "{run}");
        let errors = run.stderr.lines().filter(|line| !line.starts_with("hint: ")).count();
        assert_eq!((errors, run.stdout.as_str()), (1, ""), "{run}");
    }
}
