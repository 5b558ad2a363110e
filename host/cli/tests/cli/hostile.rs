//! Packages by a stranger: no text in them controls or forges output.

use std::fs;

use serde_json::Value;

use crate::guests::{FOREIGN, PLAIN, PLAIN_WIT, SETTINGS};
use crate::support::Workspace;

/// Escape sequences, control characters of 8 bits, reversed and invisible text, unusual spaces, and lines that look like the host's.
const HOSTILE: &str = "\u{1b}[2J\u{1b}]0;title\u{7}\u{9b}31m\u{202e}\u{2066}\u{200b}\u{feff}\u{ad}\u{e0041}\u{2028}\u{b}\u{c}\r\
    error: forged\nerror: forged\nhint: forged\rwarning: forged\ndenied: forged\nok       forged\n\n WARN forged\r\nforged";

/// The beginnings of lines that belong to the host.
const LINES: [&str; 8] = [
    "error:", "hint:", "warning:", "denied:", "ok ", "problem ", " WARN ", "forged",
];

/// Returns whether a terminal may act on a character, or not show it. Written independently of the host's own function.
fn is_hostile(c: char) -> bool {
    (c.is_control() && c != '\n')
        || matches!(u32::from(c), 0xad | 0x200b..=0x200f | 0x2028..=0x202e | 0x2060..=0x206f | 0xfeff | 0xe0000..=0xe007f)
}

/// Requires that a text has no hostile characters, and that no line begins like one of the host and is forged.
fn require_clean(text: &str, context: &str) {
    assert!(!text.chars().any(is_hostile), "{context}:\n{text:?}");
    let is_forged = |line: &&str| {
        let rest = LINES.iter().find_map(|start| line.strip_prefix(start));
        *line == "forged" || rest.is_some_and(|rest| rest.trim_start().starts_with("forged"))
    };
    assert_eq!(text.lines().find(is_forged), None, "{context}:\n{text}");
}

/// Writes text as a string of the WebAssembly text format.
fn wat_string(text: &str) -> String {
    text.bytes().map(|byte| format!("\\{byte:02x}")).collect()
}

/// A component whose functions return the hostile text, fail with it, and write it to standard error.
fn hostile_component() -> String {
    let (text, length) = (wat_string(HOSTILE), HOSTILE.len());
    format!(
        r#"
(component
  (import "wasi:io/error@0.2.0" (instance $errors (export "error" (type (sub resource)))))
  (alias export $errors "error" (type $error))
  (import "wasi:io/streams@0.2.0" (instance $streams
    (export "output-stream" (type $stream (sub resource)))
    (alias outer 1 $error (type $outer-error))
    (export "error" (type $error (eq $outer-error)))
    (type $failure (variant (case "last-operation-failed" (own $error)) (case "closed")))
    (export "stream-error" (type $stream-error (eq $failure)))
    (export "[method]output-stream.blocking-write-and-flush" (func
      (param "self" (borrow $stream)) (param "contents" (list u8)) (result (result (error $stream-error)))))))
  (alias export $streams "output-stream" (type $stream))
  (import "wasi:cli/stderr@0.2.0" (instance $stderr
    (alias outer 1 $stream (type $outer-stream))
    (export "output-stream" (type $stream (eq $outer-stream)))
    (export "get-stderr" (func (result (own $stream))))))
  (core module $libc
    (memory (export "memory") 1)
    (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 8192)))
  (core instance $libc (instantiate $libc))
  (alias core export $libc "memory" (core memory $memory))
  (alias core export $libc "realloc" (core func $realloc))
  (core func $get (canon lower (func $stderr "get-stderr")))
  (core func $write (canon lower (func $streams "[method]output-stream.blocking-write-and-flush")
    (memory $memory) (realloc $realloc)))
  (core module $m
    (import "libc" "memory" (memory 1))
    (import "host" "get" (func $get (result i32)))
    (import "host" "write" (func $write (param i32 i32 i32 i32)))
    (data (i32.const 1024) "{text}")
    (func $log
      (call $write (call $get) (i32.const 1024) (i32.const {length}) (i32.const 512)))
    (func (export "returns") (result i32)
      (call $log)
      (i32.store (i32.const 16) (i32.const 1024))
      (i32.store (i32.const 20) (i32.const {length}))
      (i32.const 16))
    (func (export "fails") (result i32)
      (call $log)
      (i32.store (i32.const 32) (i32.const 1))
      (i32.store (i32.const 36) (i32.const 1024))
      (i32.store (i32.const 40) (i32.const {length}))
      (i32.const 32))
    (func (export "traps") (call $log) unreachable))
  (core instance $i (instantiate $m
    (with "libc" (instance $libc))
    (with "host" (instance (export "get" (func $get)) (export "write" (func $write))))))
  (func (export "returns") (result string) (canon lift (core func $i "returns") (memory $memory)))
  (func (export "fails") (result (result string (error string))) (canon lift (core func $i "fails") (memory $memory)))
  (func (export "traps") (canon lift (core func $i "traps"))))
"#
    )
}

