//! Runs that continue with the options of their session.

use std::fs;

use crate::guests::{NOTES, NOTES_GRANTS};
use crate::support::{Run, TOOLWIT, Workspace};

const CALL: &str = "[[turn]]\ncall = [{ tool = \"save\", id = \"call_7\" }]\n";
const ANSWER: &str = "[[turn]]\nanswer = \"It says {{result}}.\"\n";
const SESSION: [&str; 4] = ["--session", "s", "--sessions", "s.db"];

fn workspace() -> Workspace {
    Workspace::with("notes", NOTES)
        .file("grants.toml", NOTES_GRANTS)
        .file("save.toml", format!("{CALL}{ANSWER}"))
}

fn save(workspace: &Workspace, flags: &[&str]) -> Run {
    let run = [
        "run",
        "Save.",
        "--model",
        "scripted:save.toml",
        "--grants",
        "grants.toml",
    ];
    workspace.run(&[&run[..], &SESSION, flags].concat())
}

/// Returns a workspace with the session `s`, whose run waits for an approval.
fn waiting_run(flags: &[&str]) -> Workspace {
    let workspace = workspace();
    let left = save(&workspace, &[&["--ask-later"], flags].concat());
    assert_eq!(left.code, Some(4), "{left}");
    workspace.file("save.toml", ANSWER)
}

#[test]
fn a_run_is_resumed_with_its_options_in_any_directory() {
    let workspace = waiting_run(&[]).file("elsewhere/file", "");
    let resume = ["resume", "s", "--sessions", "../s.db", "--allow", "call_7"];
    let mut command = workspace.command(&resume);
    command.current_dir(workspace.path().join("elsewhere"));
    // The session has precedence over the environment.
    let resumed: Run = command.env("TOOLWIT_MODEL", "openai:other").output().unwrap().into();
    assert_eq!(
        (resumed.code, resumed.stdout.as_str()),
        (Some(0), "It says 1.\n"),
        "{resumed}"
    );
    assert!(resumed.stderr.contains("continuing with `--grants /"), "{resumed}");
}

#[test]
fn options_of_the_command_line_replace_those_of_the_session() {
    let workspace = waiting_run(&[]).file("other.toml", "[[turn]]\nanswer = \"Other.\"\n");
    let resume = ["resume", "s", "--sessions", "s.db", "--deny", "call_7"];
    let other = workspace.run(&[&resume[..], &["--model", "scripted:other.toml"]].concat());
    assert_eq!((other.code, other.stdout.as_str()), (Some(0), "Other.\n"), "{other}");
    let next = workspace.run(&[&["run", "And now?"], &SESSION[..]].concat());
    assert_eq!(next.stdout, "Other.\n", "they are stored: {next}");
}

#[test]
fn grants_are_read_again_and_the_environment_replaces_their_file() {
    let resume = ["resume", "s", "--sessions", "s.db", "--ask-later=1ms"];
    let asked = waiting_run(&[]).run(&resume);
    assert_eq!(asked.code, Some(4), "it can change something: {asked}");
    // Without the grant, the call changes nothing and needs no approval.
    let revoked = waiting_run(&[]).file("grants.toml", "version = 1\n").run(&resume);
    assert_eq!(revoked.code, Some(0), "{revoked}");
    let narrowed = waiting_run(&[]).file("narrow.toml", "version = 1\n");
    let run = narrowed.variable("TOOLWIT_GRANTS", "narrow.toml").run(&resume);
    assert_eq!(run.code, Some(0), "{run}");
    assert!(!run.stderr.contains("continuing with"), "{run}");
}

// attack: M5
#[test]
fn fewer_approvals_are_not_restored_and_more_are() {
    let workspace = workspace();
    let allowed = save(&workspace, &["--approve", "never"]);
    assert_eq!(allowed.stdout, "It says 1.\n", "{allowed}");
    let again = |flags: &[&str]| workspace.run(&[&["run", "Again."], &SESSION[..], flags].concat());
    let asked = again(&[]);
    assert!(asked.stdout.contains("the call was not approved"), "{asked}");
    let hint = "the run had `--approve never`, which weakens its protection and is not restored";
    assert!(asked.stderr.contains(hint), "{asked}");
    let named = again(&["--approve", "never"]);
    assert_eq!(named.stdout, "It says 1.\n", "{named}");
    let strict = again(&["--approve", "deny"]);
    assert!(strict.stdout.contains("policy of the operator"), "{strict}");
    let restored = again(&[]);
    assert!(restored.stdout.contains("policy of the operator"), "{restored}");
}

