//! Calls that wait for an approval, and answers of other processes.

use std::io::{BufRead, BufReader};
use std::process::Child;

use crate::guests::{FILES, NOTES, NOTES_GRANTS};
use crate::support::{Run, Workspace};

const SAVE: [&str; 10] = [
    "run",
    "Save.",
    "--model",
    "scripted:save.toml",
    "--grants",
    "grants.toml",
    "--session",
    "s",
    "--sessions",
    "s.db",
];

fn workspace() -> Workspace {
    let save = "[[turn]]\ncall = [{ tool = \"save\", id = \"call_7\" }]\n";
    let answer = "[[turn]]\nanswer = \"It says {{result}}.\"\n";
    Workspace::with("notes", NOTES)
        .file("grants.toml", NOTES_GRANTS)
        .file("save.toml", format!("{save}{answer}"))
        .file("answer.toml", answer)
}

fn run_on_session(workspace: &Workspace, command: &str, rest: &[&str]) -> Run {
    workspace.run(&[&[command, "s", "--sessions", "s.db"], rest].concat())
}

fn resume(workspace: &Workspace) -> Run {
    let flags = ["--model", "scripted:answer.toml", "--grants", "grants.toml"];
    run_on_session(workspace, "resume", &flags)
}

/// Starts a run that waits for an answer, and returns it when it waits.
fn start_waiting_run(workspace: &Workspace) -> Child {
    let mut child = workspace.start(&[&SAVE[..], &["--ask-later=5m"]].concat());
    let mut lines = BufReader::new(child.stderr.as_mut().unwrap()).lines();
    let command = "`toolwit approve s call_7 --sessions s.db` allows the call";
    assert!(
        lines.any(|line| line.unwrap().contains(command)),
        "it announces the call"
    );
    child
}

fn wait_for_end(child: Child) -> Run {
    child.wait_with_output().unwrap().into()
}

#[test]
fn a_waiting_run_continues_with_the_answer_of_another_process() {
    let workspace = workspace();
    let run = start_waiting_run(&workspace);
    let listed = run_on_session(&workspace, "approvals", &[]);
    for text in [
        "s  1 call, open in a process",
        "approve    save",
        "notes#save",
        "call       call_7",
    ] {
        assert!(listed.stdout.contains(text), "{text} in {listed}");
    }
    let unknown = run_on_session(&workspace, "approve", &["call_8"]);
    assert_eq!(unknown.code, Some(2), "{unknown}");
    assert!(
        unknown.stderr.contains("hint: `toolwit approvals s --sessions s.db`"),
        "{unknown}"
    );
    let allowed = run_on_session(&workspace, "approve", &["call_7"]);
    assert_eq!(allowed.code, Some(0), "{allowed}");
    assert!(
        allowed
            .stderr
            .contains("allowed; the process that has the session open continues"),
        "{allowed}"
    );
    let run = wait_for_end(run);
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "It says 1.\n"), "{run}");
    assert!(run.stderr.contains("allowed    by another process"), "{run}");
    let late = run_on_session(&workspace, "deny", &["call_7"]);
    assert_eq!(late.code, Some(2), "the first answer counts: {late}");
    let shown = workspace.run(&["sessions", "show", "s", "--sessions", "s.db"]);
    assert!(
        shown.stdout.contains("allowed, by another process, call call_7"),
        "{shown}"
    );
}

#[test]
fn a_waiting_run_continues_without_the_call_that_another_process_denied() {
    let workspace = workspace();
    let run = start_waiting_run(&workspace);
    let denied = run_on_session(&workspace, "deny", &["call_7", "--reason", "not today"]);
    assert_eq!(denied.code, Some(0), "{denied}");
    let run = wait_for_end(run);
    assert!(run.stdout.contains("the user refused it: not today"), "{run}");
}

// attack: M4
#[test]
fn an_answer_without_a_process_is_used_when_the_run_is_resumed() {
    let workspace = workspace();
    let left = workspace.run(&[&SAVE[..], &["--ask-later"]].concat());
    assert_eq!(left.code, Some(4), "{left}");
    let nameless = run_on_session(&workspace, "approve", &[]);
    assert_eq!(nameless.code, Some(2), "nobody approves unseen: {nameless}");
    let (code, document) = workspace.json(&["approve", "s", "call_7", "--sessions", "s.db", "--json"]);
    assert_eq!(
        (code, &document["decision"]),
        (Some(0), &"allowed".into()),
        "{document}"
    );
    let second = run_on_session(&workspace, "deny", &["call_7"]);
    assert_eq!(second.code, Some(2), "{second}");
    assert!(
        second.stderr.contains("the call `call_7` has been answered"),
        "{second}"
    );
    let (_, document) = workspace.json(&["approvals", "--sessions", "s.db", "--json"]);
    assert_eq!(
        document["sessions"][0]["approvals"][0]["answer"]["approval"], "approved",
        "{document}"
    );
    let resumed = resume(&workspace);
    assert_eq!(
        (resumed.code, resumed.stdout.as_str()),
        (Some(0), "It says 1.\n"),
        "{resumed}"
    );
    let after = run_on_session(&workspace, "approve", &["call_7"]);
    assert_eq!(after.code, Some(2), "it was used: {after}");
    let missing = workspace.run(&["approvals", "none", "--sessions", "s.db"]);
    assert_eq!(missing.code, Some(2), "{missing}");
}

#[test]
fn a_stored_answer_is_void_when_the_grant_has_changed() {
    let workspace = workspace();
    workspace.run(&[&SAVE[..], &["--ask-later"]].concat());
    let allowed = run_on_session(&workspace, "approve", &["call_7"]);
    assert_eq!(allowed.code, Some(0), "{allowed}");
    let workspace = workspace.file("grants.toml", NOTES_GRANTS.replace("1KiB", "9KiB"));
    let changed = resume(&workspace);
    assert_eq!((changed.code, changed.stdout.as_str()), (Some(4), ""), "{changed}");
    assert!(changed.stderr.contains("waits for your answer"), "{changed}");
}

// attack: M3
#[test]
fn no_plugin_has_access_to_the_answers() {
    let workspace = Workspace::with("files", FILES)
        .variable("TOOLWIT_GRANTS", "own/grants.toml")
        .variable("TOOLWIT_SESSIONS", "work/s.db")
        .file("work/file", "")
        .file("other/file", "")
        .file(".data/toolwit/approvals.json", "{}");
    let grant = |directory: &str| {
        let rule = format!("{}::/work", workspace.path().join(directory).display());
        workspace.run(&["grant", "files", "--write", &rule])
    };
    for directory in ["work", ".data/toolwit"] {
        let refused = grant(directory);
        assert_eq!(refused.code, Some(2), "{refused}");
        assert!(refused.stderr.contains("belongs to the host"), "{refused}");
    }
    assert_eq!(grant("other").code, Some(0));
}
