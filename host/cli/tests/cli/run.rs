//! `toolwit run`.

use insta::assert_snapshot;
use serde_json::{Value, json};

use crate::guests::{COUNTER, NOTES, NOTES_GRANTS, PLAIN};
use crate::support::{Run, Workspace};

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

fn counting_workspace() -> Workspace {
    Workspace::with("counter", COUNTER).file("counting.toml", COUNTING)
}

#[test]
fn answer_goes_to_standard_output_and_events_to_standard_error() {
    assert_snapshot!(counting_workspace().run(&COUNT), @r#"
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
    let quiet = counting_workspace().run(&[&COUNT[..], &["-q"]].concat());
    assert_eq!(
        (quiet.code, quiet.stdout.as_str(), quiet.stderr.as_str()),
        (Some(0), "It is 42.\n", "")
    );
}

#[test]
fn json_document_describes_the_run() {
    let (code, document) = counting_workspace().json(&[&COUNT[..], &["--json"]].concat());
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
    let workspace = counting_workspace();
    let run = workspace.run(&[&COUNT[..], &["--trace", "trace.jsonl"]].concat());
    assert_eq!(run.code, Some(0), "{run}");
    let trace = std::fs::read_to_string(workspace.path().join("trace.jsonl")).unwrap();
    let events: Vec<Value> = trace.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(events[0]["event"], "trace_started");
    assert_eq!(events[1]["event"], "turn_started");
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
    let workspace = counting_workspace();
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

/// A plugin that can write to its key-value store, and a model that calls it.
fn writing_workspace() -> Workspace {
    let scenario = "[[turn]]\ncall = [{ tool = \"save\" }]\n[[turn]]\nanswer = \"{{result}}\"\n";
    Workspace::with("notes", NOTES)
        .file("save.toml", scenario)
        .file("grants.toml", NOTES_GRANTS)
}

const SAVE: [&str; 6] = [
    "run",
    "Save.",
    "--model",
    "scripted:save.toml",
    "--grants",
    "grants.toml",
];

#[test]
fn write_without_a_terminal_is_refused_with_what_would_allow_it() {
    let workspace = writing_workspace();
    let run = workspace.run(&SAVE);
    assert_eq!(run.code, Some(0), "{run}");
    assert!(run.stdout.contains("the call was not approved"), "{run}");
    assert!(
        run.stderr
            .contains("warning: `notes#save` did not run: it needs an approval"),
        "{run}"
    );
    assert!(run.stderr.contains("`--approve never`"), "{run}");
    let allowed = workspace.run(&[&SAVE[..], &["--approve", "never"]].concat());
    assert_eq!(allowed.stdout, "1\n", "{allowed}");
    // Without the grant, the tool only reads.
    assert_eq!(workspace.run(&SAVE[..4]).stdout, "1\n");
}

/// Returns a workspace with the session `s`, whose run waits for an approval.
fn waiting_run() -> Workspace {
    let workspace = writing_workspace().file("answer.toml", "[[turn]]\nanswer = \"{{result}}\"\n");
    let run = workspace.run(&[&SAVE[..], &["--session", "s", "--sessions", "s.db", "--ask-later"]].concat());
    assert_eq!((run.code, run.stdout.as_str()), (Some(4), ""), "{run}");
    assert!(
        run.stderr.contains("notes#save") && run.stderr.contains("waits for your answer"),
        "{run}"
    );
    assert!(run.stderr.contains("toolwit resume s --allow "), "{run}");
    workspace
}

/// Continues the run in another process.
fn resume(workspace: &Workspace, answer: &[&str]) -> Run {
    let flags = [
        "resume",
        "s",
        "--sessions",
        "s.db",
        "--model",
        "scripted:answer.toml",
        "--grants",
        "grants.toml",
    ];
    workspace.run(&[&flags[..], answer].concat())
}

/// Returns the id of the call in the hint of an output.
fn waiting_call(run: &Run) -> String {
    let (_, rest) = run.stderr.split_once("--allow ").unwrap();
    rest.split(['`', ' ']).next().unwrap().to_owned()
}

#[test]
fn a_pending_approval_outlives_the_process() {
    let workspace = waiting_run();
    let asked = resume(&workspace, &[]);
    assert_eq!(
        (asked.code, asked.stdout.as_str()),
        (Some(4), ""),
        "it is still pending: {asked}"
    );
    assert!(asked.stderr.contains("notes#save"), "{asked}");
    let call = waiting_call(&asked);
    let wrong = resume(&workspace, &["--allow", "call_99"]);
    assert_eq!(wrong.code, Some(2), "{wrong}");
    let allowed = resume(&workspace, &["--allow", &call]);
    assert_eq!((allowed.code, allowed.stdout.as_str()), (Some(0), "1\n"), "{allowed}");
    let again = resume(&workspace, &["--allow", &call]);
    assert_eq!(again.code, Some(2), "it ran once: {again}");
    assert!(again.stderr.contains("ended"), "{again}");
}

#[test]
fn a_denied_pending_call_does_not_run_and_the_model_reads_why() {
    let workspace = waiting_run();
    let call = waiting_call(&resume(&workspace, &[]));
    let denied = resume(&workspace, &["--deny", &format!("{call}=not today")]);
    assert_eq!(denied.code, Some(0), "{denied}");
    assert!(denied.stdout.contains("not today"), "{denied}");
}

#[test]
fn an_answer_is_void_when_the_grant_has_changed() {
    let workspace = waiting_run();
    let call = waiting_call(&resume(&workspace, &[]));
    let wider = "version = 1\n[[grant]]\nplugin = \"notes\"\nany-version = true\nkeyvalue = { quota = \"9KiB\" }\n";
    let workspace = workspace.file("grants.toml", wider);
    let changed = resume(&workspace, &["--allow", &call]);
    assert_eq!((changed.code, changed.stdout.as_str()), (Some(4), ""), "{changed}");
    assert!(changed.stderr.contains("waits for your answer"), "{changed}");
    // The option needs a session, which the run can continue.
    let alone = workspace.run(&[&SAVE[..], &["--ask-later"]].concat());
    assert_eq!(alone.code, Some(2), "it needs a session: {alone}");
}

#[test]
fn policy_file_decides_by_tool() {
    let rule = "[[approval.rule]]\ntool = \"notes\"\nask = \"never\"\n";
    let workspace = writing_workspace()
        .file("policy.toml", rule)
        .file("typo.toml", "[approval]\nwrites = \"never\"\n");
    let allowed = workspace.run(&[&SAVE[..], &["--policy", "policy.toml"]].concat());
    assert_eq!(allowed.stdout, "1\n", "{allowed}");
    let typo = workspace.run(&[&SAVE[..], &["--policy", "typo.toml"]].concat());
    assert_eq!(typo.code, Some(2), "{typo}");
    assert!(typo.stderr.contains("typo.toml:2:1: unknown field `writes`"), "{typo}");
    assert_eq!(
        workspace.run(&[&SAVE[..], &["--policy", "none.toml"]].concat()).code,
        Some(2)
    );
}

#[test]
fn cost_is_limited_only_for_a_model_with_a_price() {
    let run = counting_workspace().run(&[&COUNT[..], &["--cost", "0.5"]].concat());
    assert_eq!(run.code, Some(2), "{run}");
    assert!(
        run.stderr.contains("has no price, so its cost cannot be limited"),
        "{run}"
    );
    assert_eq!(
        counting_workspace().run(&[&COUNT[..], &["--cost", "-1"]].concat()).code,
        Some(2)
    );
}

const SCHEMA: &str = r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}"#;

// accept: 5
#[test]
fn answer_that_fits_a_schema_is_printed_as_json() {
    let script = "[[turn]]\nanswer = \"Sure: 42\"\n[[turn]]\nanswer = \"```json\\n{\\\"n\\\": 42}\\n```\"";
    let workspace = Workspace::with("plain", PLAIN)
        .file("script.toml", script)
        .file("schema.json", SCHEMA);
    let run = [
        "run",
        "How many?",
        "--model",
        "scripted:script.toml",
        "--answer-schema",
        "schema.json",
    ];
    let ended = workspace.run(&run);
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(0), "{\n  \"n\": 42\n}\n"),
        "{ended}"
    );
}