#[test]
fn no_credential_is_stored_with_a_session() {
    let workspace = workspace()
        .variable("OPENAI_API_KEY", "planted-key")
        .variable("TOKEN", "planted-token")
        .file(
            "mcp.toml",
            "[servers.a]\nurl = \"http://127.0.0.1:1/\"\nheaders = { authorization = { env = \"TOKEN\" } }\n",
        );
    let flags = ["--model", "openai:m", "--mcp", "mcp.toml", "--run-wall", "1s"];
    let url = ["--base-url", "http://127.0.0.1:1/v1?key=planted-in-url"];
    let run = |flags: &[&str]| workspace.run(&[&["run", "Hello."], &SESSION[..], flags].concat());
    let failed = run(&[&flags[..], &url].concat());
    assert_ne!(failed.code, Some(0), "{failed}");
    let mut stored = Vec::new();
    for file in fs::read_dir(workspace.path()).unwrap().map(|file| file.unwrap().path()) {
        if file.file_name().unwrap().to_string_lossy().starts_with("s.db") && file.is_file() {
            stored.extend(fs::read(file).unwrap());
        }
    }
    let stored = String::from_utf8_lossy(&stored);
    assert!(
        stored.contains("settings_stored") && stored.contains("mcp.toml"),
        "{failed}"
    );
    assert!(!stored.contains("planted"), "a credential is stored");
    let continued = run(&[]);
    assert_eq!(continued.code, Some(2), "{continued}");
    assert!(
        continued.stderr.contains("hint: pass `--base-url` again"),
        "{continued}"
    );
}

// attack: M5
#[test]
fn sessions_of_another_user_are_continued_only_after_they_are_accepted() {
    let workspace = waiting_run(&[]);
    let of_another = |arguments: &[&str]| -> Run {
        let mut command = workspace.command(arguments);
        command.env("XDG_DATA_HOME", workspace.path().join("another"));
        command.output().unwrap().into()
    };
    let file = ["--sessions", "s.db"];
    for arguments in [
        &["resume", "s", "--allow", "call_7"][..],
        &["run", "Go on.", "--session", "s"],
        &["chat", "--session", "s"],
        &["approve", "s", "call_7"],
        &["deny", "s", "call_7", "--reason", "no"],
    ] {
        let refused = of_another(&[arguments, &file].concat());
        assert_eq!(refused.code, Some(2), "{refused}");
        assert!(
            refused
                .stderr
                .contains("nothing proves that this user created the sessions in s.db"),
            "{refused}"
        );
        assert!(
            refused.stderr.contains("`toolwit sessions accept --sessions s.db`"),
            "{refused}"
        );
    }
    let shown = of_another(&[&["sessions", "show", "s"][..], &file].concat());
    assert_eq!(shown.code, Some(0), "it can be read: {shown}");
    let none = of_another(&["sessions", "accept", "--sessions", "other.db"]);
    assert!(none.stderr.contains("other.db has no sessions to accept"), "{none}");
    let accepted = of_another(&[&["sessions", "accept"][..], &file].concat());
    assert_eq!(accepted.code, Some(0), "{accepted}");
    let resume = [&["resume", "s", "--allow", "call_7"][..], &file].concat();
    let unnamed = of_another(&resume);
    assert_eq!(unnamed.code, Some(2), "{unnamed}");
    assert!(unnamed.stderr.contains("pass them again: `--grants "), "{unnamed}");
    let resumed = of_another(&[&resume[..], &["--grants", "grants.toml"]].concat());
    assert_eq!(resumed.stdout, "It says 1.\n", "{resumed}");
    let own = workspace.run(&[&["run", "Go on.", "--session", "s"][..], &file].concat());
    assert_eq!(own.code, Some(2), "it is the file of one user: {own}");
}

/// Returns a workspace with the session `t`, whose process ended during a call.
fn run_killed_in_a_call() -> Workspace {
    let workspace = workspace();
    let saved = save(&workspace, &["--approve", "never"]);
    assert_eq!(saved.code, Some(0), "{saved}");
    // The entries after the start of the call were not written.
    let forked = ["sessions", "fork", "s", "t", "--at", "6", "--sessions", "s.db"];
    let forked = workspace.run(&forked);
    assert_eq!(forked.code, Some(0), "{forked}");
    workspace.file("save.toml", ANSWER)
}

#[test]
fn a_call_that_was_running_runs_again_by_a_decision_that_approves_it() {
    let resume = ["resume", "t", "--sessions", "s.db"];
    let again = [&resume[..], &["--resolve", "call_7=run-again"]].concat();
    let workspace = run_killed_in_a_call();
    let undecided = workspace.run(&resume);
    assert_eq!(undecided.code, Some(2), "{undecided}");
    let hint = "`toolwit resume t --resolve call_7=done --sessions s.db`";
    assert!(undecided.stderr.contains(hint), "{undecided}");
    let resumed = workspace.run(&again);
    assert_eq!(
        (resumed.code, resumed.stdout.as_str()),
        (Some(0), "It says 1.\n"),
        "{resumed}"
    );
    // Another grant is not what the person decided about.
    let wider = NOTES_GRANTS.replace("1KiB", "2KiB");
    let refused = run_killed_in_a_call().file("grants.toml", wider).run(&again);
    assert!(
        refused.stdout.contains("has changed since the answer was given"),
        "{refused}"
    );
}