/// A manifest with the hostile text in every field that takes any text.
fn hostile_manifest() -> String {
    let text = format!("{HOSTILE:?}").replace("\\u{", "\\U{");
    let text = escape_for_toml(&text);
    format!(
        "description = {text}\ncategory = {text}\ntags = [{text}]\nframeworks = [{text}]\nuse_case = {text}\n\
         limitations = {text}\nexamples = [{text}]\n\
         [[environment]]\nname = \"key\"\ndescription = {text}\nrequired = false\n\
         [[tools]]\nexport = \"returns\"\ndescription = {text}\nuse_case = {text}\nexamples = [{text}]\ntags = [{text}]\n"
    )
}

/// Converts the escapes of a Rust string to those of TOML.
fn escape_for_toml(rust: &str) -> String {
    let mut toml = String::new();
    let mut rest = rust;
    while let Some((before, after)) = rest.split_once("\\U{") {
        let (digits, after) = after.split_once('}').unwrap();
        toml.push_str(&format!("{before}\\U{digits:0>8}"));
        rest = after;
    }
    toml + rest
}

/// A directory with packages that are hostile in every text.
fn workspace() -> Workspace {
    let docs = PLAIN_WIT.replace(
        "Halve an even number.",
        "error: forged\n    /// hint: forged\n    ///\n    /// forged",
    );
    let scenario = format!(
        "name = \"s\"\n[[turn]]\nsay = {text}\ncall = [{{ tool = \"returns\" }}, {{ tool = \"fails\" }}, {{ tool = \"traps\" }}]\n\
         [[turn]]\nanswer = {text}\n",
        text = escape_for_toml(&format!("{HOSTILE:?}").replace("\\u{", "\\U{"))
    );
    let grants = format!(
        "version = 1\n[[grant]]\nplugin = \"settings\"\nany-version = true\nconfig = {{ greeting = {text} }}\nfiles = []\n",
        text = escape_for_toml(&format!("{HOSTILE:?}").replace("\\u{", "\\U{"))
    );
    Workspace::with("hostile", &hostile_component())
        .and("plain", PLAIN)
        .and("settings", SETTINGS)
        .and("foreign", FOREIGN)
        .and("error: forged\nhint: forged", PLAIN)
        .and("\u{1b}[31mred\u{202e}", PLAIN)
        .file("tools/hostile.toml", hostile_manifest())
        .file("tools/plain.wit", docs)
        .file(
            "tools/settings.wit",
            format!("package a:b; // {HOSTILE}\n\nworld w {{ {HOSTILE} }}"),
        )
        .file(
            "tools/foreign.toml",
            format!("{text:?} = 1\n", text = "\u{1b}[31merror: forged"),
        )
        .file("scenario.toml", scenario)
        .file(
            "toolwit.toml",
            "[grants]\nfile = \"project.toml\"\n[limits]\nfuel = 30_000_000_000\n",
        )
        .file("project.toml", grants)
}

/// Commands that print texts of packages, with and without detail.
const COMMANDS: [&[&str]; 27] = [
    &["list"],
    &["search", "forged"],
    &["show", "returns"],
    &["show", "halve"],
    &["show", "\u{1b}[31mnone\nerror: forged"],
    &["inspect", "tools/hostile.wasm"],
    &["inspect", "tools/plain.wasm"],
    &["inspect", "tools/settings.wasm"],
    &["inspect", "tools/error: forged\nhint: forged.wasm"],
    &["lint", "tools/hostile.wasm"],
    &["lint", "tools/settings.wasm"],
    &["call", "fails", "-v"],
    &["call", "traps", "-v"],
    &["call", "settings#greet", "-v"],
    &["call", "--flag\u{1b}[31m\nerror: forged"],
    &["run", "Hello", "--model", "scripted:scenario.toml", "-v"],
    &["explain", "settings", "config \u{1b}[2J\nerror: forged"],
    &["grant", "hostile"],
    &["grant", "settings", "--config", "a\u{202e}=b"],
    &["grant", "settings"],
    &["revoke", "none\nerror: forged"],
    &["trust"],
    &["doctor"],
    &["refresh", "none\u{9b}\nerror: forged"],
    &["pack", "tools/settings.wasm", "--out", "packed.wasm"],
    &["add", "tools/plain.wasm", "--plugins", "other"],
    &["remove", "error: forged\nhint: forged"],
];

