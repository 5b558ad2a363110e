//! `toolwit list`.

use insta::assert_snapshot;
use serde_json::Value;

use crate::guests::{COUNTER, FOREIGN, PLAIN, PLAIN_WIT, RIVAL};
use crate::support::Workspace;

#[test]
fn plugins_are_listed_with_their_tools_and_broken_ones_with_the_reason() {
    let workspace = Workspace::with("plain", PLAIN)
        .file("tools/plain.wit", PLAIN_WIT)
        .and("rival", RIVAL)
        .and("foreign", FOREIGN)
        .file("tools/junk.wasm", "no WebAssembly at all")
        .file("tools/notes.txt", "no plugin");
    assert_snapshot!(workspace.run(&["list"]), @r#"
    exit: 0

    --- stdout
    foreign  tools/foreign.wasm
      broken: it imports `acme:cloud/api@1.0.0`, which the host does not offer
      hint: compose it with a component that exports this import, or build it without

    junk  tools/junk.wasm
      broken: it is not WebAssembly: the magic number `\0asm` is missing

    plain  tools/plain.wasm
      add    Add two numbers.
             plain#add
      halve  Halve an even number.
      greet  `greet() -> string` of `plain`.
      spin   `spin()` of `plain`.
      crash  `crash()` of `plain`.
      grow   `grow()` of `plain`.

    rival  tools/rival.wasm
      add    `add(a: u32) -> u32` of `rival`.
             rival#add
    "#);
}

#[test]
fn component_without_tools_is_listed_with_the_reason() {
    let exporting = |exports: &[&str]| {
        let mut text = "(component (core module $m (func (export \"f\"))) (core instance $i (instantiate $m))
            (func $f (canon lift (core func $i \"f\"))) (instance $other (export \"handle\" (func $f)))"
            .to_owned();
        for export in exports {
            text.push_str(&format!("(export \"{export}\" (instance $other))"));
        }
        text + ")"
    };
    let many: Vec<_> = (0..5).map(|at| format!("wasi:keyvalue/watcher{at}@0.2.0")).collect();
    let many: Vec<_> = many.iter().map(String::as_str).collect();
    let workspace = Workspace::with("empty", "(component)")
        .and(
            "events",
            &exporting(&["act:events/event-provider@0.1.0", "act:sessions/session-provider@0.2.0"]),
        )
        .and("future", &exporting(&["wasi:cli/run@0.9.0"]))
        .and("many", &exporting(&many))
        .and("server", &exporting(&["wasi:http/incoming-handler@0.2.6"]));
    assert_snapshot!(workspace.run(&["list"]), @"
    exit: 0

    --- stdout
    empty  tools/empty.wasm
      no tools: it exports no functions

    events  tools/events.wasm
      no tools: it exports `act:events/event-provider@0.1.0`: events of ACT are not supported
      no tools: it exports `act:sessions/session-provider@0.2.0`: sessions of ACT are not supported: each call has a fresh instance

    future  tools/future.wasm
      no tools: it exports `wasi:cli/run@0.9.0`: this host runs programs of WASI 0.2 and 0.3

    many  tools/many.wasm
      no tools: it exports `wasi:keyvalue/watcher0@0.2.0`: it is an interface of WASI, not a tool
      no tools: it exports `wasi:keyvalue/watcher1@0.2.0`: it is an interface of WASI, not a tool
      no tools: it exports `wasi:keyvalue/watcher2@0.2.0`: it is an interface of WASI, not a tool
      no tools: it has 2 more exports; `toolwit inspect FILE` lists all exports

    server  tools/server.wasm
      no tools: it exports `wasi:http/incoming-handler@0.2.6`: it is an HTTP server, and this host calls functions
    ");
    let (_, document) = workspace.json(&["list", "--json"]);
    let server = &document["plugins"][4];
    assert_eq!(
        server["skipped"][0]["export"], "wasi:http/incoming-handler@0.2.6",
        "{server}"
    );
}

#[test]
fn methods_of_entities_are_listed_with_an_arrow_and_found_through_their_tool() {
    let workspace = Workspace::with("counter", COUNTER);
    let listed = workspace.run(&["list"]).to_string();
    assert!(listed.contains("  → counter_next"), "{listed}");
    let found = workspace.run(&["search", "next"]).to_string();
    assert!(found.contains("counter_new → counter_next"), "{found}");
}

#[test]
fn tools_are_listed_by_use_with_the_outcome_of_their_last_call() {
    let two = r#"(component
        (core module $m (func (export "f") (result i32) i32.const 1) (func (export "g") (result i32) unreachable))
        (core instance $i (instantiate $m))
        (func (export "fine") (result u32) (canon lift (core func $i "f")))
        (func (export "crash") (result u32) (canon lift (core func $i "g"))))"#;
    let workspace = Workspace::with("two", two).file("tools/two.toml", "category = \"data\"\n");
    for tool in ["fine", "fine", "crash"] {
        workspace.run(&["call", tool]);
    }
    let listed = workspace.run(&["list", "--by", "uses"]);
    let lines: Vec<_> = listed.stdout.lines().collect();
    assert!(
        lines[0].starts_with("fine   2 calls") && lines[0].contains("works"),
        "{listed}"
    );
    assert!(lines[1].starts_with("crash") && lines[1].contains("failed"), "{listed}");
    let (_, document) = workspace.json(&["list", "--by", "health", "--category", "data", "--json"]);
    assert_eq!(document["tools"][0]["name"], "crash", "{document}");
    assert_eq!(document["tools"][1]["health"]["uses"], 2, "{document}");
    assert_eq!(workspace.run(&["list", "--category", "text"]).stdout, "");
    assert_eq!(workspace.run(&["list", "--by", "beauty"]).code, Some(2));
}

#[test]
fn empty_directory_gives_a_hint() {
    assert_snapshot!(Workspace::new().run(&["list"]), @"
    exit: 0

    --- stderr
    hint: the plugin directory has no `.wasm` file; `toolwit build DIR` builds one from source
    ");
}

#[test]
fn empty_directory_is_reported_by_each_command_in_two_lines() {
    let workspace = Workspace::new().file("empty/notes.txt", "no plugin");
    let commands: [&[&str]; 5] = [
        &["list"],
        &["call", "add"],
        &["show", "add"],
        &["add", "empty"],
        &["search", "add numbers"],
    ];
    for command in commands {
        let run = workspace.run(command);
        let is_clear = ["has no `.wasm` file", "there is no component in empty"];
        assert!(
            is_clear.iter().any(|why| run.stderr.contains(why)),
            "{command:?}: {run}"
        );
        assert!(run.stderr.lines().count() <= 2, "{command:?}: {run}");
    }
}

#[test]
fn thousand_tools_of_one_name_are_one_short_error() {
    let rival = wat::parse_str(RIVAL).unwrap();
    let workspace = (0..1_000).fold(Workspace::new(), |workspace, number| {
        workspace.file(&format!("tools/rival{number:03}.wasm"), &rival)
    });
    assert_snapshot!(workspace.run(&["call", "add", "a=1"]), @"
    exit: 2

    --- stderr
    error: 1000 tools have the name `add`
    hint: call one by its id: `rival000#add`, `rival001#add`, `rival002#add`, `rival003#add`, `rival004#add`, `rival005#add`, `rival006#add`, `rival007#add`, and 992 more
    ");
    let one = workspace.run(&["call", "rival999#add", "a=7"]);
    assert_eq!(one.stdout, "7\n", "{one}");
}

#[test]
fn json_document_describes_ready_and_broken_plugins() {
    let workspace = Workspace::with("counter", COUNTER).and("foreign", FOREIGN);
    let (code, document) = workspace.json(&["list", "--json"]);
    assert_eq!(code, Some(0));
    let plugins = document["plugins"].as_array().unwrap();
    for plugin in plugins {
        let keys: Vec<_> = plugin.as_object().unwrap().keys().collect();
        assert_eq!(
            keys,
            [
                "name", "path", "digest", "version", "tier", "status", "reason", "code", "tools", "methods", "skipped"
            ]
        );
    }
    let [counter, foreign] = plugins.as_slice() else {
        panic!("two plugins: {document}")
    };
    assert_eq!(
        (&counter["status"], &counter["reason"]),
        (&"ready".into(), &Value::Null)
    );
    assert_eq!(counter["digest"].as_str().unwrap().len(), 64);
    let tool = &counter["tools"][0];
    let keys: Vec<_> = tool.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["id", "name", "description", "input_schema", "output_schema"]);
    assert_eq!(tool["id"], "counter#[constructor]counter");
    assert_eq!(counter["methods"][0]["name"], "counter_next");
    let (_, found) = workspace.json(&["search", "next", "--json"]);
    assert_eq!(found["hits"][0]["tool"], "counter#[constructor]counter");
    assert_eq!(found["hits"][0]["leads_to"], "counter#[method]counter.next");
    assert_eq!(
        (&foreign["status"], &foreign["tier"]),
        (&"broken".into(), &"minimal".into())
    );
    assert!(foreign["reason"].as_str().unwrap().contains("acme:cloud/api@1.0.0"));
}

#[test]
fn plugins_are_found_by_option_then_environment_then_default_directory() {
    let workspace = Workspace::with("plain", PLAIN)
        .file("others/counter.wasm", wat::parse_str(COUNTER).unwrap())
        .file("more/rival.wasm", wat::parse_str(RIVAL).unwrap());
    let names = |workspace: &Workspace, arguments: &[&str]| {
        let (_, document) = workspace.json(arguments);
        let names: Vec<_> = document["plugins"]
            .as_array()
            .unwrap()
            .iter()
            .map(|plugin| plugin["name"].clone())
            .collect();
        Value::from(names)
    };
    assert_eq!(names(&workspace, &["list", "--json"]), serde_json::json!(["plain"]));
    let workspace = workspace.variable("TOOLWIT_PLUGINS", "others:more");
    assert_eq!(
        names(&workspace, &["list", "--json"]),
        serde_json::json!(["counter", "rival"])
    );
    let flags = ["list", "--json", "--plugins", "tools", "--plugins", "more/rival.wasm"];
    assert_eq!(names(&workspace, &flags), serde_json::json!(["plain", "rival"]));
}

#[test]
fn wit_that_does_not_describe_its_component_is_reported() {
    let other_version = PLAIN_WIT.replace(
        "export add: func(a: u32, b: u32) -> u32;",
        "export plus: func() -> u32;",
    );
    let cases = [
        ("garbage {", "it is not valid WIT: "),
        (
            other_version.as_str(),
            "it does not export the function `add` from a world",
        ),
        (
            "package a:b;\nworld w { export f: func(); }\n",
            "it does not export the function `add` from a world",
        ),
    ];
    for (wit, problem) in cases {
        let workspace = Workspace::with("plain", PLAIN).file("tools/plain.wit", wit);
        let warning = format!("`plain.wit` is not used: {problem}");
        let (_, listed) = workspace.json(&["list", "--json"]);
        assert!(
            listed["plugins"][0]["wit_problem"]
                .as_str()
                .unwrap()
                .starts_with(problem),
            "{listed}"
        );
        let file = ["inspect", "tools/plain.wasm"];
        let add = ["add", "tools/plain.wasm", "--plugins", "other"];
        for (arguments, code) in [(&["list"][..], 0), (&file, 0), (&add, 0), (&["doctor"], 0)] {
            let run = workspace.run(arguments);
            assert!(
                run.code == Some(code) && (run.stdout + &run.stderr).contains(&warning),
                "{arguments:?}"
            );
        }
        let linted = workspace.run(&["lint", "tools/plain.wasm"]);
        assert!(
            linted.code == Some(1) && linted.stdout.contains("plain.wit"),
            "{linted}"
        );
    }
    let fitting = Workspace::with("plain", PLAIN).file("tools/plain.wit", PLAIN_WIT);
    assert!(fitting.json(&["list", "--json"]).1["plugins"][0]["wit_problem"].is_null());
}

#[test]
fn lint_reports_what_a_model_cannot_understand() {
    let wit = "
        package demo:plain;
        interface forgotten { call: func(); }
        world plain {
            /// Add two numbers: `a` and another one.
            export add: func(a: u32, b: u32) -> u32;
            /// Halve an even number.
            export halve: func(number: u32) -> result<u32, u32>;
            export greet: func() -> string;
            /// Never end.
            export spin: func();
            /// Trap.
            export crash: func();
            /// Use memory.
            export grow: func();
        }";
    let workspace = Workspace::with("plain", PLAIN).file("tools/plain.wit", wit);
    let (code, document) = workspace.json(&["lint", "tools/plain.wasm", "--json"]);
    let findings = document["findings"].as_array().unwrap().iter();
    let findings: Vec<_> = findings
        .map(|finding| {
            format!(
                "{} {}",
                finding["rule"].as_str().unwrap(),
                finding["subject"].as_str().unwrap()
            )
        })
        .collect();
    let expected = [
        "missing-docs greet",
        "unclear-parameter add",
        "unused-wit demo:plain/forgotten",
    ];
    assert_eq!(
        (code, findings),
        (Some(1), expected.map(str::to_owned).to_vec()),
        "{document}"
    );
    let quiet = workspace.file(
        "tools/plain.wit",
        wit.replace("interface forgotten { call: func(); }", "")
            .replace("`a` and another one", "`a` and `b`")
            .replace("export greet", "/// Greet.\n export greet")
            // A dependency need not be used completely.
            + "package other:tools { interface unused { call: func(); } world imports {} }",
    );
    let run = quiet.run(&["lint", "tools/plain.wasm"]);
    assert_eq!(run.code, Some(0), "{run}");
}
