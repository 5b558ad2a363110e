//! `toolwit chat` with a person at a terminal.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::process::Child;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::guests::{NOTES, NOTES_GRANTS, PLAIN, SLOW};
use crate::interrupt::send_signal;
use crate::support::Workspace;

const CHAT: [&str; 5] = [
    "chat",
    "--model",
    "scripted:chat.toml",
    "--fuel",
    "18446744073709551615",
];

/// The question of a line editor about the position of the cursor, and an answer.
const POSITION: (&str, &[u8]) = ("\x1b[6n", b"\x1b[1;1R");

/// The time after which a command that prints nothing has failed.
const SILENCE_MAX: Duration = Duration::from_secs(60);

/// A terminal with a command.
struct Terminal {
    child: Child,
    keyboard: File,
    screen: Receiver<Vec<u8>>,
    output: String,
    /// The length of the output that was waited for.
    seen: usize,
}

impl Terminal {
    fn start(workspace: &Workspace, arguments: &[&str]) -> Self {
        let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&controller).unwrap();
        unlockpt(&controller).unwrap();
        let path = ptsname(&controller, Vec::new()).unwrap().into_string().unwrap();
        let mut options = OpenOptions::new();
        let no_control = i32::try_from(OFlags::NOCTTY.bits()).unwrap();
        options.read(true).write(true).custom_flags(no_control);
        let terminal = options.open(path).unwrap();
        let size = Winsize {
            ws_row: 50,
            ws_col: 100,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        tcsetwinsize(&terminal, size).unwrap();
        let child = workspace
            .command(arguments)
            .env("TERM", "xterm")
            .stdin(terminal.try_clone().unwrap())
            .stdout(terminal.try_clone().unwrap())
            .stderr(terminal)
            .spawn()
            .unwrap();
        let keyboard = File::from(controller);
        let mut display = keyboard.try_clone().unwrap();
        let (sender, screen) = channel();
        // The thread ends with the command, which closes the terminal.
        std::thread::spawn(move || {
            let mut bytes = [0; 1024];
            while let Ok(count @ 1..) = display.read(&mut bytes) {
                if sender.send(bytes[..count].to_vec()).is_err() {
                    break;
                }
            }
        });
        Self {
            child,
            keyboard,
            screen,
            output: String::new(),
            seen: 0,
        }
    }

    fn type_text(&mut self, text: &str) {
        self.keyboard.write_all(text.as_bytes()).unwrap();
    }

    /// Sends what Ctrl-C sends to the command of a terminal.
    fn interrupt(&self) {
        send_signal("-INT", &self.child);
    }

    /// Reads until the text appears after what was waited for before.
    fn wait_for(&mut self, text: &str) {
        while !self.output[self.seen..].contains(text) {
            self.read()
                .unwrap_or_else(|| panic!("the command ended without {text:?}:\n{}", self.output));
        }
        self.seen += self.output[self.seen..].find(text).unwrap() + text.len();
    }

    /// Reads a part of the output, and answers questions of the line editor. Returns `None` at its end.
    fn read(&mut self) -> Option<()> {
        let questions = self.output.matches(POSITION.0).count();
        match self.screen.recv_timeout(SILENCE_MAX) {
            Ok(bytes) => self.output.push_str(&String::from_utf8_lossy(&bytes)),
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) => panic!("the command is silent:\n{}", self.output),
        }
        for _ in questions..self.output.matches(POSITION.0).count() {
            self.keyboard.write_all(POSITION.1).unwrap();
        }
        Some(())
    }

    /// Reads the rest of the output. Returns the exit code.
    fn end(&mut self) -> (Option<i32>, &str) {
        while self.read().is_some() {}
        (self.child.wait().unwrap().code(), &self.output)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Writing fails if the command has ended.
        let _ = self.child.kill();
    }
}

