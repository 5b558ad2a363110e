//! `toolwit trace`.

use crate::guests::COUNTER;
use crate::support::Workspace;

const COUNTING: &str = r#"
[[turn]]
call = [{ tool = "counter_new", arguments = { start = 41 } }]

[[turn]]
answer = "<script>alert(1)</script>"
"#;

/// A workspace with the trace of a run.
fn traced_workspace() -> Workspace {
    let workspace = Workspace::with("counter", COUNTER).file("counting.toml", COUNTING);
    let run = workspace.run(&[
        "run",
        "Count.",
        "--model",
        "scripted:counting.toml",
        "--trace",
        "t.jsonl",
    ]);
    assert_eq!(run.code, Some(0), "{run}");
    workspace
}

#[cfg(unix)]
#[test]
fn only_the_owner_can_read_a_trace_also_if_the_file_existed() {
    use std::os::unix::fs::PermissionsExt;
    let workspace = traced_workspace();
    let path = workspace.path().join("t.jsonl");
    let mode = || std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(), 0o600);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    let run = [
        "run",
        "Count.",
        "--model",
        "scripted:counting.toml",
        "--trace",
        "t.jsonl",
    ];
    assert_eq!(workspace.run(&run).code, Some(0));
    assert_eq!(mode(), 0o600);
}

#[test]
fn turns_inferences_calls_and_injections_are_drawn_in_order() {
    let run = traced_workspace().run(&["trace", "t.jsonl"]);
    assert_eq!(run.code, Some(0), "{run}");
    let names = [
        "turn 1",
        "inference 1",
        "counter_new",
        "tools added",
        "inference 2",
        "end",
    ];
    let lines: Vec<_> = run.stdout.lines().map(str::trim).collect();
    let found: Vec<_> = names
        .iter()
        .map(|name| lines.iter().position(|line| line.contains(name)))
        .collect();
    assert!(found.iter().all(Option::is_some) && found.is_sorted(), "{run}");
}

#[test]
fn a_strategy_that_panicked_is_shown() {
    let workspace = traced_workspace();
    let trace = std::fs::read_to_string(workspace.path().join("t.jsonl")).unwrap();
    let lines = trace.lines().map(|line| {
        let mut entry: serde_json::Value = serde_json::from_str(line).unwrap();
        if entry["event"] == "tools_injected" {
            entry["event"] = "strategy_failed".into();
            entry["trigger"] = "counter_new".into();
        }
        format!("{entry}\n")
    });
    let workspace = workspace.file("failed.jsonl", lines.collect::<String>());
    let run = workspace.run(&["trace", "failed.jsonl"]);
    assert_eq!(run.code, Some(0), "{run}");
    assert!(
        run.stdout.contains("a strategy panicked at the result of counter_new"),
        "{run}"
    );
}

#[test]
fn page_is_self_contained_and_escaped() {
    let workspace = traced_workspace();
    let page = workspace.run(&["trace", "t.jsonl", "--html"]).stdout;
    assert!(
        page.contains("&lt;script&gt;alert(1)") && !page.contains("<script"),
        "{page}"
    );
    assert!(page.contains("default-src 'none'"), "{page}");
    assert_eq!(page, workspace.run(&["trace", "t.jsonl", "--html"]).stdout);
}

#[test]
fn file_that_is_not_a_trace_is_reported_with_its_line() {
    let workspace = Workspace::new()
        .file("no.jsonl", "{\"a\": 1}\n")
        .file("empty.jsonl", "");
    let run = workspace.run(&["trace", "no.jsonl"]);
    assert_eq!(run.code, Some(2), "{run}");
    assert!(
        run.stderr.contains("no.jsonl: line 1: not an event of a trace"),
        "{run}"
    );
    assert_eq!(workspace.run(&["trace", "empty.jsonl"]).code, Some(2));
    assert_eq!(workspace.run(&["trace", "missing.jsonl"]).code, Some(2));
}
