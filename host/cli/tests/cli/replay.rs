//! `toolwit replay`.

use std::fs;

use crate::guests::COUNTER;
use crate::support::{Run, Workspace};

const COUNTING: &str = r#"
[[turn]]
call = [{ tool = "counter_new", arguments = { start = 41 } }]

[[turn]]
answer = "It counts."
"#;

/// A call that sent a request, as a trace records it.
const FETCHED: &str = r#"{"version":1,"sequence":0,"at_ms":0,"process":"p","event":"turn_started","loop_id":"r","turn":1,"tools":["get"],"prompt":"Fetch."}
{"version":1,"sequence":1,"at_ms":0,"process":"p","event":"tool_started","id":"c-1","name":"get","tool":"fetch#get","start":{"definition":"d","arguments":{},"effect":{"class":"read","source":"sandbox"},"key":"trace/c-1","code":"0000"}}
{"version":1,"sequence":2,"at_ms":0,"process":"p","event":"tool_returned","id":"c-1","outcome":{"text":"ok","accesses":["GET https://api.example.com/a"]}}
"#;

/// A workspace with the trace of a run.
fn traced() -> Workspace {
    let workspace = Workspace::with("counter", COUNTER).file("counting.toml", COUNTING);
    let run = workspace.run(&[
        "run",
        "Count.",
        "--model",
        "scripted:counting.toml",
        "--max-tokens",
        "100",
        "--trace",
        "t.jsonl",
    ]);
    assert_eq!(run.code, Some(0), "{run}");
    workspace
}

fn text(workspace: &Workspace, file: &str) -> String {
    fs::read_to_string(workspace.path().join(file)).unwrap()
}

#[test]
fn replay_executes_calls_again_and_finds_no_differences() {
    let run = traced().run(&["replay", "t.jsonl"]);
    assert_eq!(run.code, Some(0), "{run}");
    assert!(
        run.stdout.contains("executed") && run.stdout.contains("no differences"),
        "{run}"
    );
}

#[test]
fn two_replays_write_the_same_bytes() {
    let workspace = traced();
    for file in ["a.jsonl", "b.jsonl"] {
        let run = workspace.run(&["replay", "t.jsonl", "--trace", file]);
        assert_eq!(run.code, Some(0), "{run}");
    }
    assert_eq!(text(&workspace, "a.jsonl"), text(&workspace, "b.jsonl"));
    let run = workspace.run(&["replay", "a.jsonl", "--trace", "c.jsonl"]);
    assert_eq!(run.code, Some(0), "{run}");
    assert_eq!(text(&workspace, "a.jsonl"), text(&workspace, "c.jsonl"));
}

#[test]
fn difference_is_shown_as_a_diff_and_fails() {
    let workspace = traced();
    let changed = text(&workspace, "t.jsonl").replace("It counts.", "It counts down.");
    let workspace = workspace.file(
        "changed.jsonl",
        changed.replacen("\"is_error\":false", "\"is_error\":true", 1),
    );
    let run = workspace.run(&["replay", "changed.jsonl"]);
    assert_eq!(run.code, Some(1), "{run}");
    assert!(
        run.stdout.contains("-outcome.is_error: true") && run.stdout.contains("+outcome.is_error: false"),
        "{run}"
    );
}

#[test]
fn fork_continues_with_another_answer_or_model() {
    let workspace = traced().file("other.toml", "[[turn]]\nanswer = \"Another model.\"\n");
    let answers: Vec<_> = text(&workspace, "t.jsonl")
        .lines()
        .filter(|line| line.contains("\"event\":\"model_answered\""))
        .filter_map(|line| {
            serde_json::from_str::<serde_json::Value>(line)
                .ok()?
                .get("sequence")?
                .as_u64()
        })
        .collect();
    let last = answers.last().unwrap().to_string();
    let fork = |options: &[&str]| -> Run {
        let command = [&["replay", "t.jsonl", "--fork", &last], options].concat();
        workspace.run(&command)
    };
    let run = fork(&["--answer", "It does not."]);
    assert_eq!((run.code, run.stdout.trim()), (Some(0), "It does not."), "{run}");
    let run = fork(&["--model", "scripted:other.toml"]);
    assert_eq!((run.code, run.stdout.trim()), (Some(0), "Another model."), "{run}");
    let run = fork(&["--answer", "Stored.", "--session", "fork", "--sessions", "s.db"]);
    assert_eq!(run.code, Some(0), "{run}");
    let run = workspace.run(&["sessions", "--sessions", "s.db", "list"]);
    assert!(run.stdout.contains("fork"), "{run}");
}

#[test]
fn wrong_use_of_a_replay_is_a_usage_error() {
    let workspace = traced();
    for arguments in [
        &["replay", "missing.jsonl"][..],
        &["replay", "t.jsonl", "--fork", "9999"],
        &["replay", "t.jsonl", "--answer", "without a fork"],
        &["replay", "t.jsonl", "--what-if", "missing.toml"],
    ] {
        let run = workspace.run(arguments);
        assert_eq!(run.code, Some(2), "{arguments:?} {run}");
    }
}

#[test]
fn what_if_lists_the_accesses_that_other_grants_refuse() {
    let grant = |host: &str| {
        format!("version = 1\n[[grant]]\nplugin = \"fetch\"\nany-version = true\nhttp = [{{ host = \"{host}\" }}]\n")
    };
    let workspace = Workspace::new()
        .file("traces/one.jsonl", FETCHED)
        .file("traces/two.jsonl", FETCHED)
        .file("wide.toml", grant("api.example.com"))
        .file("narrow.toml", grant("other.example.com"));
    let run = workspace.run(&["replay", "traces", "--what-if", "wide.toml"]);
    assert_eq!(run.code, Some(0), "{run}");
    let run = workspace.run(&["replay", "traces", "--what-if", "narrow.toml"]);
    assert_eq!(run.code, Some(1), "{run}");
    assert_eq!(run.stdout.matches("GET https://api.example.com").count(), 2, "{run}");
    assert!(run.stdout.contains("2 of 2 recorded accesses"), "{run}");
}