#[test]
fn late_result_wakes_the_chat_and_what_was_typed_stays() {
    let script = r#"
[[turn]]
call = [{ tool = "start" }]
[[turn]]
answer = "It runs."
[[turn]]
answer = "It is done: {{result}}"
[[turn]]
expect.prompt = { equals = "Next" }
answer = "Goodbye."
"#;
    let workspace = Workspace::with("slow", SLOW).file("chat.toml", script);
    let mut terminal = Terminal::start(&workspace, &CHAT);
    terminal.wait_for("> ");
    terminal.type_text("Start.\r");
    terminal.wait_for("It runs.");
    terminal.wait_for("a call runs in the background");
    terminal.wait_for("> ");
    terminal.type_text("Ne");
    terminal.wait_for("It is done: [result of the background call");
    terminal.wait_for("> ");
    terminal.type_text("xt\r");
    terminal.wait_for("Goodbye.");
    terminal.wait_for("> ");
    terminal.type_text("\x04");
    let (code, output) = terminal.end();
    assert_eq!(code, Some(0), "{output}");
}

// attack: M2
#[test]
fn what_was_typed_before_a_question_does_not_answer_it() {
    let script = r#"
[[turn]]
call = [{ tool = "work" }]
[[turn]]
call = [{ tool = "save" }]
[[turn]]
answer = "It says: {{result}}"
"#;
    let workspace = Workspace::with("slow", SLOW)
        .and("notes", NOTES)
        .file("grants.toml", NOTES_GRANTS)
        .file("chat.toml", script);
    let mut terminal = Terminal::start(&workspace, &[&CHAT[..], &["--grants", "grants.toml"]].concat());
    terminal.wait_for("> ");
    terminal.type_text("Save it.\r");
    terminal.wait_for("calls");
    terminal.type_text("y\r");
    terminal.wait_for("run it? ");
    terminal.type_text("n not now\r");
    terminal.wait_for("the user refused it: not now");
    terminal.wait_for("> ");
    terminal.type_text("/quit\r");
    let (code, output) = terminal.end();
    assert_eq!(code, Some(0), "{output}");
}

/// Starts a chat in which a call of `save` waits for an answer.
fn start_chat_with_question(script: &str) -> (Workspace, Terminal) {
    let script = format!("[[turn]]\ncall = [{{ tool = \"save\", id = \"call_7\" }}]\n{script}");
    let workspace = Workspace::with("notes", NOTES)
        .file("grants.toml", NOTES_GRANTS)
        .file("chat.toml", script);
    let stored = ["--grants", "grants.toml", "--session", "s", "--sessions", "s.db"];
    let mut terminal = Terminal::start(&workspace, &[&CHAT[..], &stored].concat());
    terminal.wait_for("> ");
    terminal.type_text("Save it.\r");
    terminal.wait_for("run it? ");
    (workspace, terminal)
}

#[test]
fn a_question_at_a_terminal_ends_when_another_process_answers_it() {
    let script = r#"
[[turn]]
answer = "It says {{result}}."
[[turn]]
expect.prompt = { equals = "Next" }
answer = "Goodbye."
"#;
    let (workspace, mut terminal) = start_chat_with_question(script);
    terminal.type_text("n half an answ");
    let mut second = Terminal::start(&workspace, &["approve", "s", "--sessions", "s.db"]);
    second.wait_for("run it? ");
    second.type_text("y\r");
    second.wait_for("continues");
    assert_eq!(second.end().0, Some(0));
    terminal.wait_for("by another process");
    terminal.wait_for("It says 1.");
    terminal.wait_for("> ");
    terminal.type_text("Next\r");
    terminal.wait_for("Goodbye.");
    terminal.type_text("/quit\r");
    let (code, output) = terminal.end();
    assert_eq!(code, Some(0), "{output}");
}

#[test]
fn a_cancelled_question_takes_nothing_of_the_next_message() {
    let script = "[[turn]]\nexpect.prompt = { equals = \"Next\" }\nanswer = \"Goodbye.\"";
    let (_workspace, mut terminal) = start_chat_with_question(script);
    terminal.interrupt();
    terminal.wait_for("turn interrupted");
    terminal.wait_for("> ");
    terminal.type_text("Next\r");
    terminal.wait_for("Goodbye.");
    terminal.type_text("/quit\r");
    let (code, output) = terminal.end();
    assert_eq!(code, Some(0), "{output}");
}

