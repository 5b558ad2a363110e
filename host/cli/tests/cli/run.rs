//! `toolwit run`.

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::guests::{COUNTER, PLAIN};
use crate::support::Workspace;

/// A scripted model that creates a counter, increments it, and answers with the result.
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
fn answer_goes_to_standard_output_and_events_to_standard_error() {
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
fn json_document_describes_the_run() {
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
fn trace_has_the_events() {
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
fn failed_run_is_one_json_document_with_its_partial_outcome() {
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
        let (exit_code, document) = plain.json(&[&["run", "Hello", "--json", "--model"], arguments].concat());
        assert_eq!(
            (exit_code, &document["ok"]),
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
fn model_is_selected_by_option_or_environment() {
    let workspace = counting();
    assert_snapshot!(workspace.run(&["run", "Count."]), @"
    exit: 2

    --- stderr
    error: no model was given
    hint: pass `--model openai:NAME`, or set TOOLWIT_MODEL
    ");
    let named = workspace.variable("TOOLWIT_MODEL", "scripted:counting.toml");
    assert_eq!(named.run(&["run", "Count.", "-q"]).stdout, "It is 42.\n");
}

#[test]
fn exceeded_limit_of_a_tool_is_reported_to_the_model_and_the_run_continues() {
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