#[test]
fn answer_that_never_fits_the_schema_fails_the_run() {
    let script = "[[turn]]\nanswer = \"one\"\n[[turn]]\nanswer = \"two\"";
    let workspace = Workspace::with("plain", PLAIN)
        .file("script.toml", script)
        .file("schema.json", SCHEMA)
        .file("text.json", r#"{"type":"string"}"#);
    let run = |schema| {
        workspace.run(&[
            "run",
            "How many?",
            "--model",
            "scripted:script.toml",
            "--answer-schema",
            schema,
        ])
    };
    let ended = run("schema.json");
    assert!(
        ended.code == Some(1) && ended.stderr.contains("does not have the requested type"),
        "{ended}"
    );
    for (schema, message) in [
        ("text.json", "`\"type\": \"object\"`"),
        ("script.toml", "is not JSON"),
        ("absent.json", "could not be read"),
    ] {
        let refused = run(schema);
        assert!(refused.code == Some(2) && refused.stderr.contains(message), "{refused}");
    }
}

#[test]
fn a_wrong_table_of_models_is_reported_with_its_file() {
    let workspace = counting_workspace().file("models.toml", "[[model]]\nname = \"gpt-5\"\n");
    let run = workspace.run(&[&COUNT[..], &["--model-table", "models.toml"]].concat());
    assert_eq!(run.code, Some(2), "{run}");
    assert!(
        run.stderr
            .contains("error: models.toml: the table of models is invalid"),
        "{run}"
    );
    assert!(run.stderr.contains("hint: write a section for each model"), "{run}");
}
