//! `toolwit run`.

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::guests::{COUNTER, PLAIN};
use crate::support::Workspace;

/// Asks for a counter, counts, and answers with what came back.
const COUNTING: &str = r#"
[[turn]]
expect.tools = "counter_new"
expect.no_tools = "counter_next"
say = "I need a counter."
call = [{ tool = "counter_new", arguments = { start = 41 } }]

[[turn]]
expect.tools = "counter_next"
call = [{ tool = "counter_next", arguments = { counter_id = "{{result.id}}" } }]

[[turn]]
answer = "It is {{result}}."
"#;

const COUNT: [&str; 4] = ["run", "Count.", "--model", "scripted:counting.toml"];

fn counting() -> Workspace {
    Workspace::with("counter", COUNTER).file("counting.toml", COUNTING)
}

#[test]
fn the_answer_is_data_and_what_happens_is_talk() {
    assert_snapshot!(counting().run(&COUNT), @r#"
    exit: 0

    --- stdout
    It is 42.

    --- stderr
    model      I need a counter.
    calls      counter_new {"start":41}
    result     {"type":"counter","id":"1","available_tools":["counter_next","counter_break"]}
    new tools  counter_next counter_break
    calls      counter_next {"counter_id":"1"}
    result     42
    "#);
    let quiet = counting().run(&[&COUNT[..], &["-q"]].concat());
    assert_eq!(
        (quiet.code, quiet.stdout.as_str(), quiet.stderr.as_str()),
        (Some(0), "It is 42.\n", "")
    );
}

#[test]
fn the_document_holds_the_whole_run() {
    let (code, document) = counting().json(&[&COUNT[..], &["--json"]].concat());
    assert_eq!(code, Some(0));
    for key in [
        "answer",
        "stop_reason",
        "iterations",
        "tool_calls",
        "injected",
        "usage",
        "history",
    ] {
        assert!(document.get(key).is_some(), "{key} in {document}");
    }
    assert_eq!(
        (&document["answer"], &document["stop_reason"]),
        (&json!("It is 42."), &json!("answered"))
    );
    assert_eq!(
        (&document["iterations"], &document["tool_calls"][1]["name"]),
        (&json!(3), &json!("counter_next"))
    );
    assert!(
        document["injected"]
            .as_array()
            .unwrap()
            .contains(&json!("counter_next")),
        "{document}"
    );
}

#[test]
fn a_trace_holds_what_happened() {
    let workspace = counting();
    let run = workspace.run(&[&COUNT[..], &["--trace", "trace.jsonl"]].concat());
    assert_eq!(run.code, Some(0), "{run}");
    let trace = std::fs::read_to_string(workspace.path().join("trace.jsonl")).unwrap();
    let events: Vec<Value> = trace.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(events.first().unwrap()["event"], "turn_started");
    assert_eq!(events.last().unwrap()["event"], "finished");
    assert!(events.iter().any(|event| event["event"] == "tools_injected"));
}

#[test]
fn a_run_without_an_answer_is_one_document_with_what_it_reached() {
    let plain = Workspace::with("plain", PLAIN)
        .file(
            "spin.toml",
            "[[turn]]\ncall = [{ tool = \"greet\" }]\n[[turn]]\nanswer = \"never\"",
        )
        .file(
            "fail.toml",
            "[[turn]]\nfail.refused = { status = 401, message = \"no key\" }",
        )
        .file("left.toml", "[[turn]]\nanswer = \"early\"\n[[turn]]\nanswer = \"late\"");
    let cases = [
        (
            &["scripted:spin.toml", "--max-iterations", "1"][..],
            "loop-limit",
            4,
            json!("iteration_limit"),
        ),
        (
            &["scripted:spin.toml", "--max-iterations", "0"],
            "configuration",
            2,
            Value::Null,
        ),
        (&["scripted:fail.toml"], "model", 1, json!("model_failed")),
        (&["scripted:left.toml"], "model", 1, json!("answered")),
        (&["scripted:missing.toml"], "configuration", 2, Value::Null),
        (&["nonsense"], "configuration", 2, Value::Null),
        (
            &["scripted:left.toml", "--trace", "missing/trace.jsonl"],
            "io",
            2,
            Value::Null,
        ),
    ];
    for (arguments, kind, code, stop) in cases {
        let (found, document) = plain.json(&[&["run", "Hello", "--json", "--model"], arguments].concat());
        assert_eq!(
            (found, &document["ok"]),
            (Some(code), &json!(false)),
            "{arguments:?}: {document}"
        );
        assert_eq!(
            (&document["error"]["kind"], &document["stop_reason"]),
            (&json!(kind), &stop),
            "{document}"
        );
    }
}

#[test]
fn the_model_is_named_by_flag_or_environment() {
    let workspace = counting();
    assert_snapshot!(workspace.run(&["run", "Count."]), @"
    exit: 2

    --- stderr
    error: no model was named
    hint: name one with `--model openai:NAME`, or set TOOLWIT_MODEL
    ");
    let named = workspace.variable("TOOLWIT_MODEL", "scripted:counting.toml");
    assert_eq!(named.run(&["run", "Count.", "-q"]).stdout, "It is 42.\n");
}

#[test]
fn a_tools_limit_is_told_to_the_model_and_the_run_goes_on() {
    let scenario = r#"
[[turn]]
call = [{ tool = "spin" }]

[[turn]]
expect.last_result = { tool = "spin", is_error = true, contains = "fuel" }
answer = "It never ends."
"#;
    let workspace = Workspace::with("plain", PLAIN).file("spin.toml", scenario);
    let run = workspace.run(&["run", "Spin.", "--model", "scripted:spin.toml", "--fuel", "1000000"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "It never ends.\n"), "{run}");
}