/// Returns the file of an MCP server that serves the plugins in `served`.
fn server_file() -> String {
    let command = serde_json::to_string(TOOLWIT).unwrap();
    format!("[mcp.notes]\ncommand = {command}\nargs = [\"mcp\", \"--plugins\", \"served\"]\n")
}

/// Returns a workspace with the session `s`, whose run waits for the approval of a call of an MCP server's tool. The run first
/// calls the tool `first`, if there is one.
fn run_waiting_for_a_server(flags: &[&str], first: Option<&str>) -> Workspace {
    let notes = wat::parse_str(NOTES).unwrap();
    let first = first.map(|tool| format!("[[turn]]\ncall = [{{ {tool} }}]\n"));
    let workspace = Workspace::new()
        .file("served/notes.wasm", notes)
        .file("mcp.toml", server_file())
        .file("save.toml", first.unwrap_or_default() + CALL + ANSWER);
    let run = [
        "run",
        "Save.",
        "--model",
        "scripted:save.toml",
        "--mcp",
        "mcp.toml",
        "--ask-later",
    ];
    let left = workspace.run(&[&run[..], &SESSION, flags].concat());
    assert_eq!(left.code, Some(4), "{left}");
    workspace.file("save.toml", ANSWER)
}

const RESUME: [&str; 4] = ["resume", "s", "--sessions", "s.db"];

fn resumed(workspace: &Workspace, flags: &[&str]) -> Run {
    workspace.run(&[&RESUME[..], flags].concat())
}

#[test]
fn an_approval_reaches_the_tool_of_an_mcp_server_in_every_exposure() {
    let search = "tool = \"search_tools\", arguments = { need = \"a tool that saves\" }";
    let exposures = [
        (&[][..], None),
        (&["--exposure", "search"], Some(search)),
        (&["--exposure", "facade"], Some("tool = \"notes\"")),
    ];
    for (flags, first) in exposures {
        let run = resumed(&run_waiting_for_a_server(flags, first), &["--allow", "call_7"]);
        assert_eq!(
            (run.code, run.stdout.as_str()),
            (Some(0), "It says 1.\n"),
            "{flags:?}: {run}"
        );
    }
    let workspace = run_waiting_for_a_server(&[], None);
    let approved = workspace.run(&["approve", "s", "call_7", "--sessions", "s.db"]);
    assert_eq!(approved.code, Some(0), "{approved}");
    assert_eq!(resumed(&workspace, &[]).stdout, "It says 1.\n");
    let chat = ["chat", "--session", "s", "--sessions", "s.db"];
    let chat = run_waiting_for_a_server(&[], None).run_with_input(&chat, "/approve call_7\n");
    assert!(chat.stdout.contains("It says 1."), "{chat}");
}

#[test]
fn a_run_whose_server_lost_the_tool_fails_visibly_and_is_resumed_later() {
    let notes = wat::parse_str(NOTES).unwrap();
    let workspace = run_waiting_for_a_server(&[], None);
    fs::remove_file(workspace.path().join("served/notes.wasm")).unwrap();
    let gone = resumed(&workspace, &["--allow", "call_7"]);
    assert_ne!(gone.code, Some(0), "{gone}");
    assert_eq!(gone.stdout, "", "{gone}");
    assert!(
        gone.stderr
            .contains("the tools of these calls are gone: `save` (call `call_7`)"),
        "{gone}"
    );
    let workspace = workspace.file("served/notes.wasm", notes);
    assert_eq!(resumed(&workspace, &["--allow", "call_7"]).stdout, "It says 1.\n");
}

#[test]
fn the_reason_of_a_denial_reaches_the_model_with_and_without_the_server() {
    for is_gone in [false, true] {
        let workspace = run_waiting_for_a_server(&[], None);
        if is_gone {
            fs::remove_file(workspace.path().join("served/notes.wasm")).unwrap();
        }
        let denied = resumed(&workspace, &["--deny", "call_7=not that one"]);
        assert_eq!(denied.code, Some(0), "{denied}");
        assert!(denied.stdout.contains("not that one"), "{denied}");
    }
}

#[test]
fn a_fork_after_the_last_entry_is_refused() {
    let workspace = workspace();
    assert_eq!(save(&workspace, &["--approve", "never"]).code, Some(0));
    let fork = |new: &str, at: &str| {
        let command = ["sessions", "fork", "s", new, "--at", at, "--sessions", "s.db"];
        workspace.run(&command)
    };
    let refused = fork("t", "999");
    assert_eq!(refused.code, Some(2), "{refused}");
    assert!(
        refused.stderr.contains("so it cannot be forked at entry 999"),
        "{refused}"
    );
    assert_eq!(fork("t", "6").code, Some(0), "the refused fork left no session");
}
