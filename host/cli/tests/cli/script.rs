//! `toolwit call --script`.

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::guests::{COUNTER, PLAIN, RIVAL};
use crate::support::Workspace;

/// A script that creates a counter, calls its injected methods, and calls a tool of another plugin.
const COUNTING: &str = r#"
{"tool": "counter_new", "arguments": {"start": 5}}
{"tool": "counter_next", "arguments": {"counter_id": "1"}}
{"tool": "counter_next", "arguments": {"counter_id": "1"}}
{"tool": "add", "arguments": {"a": 1, "b": 2}}
"#;

fn lines(stdout: &str) -> Vec<Value> {
    stdout
        .lines()
        .map(|line| serde_json::from_str(line).expect("each line is JSON"))
        .collect()
}

#[test]
fn calls_of_a_script_share_one_conversation() {
    let workspace = Workspace::with("counter", COUNTER)
        .and("plain", PLAIN)
        .file("script.jsonl", COUNTING);
    let from_file = workspace.run(&["call", "--script", "script.jsonl", "--json"]);
    let from_input = workspace.run_with_input(&["call", "--script", "-", "--json"], COUNTING);
    for run in [from_file, from_input] {
        assert_eq!(run.code, Some(0), "{run}");
        let answers = lines(&run.stdout);
        let results: Vec<_> = answers.iter().map(|answer| &answer["result"]).collect();
        assert_eq!(results[1..], [&json!(6), &json!(7), &json!(3)], "{run}");
        assert!(
            answers
                .iter()
                .all(|answer| answer["ok"] == true && answer["usage"]["fuel"].is_u64()),
            "{run}"
        );
    }
}

#[test]
fn script_prints_calls_and_injected_tools() {
    let workspace = Workspace::with("counter", COUNTER).and("plain", PLAIN);
    assert_snapshot!(workspace.run_with_input(&["call", "--script", "-"], COUNTING), @r#"
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
    6
    7
    3

    --- stderr
    > counter_new {"start":5}
    + counter_next
    + counter_break
    > counter_next {"counter_id":"1"}
    > counter_next {"counter_id":"1"}
    > add {"a":1,"b":2}
    "#);
}

#[test]
fn script_continues_after_an_error_and_exits_with_the_worst_code() {
    let script = r#"
{"tool": "halve", "arguments": {"number": 3}}
{"tool": "spin"}
{"tool": "nothing"}
{"tool": "counter_next", "arguments": {"counter_id": "1"}}
{"tool": "halve", "arguments": {"number": 4}}
"#;
    let workspace = Workspace::with("counter", COUNTER)
        .and("plain", PLAIN)
        .file("script.jsonl", script);
    let arguments = ["call", "--script", "script.jsonl", "--json", "--fuel", "1000000"];
    let run = workspace.run(&arguments);
    let kinds: Vec<_> = lines(&run.stdout)
        .iter()
        .map(|answer| answer["error"]["kind"].clone())
        .collect();
    let expected = json!(["tool", "fuel", "unknown-tool", "tool-unavailable", null]);
    assert_eq!((run.code, Value::from(kinds)), (Some(4), expected), "{run}");
    let stopped = workspace.run(&[&arguments[..], &["--stop-on-error"]].concat());
    assert_eq!((stopped.code, lines(&stopped.stdout).len()), (Some(1), 1), "{stopped}");
}

#[test]
fn entity_of_a_trapped_instance_is_gone() {
    let script = r#"
{"tool": "counter_new", "arguments": {"start": 5}}
{"tool": "counter_break", "arguments": {"counter_id": "1"}}
{"tool": "counter_next", "arguments": {"counter_id": "1"}}
"#;
    let workspace = Workspace::with("counter", COUNTER);
    let run = workspace.run_with_input(&["call", "--script", "-", "--json"], script);
    let answers = lines(&run.stdout);
    assert_eq!(answers[1]["error"]["kind"], "trap", "{run}");
    assert_eq!(answers[2]["error"]["kind"], "entity-gone", "{run}");
    assert_eq!(run.code, Some(1), "{run}");
}

// attack: A11
#[test]
fn an_ambiguous_name_is_refused_and_an_id_is_not() {
    let script = "{\"tool\": \"add\", \"arguments\": {\"a\": 1}}\n{\"tool\": \"rival#add\", \"arguments\": {\"a\": 1}}";
    let workspace = Workspace::with("plain", PLAIN).and("rival", RIVAL);
    let run = workspace.run_with_input(&["call", "--script", "-", "--json"], script);
    let answers = lines(&run.stdout);
    assert_eq!(answers[0]["error"]["kind"], "ambiguous-tool", "{run}");
    assert_eq!(answers[1]["result"], 1, "{run}");
}

#[test]
fn script_with_an_invalid_line_calls_nothing() {
    let script = "{\"tool\": \"spin\"}\n{\"toll\": \"spin\"}";
    let workspace = Workspace::with("plain", PLAIN);
    assert_snapshot!(workspace.run_with_input(&["call", "--script", "-"], script), @r#"
    exit: 2

    --- stderr
    error: line 2 of the script: `tool` must be a string
    hint: each line is a call, as in {"tool": "add", "arguments": {"a": 1, "b": 2}}
    "#);
}
