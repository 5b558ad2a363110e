//! `toolwit replay`.

use std::fs;

use crate::guests::{COUNTER, NOTES, NOTES_GRANTS, PLAIN, masking_interceptor};
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
fn traced_workspace() -> Workspace {
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

fn read_text(workspace: &Workspace, file: &str) -> String {
    fs::read_to_string(workspace.path().join(file)).unwrap()
}

#[test]
fn replay_executes_calls_again_and_finds_no_differences() {
    let run = traced_workspace().run(&["replay", "t.jsonl"]);
    assert_eq!(run.code, Some(0), "{run}");
    assert!(
        run.stdout.contains("executed") && run.stdout.contains("no differences"),
        "{run}"
    );
}

#[test]
fn two_replays_write_the_same_bytes() {
    let workspace = traced_workspace();
    for file in ["a.jsonl", "b.jsonl"] {
        let run = workspace.run(&["replay", "t.jsonl", "--trace", file]);
        assert_eq!(run.code, Some(0), "{run}");
    }
    assert_eq!(read_text(&workspace, "a.jsonl"), read_text(&workspace, "b.jsonl"));
    let run = workspace.run(&["replay", "a.jsonl", "--trace", "c.jsonl"]);
    assert_eq!(run.code, Some(0), "{run}");
    assert_eq!(read_text(&workspace, "a.jsonl"), read_text(&workspace, "c.jsonl"));
}

#[test]
fn difference_is_shown_as_a_diff_and_fails() {
    let workspace = traced_workspace();
    let changed = read_text(&workspace, "t.jsonl").replace("It counts.", "It counts down.");
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
    let workspace = traced_workspace().file("other.toml", "[[turn]]\nanswer = \"Another model.\"\n");
    let answers: Vec<_> = read_text(&workspace, "t.jsonl")
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
    let workspace = traced_workspace();
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

/// Records the trace of a run with options.
fn record(workspace: Workspace, options: &[&str]) -> Workspace {
    let command = [
        "run",
        "Count.",
        "--model",
        "scripted:counting.toml",
        "--trace",
        "t.jsonl",
    ];
    let run = workspace.run(&[&command[..], options].concat());
    assert!(matches!(run.code, Some(0 | 4)), "{run}");
    workspace
}

/// Returns the trace without a setting.
fn without_setting(workspace: &Workspace, name: &str) -> String {
    let text = read_text(workspace, "t.jsonl");
    let (first, rest) = text.split_once('\n').unwrap();
    let mut started: serde_json::Value = serde_json::from_str(first).unwrap();
    let removed = started["settings"].as_object_mut().unwrap().remove(name);
    assert!(removed.is_some(), "{first}");
    format!("{started}\n{rest}")
}

#[test]
fn settings_of_the_run_are_restored() {
    let counting = || Workspace::with("counter", COUNTER).file("counting.toml", COUNTING);
    let limited = COUNTING.replace(
        "answer = ",
        "call = [{ tool = \"counter_new\", arguments = { start = 1 } }]\n\n[[turn]]\nanswer = ",
    );
    let models = "[counting]\ncontext = 2000\n";
    let restored: [(&str, Workspace, &[&str]); 4] = [
        ("system", counting(), &["--system", "Be brief."]),
        ("delivery", counting(), &["--delivery", "gateway"]),
        ("budget-tools", counting(), &["--budget-tools"]),
        (
            "limits",
            counting().file("counting.toml", limited),
            &["--iterations", "2"],
        ),
    ];
    for (name, workspace, options) in restored {
        let workspace = record(workspace, options);
        let run = workspace.run(&["replay", "t.jsonl"]);
        assert_eq!(run.code, Some(0), "{name} {run}");
        let trace = without_setting(&workspace, name);
        let run = workspace.file("less.jsonl", trace).run(&["replay", "less.jsonl"]);
        assert_eq!(run.code, Some(1), "{name} {run}");
    }
    let workspace = record(
        counting().file("models.toml", models),
        &["--model-table", "models.toml"],
    );
    assert!(
        read_text(&workspace, "t.jsonl").contains(r#"\"context_tokens_max\":1500"#),
        "the context of the model"
    );
}

#[test]
fn schema_of_an_answer_is_restored() {
    let schema = r#"{"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}"#;
    let answers = "[[turn]]\nanswer = \"{\\\"n\\\": 1}\"\n";
    let workspace = Workspace::with("counter", COUNTER)
        .file("schema.json", schema)
        .file("counting.toml", answers);
    let workspace = record(workspace, &["--answer-schema", "schema.json"]);
    let run = workspace.run(&["replay", "t.jsonl"]);
    assert_eq!(run.code, Some(0), "{run}");
    let recorded = read_text(&workspace, "t.jsonl");
    let without = recorded.replace("\"answer_schema\"", "\"unknown\"");
    assert_ne!(without, recorded);
    let run = workspace.file("less.jsonl", without).run(&["replay", "less.jsonl"]);
    assert_eq!(run.code, Some(1), "{run}");
    assert!(run.stdout.contains("another request to the model"), "{run}");
}

#[test]
fn other_system_prompt_and_other_arguments_end_the_replay_with_a_diff() {
    let workspace = traced_workspace();
    let trace = read_text(&workspace, "t.jsonl");
    let other = trace.replacen("\"arguments\":{\"start\":41}", "\"arguments\":{\"start\":40}", 1);
    assert_ne!(trace, other);
    let run = workspace.file("other.jsonl", other).run(&["replay", "other.jsonl"]);
    assert_eq!(run.code, Some(1), "{run}");
    for line in ["another start of the call", "-start: 40", "+start: 41", "1 difference"] {
        assert!(run.stdout.contains(line), "{line} {run}");
    }
}

#[test]
fn replay_names_the_part_of_the_trace_that_it_cannot_use() {
    let workspace = traced_workspace();
    let trace = read_text(&workspace, "t.jsonl");
    let with = |setting: &str| trace.replacen("\"settings\":{", &format!("\"settings\":{{{setting},"), 1);
    let workspace = workspace
        .file("absent.jsonl", with("\"interceptor\":[\"quota\"]"))
        .file("mcp.jsonl", with("\"mcp\":[\"servers.toml\"]"))
        .file("limits.jsonl", trace.replacen("iterations_max", "of_tomorrow", 1));
    for (file, message) in [
        ("absent.jsonl", "the interceptor `quota` is not installed"),
        ("mcp.jsonl", "the MCP servers of `servers.toml`"),
        ("limits.jsonl", "of_tomorrow"),
    ] {
        let run = workspace.run(&["replay", file]);
        assert_eq!(run.code, Some(2), "{file} {run}");
        assert!(run.stderr.contains(message), "{file} {run}");
    }
    assert_eq!(workspace.run(&["replay", "mcp.jsonl", "--no-mcp"]).code, Some(0));
}

#[test]
fn interceptors_of_the_run_are_restored() {
    let adding =
        "[[turn]]\ncall = [{ tool = \"add\", arguments = { a = 1, b = 2 } }]\n[[turn]]\nanswer = \"{{result}}\"";
    let workspace = Workspace::with("plain", PLAIN)
        .file("tools/mask.wasm", masking_interceptor("hidden"))
        .file("counting.toml", adding);
    let workspace = record(workspace, &["--interceptor", "mask"]);
    assert!(read_text(&workspace, "t.jsonl").contains("\"text\":\"hidden\""));
    let run = workspace.run(&["replay", "t.jsonl"]);
    assert_eq!(run.code, Some(0), "{run}");
    assert!(
        run.stdout.contains("executed") && run.stdout.contains("no differences"),
        "the call ran, and its result was replaced again: {run}"
    );
    let trace = without_setting(&workspace, "interceptor");
    let workspace = workspace.file("less.jsonl", trace);
    let run = workspace.run(&["replay", "less.jsonl"]);
    assert_eq!(run.code, Some(1), "without it, the result is another one: {run}");
    let workspace = workspace.file("tools/mask.wasm", masking_interceptor("masked"));
    let run = workspace.run(&["replay", "t.jsonl"]);
    assert_eq!(run.code, Some(2), "{run}");
    assert!(run.stderr.contains("mask"), "{run}");
}

// attack: M5
#[test]
fn trace_of_another_user_brings_no_grants() {
    let workspace = Workspace::with("notes", NOTES)
        .file("grants.toml", NOTES_GRANTS)
        .file("hello.toml", "[[turn]]\nanswer = \"Hello.\"\n");
    let model = ["--model", "scripted:hello.toml"];
    let recorded = ["run", "Hi.", "--grants", "grants.toml", "--trace", "t.jsonl"];
    let recorded = workspace.run(&[&recorded[..], &model].concat());
    assert_eq!(recorded.code, Some(0), "{recorded}");
    assert_eq!(
        workspace.run(&["replay", "t.jsonl"]).code,
        Some(0),
        "the user recorded it"
    );
    let replayed_by_another = |flags: &[&str]| -> Run {
        let mut command = workspace.command(&[&["replay", "t.jsonl"], flags].concat());
        command.env("XDG_DATA_HOME", workspace.path().join("another"));
        command.output().unwrap().into()
    };
    let refused = replayed_by_another(&[]);
    assert_eq!(refused.code, Some(2), "{refused}");
    assert!(
        refused.stderr.contains("this user did not record the trace"),
        "{refused}"
    );
    assert_eq!(replayed_by_another(&["--grants", "grants.toml"]).code, Some(0));
    // The code is that of these plugins with these grants.
    let recorded = read_text(&workspace, "t.jsonl");
    for (setting, other) in [
        ("/grants.toml\"]", "/other.toml\"]"),
        ("\"plugins\":[\"", "\"plugins\":[\"/other"),
    ] {
        let changed = recorded.replace(setting, other);
        assert_ne!(changed, recorded, "{setting}");
        fs::write(workspace.path().join("t.jsonl"), changed).unwrap();
        let changed = workspace.run(&["replay", "t.jsonl"]);
        assert_eq!(changed.code, Some(2), "{changed}");
        assert!(
            changed.stderr.contains("this user did not record the trace"),
            "{changed}"
        );
    }
}

#[test]
fn another_version_of_a_plugin_gives_a_diff_and_fails() {
    let script = "[[turn]]\ncall = [{ tool = \"add\", arguments = { a = 5, b = 2 } }]\n[[turn]]\nanswer = \"Done.\"\n";
    let workspace = Workspace::with("plain", PLAIN).file("add.toml", script);
    let run = ["run", "Add.", "--model", "scripted:add.toml", "--trace", "t.jsonl"];
    let run = workspace.run(&run);
    assert_eq!(run.code, Some(0), "{run}");
    let workspace = workspace.and(
        "plain",
        &PLAIN.replace("i32.add (local.get 0)", "i32.sub (local.get 0)"),
    );
    let replayed = workspace.run(&["replay", "t.jsonl"]);
    assert_eq!(replayed.code, Some(1), "{replayed}");
    for line in ["-outcome.text: 7", "+outcome.text: 3"] {
        assert!(replayed.stdout.contains(line), "{line} in {replayed}");
    }
    let again = workspace.run(&["replay", "t.jsonl"]);
    assert_eq!(again.stdout, replayed.stdout, "the report is the same");
}