#[test]
fn arrow_keys_recall_earlier_messages_and_tab_completes_commands() {
    let script =
        "[[turn]]\nanswer = \"One.\"\n[[turn]]\nexpect.prompt = { equals = \"Hello there\" }\nanswer = \"Two.\"";
    let workspace = Workspace::with("plain", PLAIN).file("chat.toml", script);
    let mut first = Terminal::start(&workspace, &CHAT);
    first.wait_for("> ");
    first.type_text("Hello there\r");
    first.wait_for("One.");
    first.wait_for("> ");
    // Arrow up.
    first.type_text("\x1b[A\r");
    first.wait_for("Two.");
    first.wait_for("> ");
    first.type_text("/bud\t\r");
    first.wait_for("no cost limit");
    first.type_text("/quit\r");
    assert_eq!(first.end().0, Some(0));
    let workspace = workspace.file(
        "chat.toml",
        "[[turn]]\nexpect.prompt = { equals = \"Hello there\" }\nanswer = \"Again.\"",
    );
    let mut second = Terminal::start(&workspace, &CHAT);
    second.wait_for("> ");
    second.type_text("\x1b[A\x1b[A\x1b[A\r");
    second.wait_for("Again.");
    second.type_text("/quit\r");
    assert_eq!(second.end().0, Some(0));
}

#[test]
fn ctrl_c_at_the_prompt_needs_a_second_one() {
    let workspace = Workspace::with("plain", PLAIN).file("chat.toml", "[[turn]]\nanswer = \"Never.\"");
    let mut terminal = Terminal::start(&workspace, &CHAT);
    terminal.wait_for("> ");
    terminal.type_text("unsent\x03");
    terminal.wait_for("interrupt again to end the session");
    terminal.wait_for("> ");
    terminal.type_text("\x03");
    let (code, output) = terminal.end();
    assert_eq!(code, Some(130), "{output}");
    assert!(output.contains("session interrupted"), "{output}");
}

#[test]
fn calls_that_wait_are_counted_and_nothing_is_printed_into_a_question() {
    let calls = ["call_7", "call_8", "call_9"].map(|id| format!("{{ tool = \"save\", id = \"{id}\" }}"));
    let script = format!("[[turn]]\ncall = [{}]\n", calls.join(", "));
    let workspace = Workspace::with("notes", NOTES)
        .file("grants.toml", NOTES_GRANTS)
        .file("save.toml", script)
        .file("answer.toml", "[[turn]]\nanswer = \"It says {{result}}.\"\n");
    let run = [
        "run",
        "Save.",
        "--model",
        "scripted:save.toml",
        "--grants",
        "grants.toml",
    ];
    let stored = ["--session", "s", "--sessions", "s.db"];
    let mut terminal = Terminal::start(&workspace, &[&run[..], &stored].concat());
    terminal.wait_for("2 more calls wait for your answer");
    terminal.wait_for("run it? ");
    terminal.type_text("y\r");
    terminal.wait_for("1 more call waits for your answer");
    terminal.wait_for("run it? ");
    // The first call ends while the second question is open.
    let show = ["sessions", "show", "s", "--sessions", "s.db", "--json"];
    let start = Instant::now();
    while !workspace.run(&show).stdout.contains("tool_returned") {
        assert!(start.elapsed() < SILENCE_MAX, "the first call does not end");
    }
    let before = terminal.seen;
    terminal.type_text("n too late\r");
    terminal.wait_for("run it? ");
    let printed = &terminal.output[before..terminal.seen];
    let position = |text: &str| printed.find(text).unwrap_or_else(|| panic!("{text:?} in {printed}"));
    assert!(position("too late") < position("result"), "{printed}");
    assert!(!printed.contains("for your answer"), "no further call waits: {printed}");
    // The process ends while the question is open.
    terminal.child.kill().unwrap();
    terminal.end();
    let resume = ["resume", "s", "--sessions", "s.db", "--model", "scripted:answer.toml"];
    let mut resumed = Terminal::start(&workspace, &resume);
    resumed.wait_for("run it? ");
    resumed.type_text("y\r");
    resumed.wait_for("It says 1.");
    let (code, output) = resumed.end();
    assert_eq!(code, Some(0), "{output}");
}
