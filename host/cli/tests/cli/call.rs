//! `toolwit call`.

use insta::assert_snapshot;
use serde_json::json;

use crate::guests::{COUNTER, FOREIGN, PLAIN};
use crate::support::{Workspace, accept};

#[test]
fn result_is_printed_to_standard_output() {
    let workspace = Workspace::with("plain", PLAIN).and("counter", COUNTER);
    assert_snapshot!(workspace.run(&["call", "add", r#"{"a": 1, "b": 2}"#]), @"
    exit: 0

    --- stdout
    3
    ");
    assert_snapshot!(workspace.run(&["call", "counter_new", r#"{"start": 5}"#]), @r#"
    exit: 0

    --- stdout
    {
      "type": "counter",
      "id": "1",
      "available_tools": [
        "counter_next",
        "counter_break"
      ]
    }
    "#);
}

// attack: C21
#[test]
fn control_characters_of_a_guest_do_not_reach_the_terminal() {
    let workspace = Workspace::with("plain", PLAIN).variable("CLICOLOR_FORCE", "1");
    assert_snapshot!(workspace.run(&["call", "greet"]), @"
    exit: 0

    --- stdout
    [31mhi there
    ");
    let run = workspace.run(&["call", "greet", "--json"]);
    assert!(!run.stdout.trim_end().contains(char::is_control), "{run}");
}

#[test]
fn arguments_come_from_the_command_line_a_file_or_standard_input() {
    let arguments = r#"{"a": 20, "b": 22}"#;
    let workspace = Workspace::with("plain", PLAIN).file("arguments.json", arguments);
    let direct = workspace.run(&["call", "add", arguments]);
    let file = workspace.run(&["call", "add", "@arguments.json"]);
    let input = workspace.run_with_input(&["call", "add", "-"], arguments);
    let id = workspace.run(&["call", "plain#add", arguments]);
    for run in [direct, file, input, id] {
        assert_eq!((run.code, run.stdout.as_str()), (Some(0), "42\n"), "{run}");
    }
    assert_eq!(
        workspace.run(&["call", "greet"]).code,
        Some(0),
        "no arguments are an empty object"
    );
}

#[test]
fn arguments_must_be_an_object() {
    let workspace = Workspace::with("plain", PLAIN).file("cut.json", "{\"a\": ");
    for arguments in [
        "",
        "{a: 1}",
        "[1]",
        "null",
        r#"{"a": 1, "a": 2, "b": 3}"#,
        "@cut.json",
        "@missing.json",
        "-",
    ] {
        let run = workspace.run(&["call", "add", arguments]);
        assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{arguments}: {run}");
    }
    assert_snapshot!(workspace.run(&["call", "add", "{a: 1}"]), @r#"
    exit: 2

    --- stderr
    error: the arguments are not valid JSON: key must be a string at line 1 column 2
    hint: pass words such as `name=John`, JSON that is quoted for the shell, or a file as @FILE
    "#);
    assert_snapshot!(workspace.run(&["call", "add", r#"{"a": 1, "b": 3.5}"#]), @"
    exit: 2

    --- stderr
    error: plain#add: /b: expected an integer from 0 to 4294967295, without fraction or exponent, found 3.5
    ");
}

#[test]
fn json_document_has_result_and_resource_usage() {
    let workspace = Workspace::with("plain", PLAIN);
    let (code, document) = workspace.json(&["call", "halve", r#"{"number": 4}"#, "--json"]);
    assert_eq!(code, Some(0));
    assert_eq!(
        (&document["ok"], &document["result"], &document["artifacts"]),
        (&json!(true), &json!(2), &json!([]))
    );
    for cost in ["fuel", "wall_ms", "memory_bytes"] {
        assert!(document["usage"][cost].as_f64().unwrap() > 0.0, "{cost} in {document}");
    }
}

#[test]
fn error_of_a_tool_is_printed_with_its_value() {
    let workspace = Workspace::with("plain", PLAIN);
    assert_snapshot!(workspace.run(&["call", "halve", r#"{"number": 3}"#]), @"
    exit: 1

    --- stderr
    error: plain#halve: 3
    ");
    let (code, document) = workspace.json(&["call", "halve", r#"{"number": 3}"#, "--json"]);
    assert_eq!((code, &document["ok"]), (Some(1), &json!(false)));
    let error = &document["error"];
    assert_eq!((&error["kind"], &error["phase"]), (&json!("tool"), &json!("execute")));
    assert_eq!(
        (&error["plugin"], &error["tool"]),
        (&json!("plain"), &json!("plain#halve"))
    );
    assert_eq!((&error["message"], &error["details"]), (&json!("3"), &json!(3)));
}

// attack: B1, attack: B2
#[test]
fn limits_of_the_operator_stop_a_call() {
    let workspace = Workspace::with("plain", PLAIN);
    assert_snapshot!(workspace.run(&["call", "spin", "--fuel", "1000000"]), @"
    exit: 4

    --- stderr
    error: plain#spin: the call used all its fuel of 1000000
    limit: fuel_max (`--fuel`) is 1,000,000, used or requested: 1,000,000
    hint: request less in one call; an operator can raise `fuel_max`
    ");
    let cases = [
        (&["call", "spin", "--json", "--timeout", "200ms"][..], "timeout", 4),
        (&["call", "grow", "--json", "--memory", "1MiB"], "memory", 4),
        (&["call", "greet", "--json", "--result-bytes", "4"], "result-bytes", 4),
        (&["call", "crash", "--json"], "trap", 1),
        (&["call", "add", "--json", "--fuel", "0"], "configuration", 2),
    ];
    for (arguments, kind, code) in cases {
        let (found, document) = workspace.json(arguments);
        assert_eq!(
            (found, &document["error"]["kind"]),
            (Some(code), &json!(kind)),
            "{document}"
        );
    }
}

#[test]
fn missing_tool_is_reported_with_the_cause() {
    let workspace = Workspace::with("plain", PLAIN)
        .and("counter", COUNTER)
        .and("foreign", FOREIGN);
    assert_snapshot!(workspace.run(&["call", "foreign#ask"]), @"
    exit: 3

    --- stderr
    error: plugin `foreign`: it imports `acme:cloud/api@1.0.0`, which the host does not offer
    hint: compose it with a component that exports this import, or build it without
    ");
    assert_snapshot!(workspace.run(&["call", "halv"]), @"
    exit: 2

    --- stderr
    error: there is no tool `halv`
    hint: did you mean `halve`? Tools are missing because these plugins are broken or undiscovered: `foreign`
    ");
    assert_snapshot!(workspace.run(&["call", "unheard_of"]), @"
    exit: 2

    --- stderr
    error: there is no tool `unheard_of`
    hint: `toolwit list` lists the tools. Tools are missing because these plugins are broken or undiscovered: `foreign`
    ");
    assert_snapshot!(workspace.run(&["call", "counter_next"]), @"
    exit: 2

    --- stderr
    error: counter#[method]counter.next: it is a method of `counter`, and this conversation has no `counter` yet
    hint: call a tool that returns a `counter` first; `--script FILE` makes several calls in one conversation
    ");
    let alone = workspace.run(&["call", "ask", "--plugins", "tools/foreign.wasm"]);
    assert_eq!(alone.code, Some(3), "{alone}");
}

#[test]
fn resource_usage_is_printed_if_verbose() {
    let workspace = Workspace::with("plain", PLAIN);
    let run = workspace.run(&["call", "greet", "-v"]);
    assert!(
        run.stderr.contains(" fuel, ") && run.stderr.contains("64 KiB of memory"),
        "{run}"
    );
}

#[test]
fn case_of_an_error_is_explained_by_its_wit() {
    let wat = r#"(component
        (type $problem' (enum "missing" "locked"))
        (import "problem" (type $problem (eq $problem')))
        (core module $m
            (memory (export "memory") 1)
            (data (i32.const 16) "\01\01")
            (func (export "open") (result i32) (i32.const 16)))
        (core instance $i (instantiate $m))
        (alias core export $i "memory" (core memory $memory))
        (func (export "open") (result (result (error $problem)))
            (canon lift (core func $i "open") (memory $memory))))"#;
    let wit = "package demo:door;\nworld door {\n    enum problem {\n        missing,\n        /// Another visitor holds the key.\n        locked,\n    }\n    export open: func() -> result<_, problem>;\n}\n";
    let workspace = Workspace::with("door", wat).file("tools/door.wit", wit);
    assert_snapshot!(workspace.run(&["call", "open"]), @"
    exit: 1

    --- stderr
    error: door#open: locked: Another visitor holds the key.
    ");
    let (_, document) = workspace.json(&["call", "open", "--json"]);
    assert_eq!(document["error"]["details"], "locked", "the value is unchanged");
}

#[test]
fn arguments_are_words_or_json() {
    let workspace = Workspace::with("plain", PLAIN);
    assert_eq!(workspace.run(&["call", "add", "a=1", "b=2"]).stdout, "3\n");
    assert_eq!(workspace.run(&["call", "add", r#"{"a": 1, "b": 2}"#]).stdout, "3\n");
    assert_snapshot!(workspace.run(&["call", "add", "a=1", "b"]), @"
    exit: 2

    --- stderr
    error: `b` is not of the form NAME=VALUE
    hint: pass words such as `name=John`, or one JSON object
    ");
    let wrong = workspace.run(&["call", "add", "a=one", "b=2"]);
    assert!(wrong.code == Some(2) && wrong.stderr.contains("one"), "{wrong}");
}

// accept: 119
#[test]
fn long_running_tool_is_declared_by_an_option_or_the_project() {
    let call = ["call", "spin", "--json", "--wall", "1ms", "--fuel", "2000000000"];
    let with = |tool: &'static str| [&call[..], &["--long-running", tool]].concat();
    let workspace = Workspace::with("plain", PLAIN);
    let kind = |workspace: &Workspace, arguments: &[&str]| workspace.json(arguments).1["error"]["kind"].clone();
    assert_eq!(kind(&workspace, &call), "timeout");
    assert_eq!(kind(&workspace, &with("plain#add")), "timeout", "it is another tool");
    assert_eq!(kind(&workspace, &with("plain#spin")), "fuel");
    let project = workspace.file("toolwit.toml", "[tools]\nlong_running = [\"plain#spin\"]\n");
    assert_eq!(kind(&project, &call), "timeout", "it is a proposal");
    accept(&project);
    assert_eq!(kind(&project, &call), "fuel");
}

#[test]
fn unknown_long_running_tool_is_reported_with_similar_ones() {
    let workspace = Workspace::with("plain", PLAIN).file("tools/broken.wasm", "junk");
    let warning = |tool: &str| {
        workspace
            .run(&["call", "add", "a=1", "b=2", "--long-running", tool])
            .stderr
    };
    let mistyped = warning("plain#haalve");
    assert!(
        mistyped.contains("no plugin has the tool `plain#haalve`") && mistyped.contains("`plain#halve`"),
        "{mistyped}"
    );
    assert!(
        warning("halve").contains("did you mean `plain#halve`?"),
        "a name is not an id"
    );
    assert!(warning("gone#add").contains("no plugin has the tool `gone#add`"));
    for known in ["plain#halve", "broken#any"] {
        assert!(!warning(known).contains("no plugin has"), "{known}");
    }
}