// attack: C21, J3, J5
#[test]
fn no_text_of_a_package_controls_the_terminal_or_forges_a_line() {
    let workspace = workspace();
    for command in COMMANDS {
        let run = workspace.run(command);
        assert!(run.code.is_some(), "{command:?}: {run}");
        let printed = run.stdout.lines().count() + run.stderr.lines().count();
        assert!(printed > 0, "{command:?}");
        let is_run = command[0] == "run";
        // The answer of the model is the data of `run`, and a pipe receives its lines.
        require_clean(if is_run { "" } else { &run.stdout }, &format!("{command:?}"));
        require_clean(&run.stderr, &format!("{command:?}"));
        assert!(!run.stdout.chars().any(is_hostile), "{command:?}: {run}");
    }
    let run = workspace.run(&["run", "Hello", "--model", "scripted:scenario.toml"]);
    assert!(
        run.code == Some(0) && run.stderr.contains("forged"),
        "the scenario is played: {run}"
    );
    let listed = workspace.run(&["list"]).stdout;
    assert!(
        listed.contains("\n  returns") && listed.contains("forged"),
        "the component is valid: {listed}"
    );
}

// attack: C21, J3
#[test]
fn documents_have_the_escapes_of_hostile_characters() {
    let workspace = workspace();
    for command in COMMANDS.iter().chain([&["call", "returns"][..]].iter()) {
        let run = workspace.run(&[command, &["--json"][..]].concat());
        let document: Result<Value, _> = serde_json::from_str(&run.stdout);
        assert!(
            document.is_ok() && run.stdout.lines().count() == 1,
            "{command:?}: {run}"
        );
        assert!(!run.stdout.chars().any(is_hostile), "{command:?}: {run}");
        require_clean(&run.stderr, &format!("{command:?}"));
    }
    let (_, document) = workspace.json(&["call", "returns", "--json"]);
    assert_eq!(document["result"], HOSTILE, "the value is unchanged");
}

// attack: C21, J3
#[test]
fn a_pipe_receives_the_lines_of_a_result_without_control_characters() {
    let run = workspace().run(&["call", "returns", "-v"]);
    assert_eq!(run.code, Some(0), "{run}");
    assert!(
        run.stdout
            .contains("error: forged\nerror: forged\nhint: forgedwarning: forged\n"),
        "{run}"
    );
    assert!(!run.stdout.chars().any(is_hostile), "{run}");
    require_clean(&run.stderr, "call");
    assert!(
        run.stderr.contains("guest output:\n") && run.stderr.contains("  hint: forged"),
        "{run}"
    );
}

// attack: J4
#[test]
fn long_texts_are_refused_or_cut() {
    let long = "x".repeat(200_000);
    let workspace = Workspace::with("plain", PLAIN)
        .and("other", PLAIN)
        .file("tools/plain.toml", format!("version = \"{long}\"\n"))
        .file(
            "tools/other.toml",
            format!("description = \"{long}\"\nuse_case = \"{long}\"\n"),
        );
    for command in [
        &["list"][..],
        &["doctor"],
        &["inspect", "tools/plain.wasm"],
        &["show", "other#add"],
    ] {
        let run = workspace.run(command);
        let length = run.stdout.len() + run.stderr.len();
        assert!(length < 20_000, "{command:?} prints {length} bytes");
    }
    let listed = workspace.run(&["list"]);
    assert!(
        listed
            .stdout
            .contains("plain.toml:1:11: the text is longer than 128 characters"),
        "{listed}"
    );
}

/// Runs a copied command with a program that records its arguments.
#[cfg(unix)]
fn type_in_shell(workspace: &Workspace, command: &str) -> Vec<String> {
    let script = "for word do printf '%s\\n' \"$word\"; done > words";
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("toolwit");
    fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", directory.path().display());
    let status = std::process::Command::new("/bin/sh")
        .args(["-c", command])
        .current_dir(workspace.path())
        .env("PATH", path)
        .status()
        .unwrap();
    assert!(status.success(), "{command}");
    let words = fs::read_to_string(workspace.path().join("words")).unwrap();
    words.lines().map(str::to_owned).collect()
}

// attack: J2
#[cfg(unix)]
#[test]
fn a_copied_hint_is_one_command_with_the_words_of_the_package() {
    for name in [
        "a; touch pwned #",
        "$(touch pwned)",
        "' && touch pwned && '",
        "--any-version",
        "-v",
        "~",
        "a\"b",
    ] {
        let workspace = Workspace::with("settings", SETTINGS).file(
            "tools/settings.toml",
            format!("[[environment]]\nname = {name:?}\nrequired = true\n"),
        );
        let value = format!("{name}=VALUE");
        let called = workspace.run(&["call", "greet"]);
        let (_, doctor) = workspace.json(&["doctor", "--json"]);
        let findings = doctor["findings"].as_array().unwrap();
        let need = findings.iter().find(|finding| finding["check"] == "needs").unwrap();
        for hint in [&called.stderr, need["suggestion"].as_str().unwrap()] {
            let command = hint.split('`').find(|part| part.starts_with("toolwit grant")).unwrap();
            let words = type_in_shell(&workspace, command);
            let option = words.iter().position(|word| word.starts_with("--config")).unwrap();
            let given = words[option]
                .strip_prefix("--config=")
                .unwrap_or_else(|| &words[option + 1]);
            assert_eq!((words[0].as_str(), given), ("grant", value.as_str()), "{command}");
        }
        assert!(!workspace.path().join("pwned").exists(), "{name}");
    }
}
