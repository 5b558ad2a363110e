//! `toolwit chat`.

use insta::assert_snapshot;

use crate::guests::{COUNTER, NOTES, NOTES_GRANTS, PLAIN};
use crate::support::{Run, Workspace};

const CHATTING: &str = r#"
[[turn]]
expect.prompt = "Count."
call = [{ tool = "counter_new", arguments = { start = 41 } }]

[[turn]]
answer = "A **counter** exists."

[[turn]]
expect.tools = "counter_next"
call = [{ tool = "counter_next", arguments = { counter_id = "1" } }]

[[turn]]
answer = "It is {{result}}."
"#;

const CHAT: [&str; 3] = ["chat", "--model", "scripted:chat.toml"];

fn chat_workspace() -> Workspace {
    Workspace::with("counter", COUNTER).file("chat.toml", CHATTING.replace("expect.prompt = \"Count.\"\n", ""))
}

#[test]
fn tools_of_one_turn_stay_for_the_next() {
    let run = chat_workspace().run_with_input(&CHAT, "Count.\n\n  \nNext.\n");
    assert_snapshot!(run, @r#"
    exit: 0

    --- stdout
    A **counter** exists.
    It is 42.

    --- stderr
    calls      counter_new {"start":41}
    result     {"type":"counter","id":"1","available_tools":["counter_next","counter_break"]}
    new tools  counter_next counter_break
    calls      counter_next {"counter_id":"1"}
    result     42
    "#);
}

#[test]
fn commands_are_executed_without_the_model() {
    let run = chat_workspace().run_with_input(
        &CHAT,
        "/help\n/tools NEW\n/wait\nCount.\nNext.\n/pin\n/budget\n/quit\nnever sent\n",
    );
    assert_eq!(run.code, Some(0), "{run}");
    for text in [
        "/tools [TEXT]",
        "counter_new",
        "1 tool\n",
        "2 tool calls",
        "no cost limit",
        "kept: Next.",
    ] {
        assert!(run.stderr.contains(text), "{text} in {run}");
    }
    assert_eq!(run.stdout, "A **counter** exists.\nIt is 42.\n", "{run}");
}

#[test]
fn wrong_command_is_reported_and_the_session_continues() {
    let run = chat_workspace().run_with_input(&CHAT, "/tolls\nCount.\nNext.\n");
    assert_eq!(run.code, Some(2), "{run}");
    assert!(
        run.stderr.contains("error: `/tolls` is not a command of the chat"),
        "{run}"
    );
    assert!(run.stdout.contains("It is 42."), "{run}");
}

#[test]
fn failed_turn_does_not_end_the_session() {
    let script = "[[turn]]\nfail.refused = { status = 401, message = \"no key\" }\n[[turn]]\nanswer = \"back\"";
    let workspace = Workspace::with("plain", PLAIN).file("chat.toml", script);
    let run = workspace.run_with_input(&CHAT, "One.\nTwo.\n");
    assert_ne!(run.code, Some(0), "{run}");
    assert!(run.stderr.contains("no key") && run.stdout == "back\n", "{run}");
}

#[test]
fn chat_is_not_one_json_document() {
    let (code, document) = chat_workspace().json(&[&CHAT[..], &["--json"]].concat());
    assert_eq!((code, &document["ok"]), (Some(2), &false.into()), "{document}");
}

/// A session whose run waits for an answer about a call of `save`.
fn waiting_session() -> Workspace {
    let workspace = Workspace::with("notes", NOTES)
        .file("grants.toml", NOTES_GRANTS)
        .file(
            "save.toml",
            "[[turn]]\ncall = [{ tool = \"save\" }]\n[[turn]]\nanswer = \"never\"",
        )
        .file("chat.toml", "[[turn]]\nanswer = \"It says {{result}}.\"");
    let run = ["run", "Save.", "--model", "scripted:save.toml", "--ask-later"];
    let left = workspace.run(&[&run[..], &STORED].concat());
    assert_eq!(left.code, Some(4), "{left}");
    workspace
}

const STORED: [&str; 6] = ["--session", "s", "--sessions", "s.db", "--grants", "grants.toml"];

fn chat_in_session(workspace: &Workspace, input: &str) -> Run {
    workspace.run_with_input(&[&CHAT[..], &STORED].concat(), input)
}

#[test]
fn chat_answers_the_question_of_an_earlier_process() {
    let allowed = chat_in_session(&waiting_session(), "/approve\n");
    assert_eq!(
        (allowed.code, allowed.stdout.as_str()),
        (Some(0), "It says 1.\n"),
        "{allowed}"
    );
    for text in [
        "approve    save",
        "notes#save",
        "the last run of this session did not end",
    ] {
        assert!(allowed.stderr.contains(text), "{text} in {allowed}");
    }
    let denied = chat_in_session(&waiting_session(), "/deny not today\n");
    assert!(denied.stdout.contains("the user refused it: not today"), "{denied}");
    let workspace = waiting_session();
    let silent = chat_in_session(&workspace, "");
    assert_eq!(silent.stdout, "", "it still waits: {silent}");
    let (_, call) = silent.stderr.split_once("call       ").unwrap();
    let input = format!("/deny {} by name\n", call.lines().next().unwrap());
    let denied = chat_in_session(&workspace, &input);
    assert!(denied.stdout.contains("the user refused it: by name"), "{denied}");
}

#[test]
fn interrupted_run_is_neither_forgotten_nor_continued_without_an_answer() {
    let run = chat_in_session(
        &waiting_session(),
        "Something else.\n/resume\n/approve call_99\n/resolve x done\n/resolve y\n",
    );
    assert_eq!(run.stdout, "", "{run}");
    for text in [
        "the call `call_99` does not wait for an answer",
        "error: the last run of this session did not end",
        "the message was not sent",
        "/approve allows the call",
        "the call `x` needs no decision",
        "this is not a decision about a call",
    ] {
        assert!(run.stderr.contains(text), "{text} in {run}");
    }
    let workspace = Workspace::with("plain", PLAIN).file("chat.toml", "[[turn]]\nanswer = \"Hi.\"");
    let fresh = workspace.run_with_input(&CHAT, "/resume\n/approve\nHello.\n");
    for text in ["this session has no interrupted run", "no call waits for an answer"] {
        assert!(fresh.stderr.contains(text), "{text} in {fresh}");
    }
    assert_eq!(fresh.stdout, "Hi.\n", "{fresh}");
}

// attack: C21, J3
#[test]
fn answer_cannot_control_the_terminal() {
    let script = "[[turn]]\nanswer = \"\\u001b[2Jclean\\u202e\"";
    let workspace = Workspace::with("plain", PLAIN).file("chat.toml", script);
    assert_eq!(workspace.run_with_input(&CHAT, "Hi.\n").stdout, "[2Jclean\n");
}

/// Ctrl-C while a turn runs.
#[cfg(unix)]
mod interrupts {
    use std::io::{BufRead, BufReader, Read, Write};
    use std::process::{Child, ChildStderr, Command};

    use crate::guests::PLAIN;
    use crate::support::Workspace;

    /// A model that calls a tool that never ends, and answers in the next turn.
    const SPINNING: &str = "[[turn]]\ncall = [{ tool = \"spin\" }]\n[[turn]]\nanswer = \"still here\"";

    /// Starts a chat whose first turn never ends by itself.
    fn start_endless_turn(workspace: &Workspace) -> (Child, BufReader<ChildStderr>) {
        let flags = ["--model", "scripted:chat.toml", "--fuel", "18446744073709551615"];
        let mut child = workspace.start(&[&["chat", "--approve", "never"][..], &flags].concat());
        child.stdin.as_mut().unwrap().write_all(b"Spin.\n").unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        wait_for("calls", &mut stderr);
        (child, stderr)
    }

    fn workspace() -> Workspace {
        Workspace::with("plain", PLAIN).file("chat.toml", SPINNING)
    }

    fn wait_for(text: &str, stderr: &mut impl BufRead) {
        let mut line = String::new();
        while !line.contains(text) {
            line.clear();
            assert_ne!(stderr.read_line(&mut line).unwrap(), 0, "the command ended early");
        }
    }

    fn interrupt(child: &Child) {
        let status = Command::new("/bin/sh")
            .args(["-c", "kill -INT \"$0\"", &child.id().to_string()])
            .status()
            .unwrap();
        assert!(status.success());
    }

    #[test]
    fn first_ctrl_c_cancels_the_turn_and_the_session_continues() {
        let workspace = workspace();
        let (mut child, mut stderr) = start_endless_turn(&workspace);
        interrupt(&child);
        wait_for("turn interrupted", &mut stderr);
        wait_for("error:", &mut stderr);
        child.stdin.take().unwrap().write_all(b"Again.\n").unwrap();
        let mut stdout = String::new();
        child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
        assert_eq!(
            (stdout.as_str(), child.wait().unwrap().code()),
            ("still here\n", Some(130))
        );
    }

    #[test]
    fn second_ctrl_c_ends_the_session() {
        let workspace = workspace();
        let (mut child, mut stderr) = start_endless_turn(&workspace);
        interrupt(&child);
        wait_for("turn interrupted", &mut stderr);
        interrupt(&child);
        wait_for("session interrupted", &mut stderr);
        assert_eq!(child.wait().unwrap().code(), Some(130));
    }
}
