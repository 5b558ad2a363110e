//! `toolwit dev`.

#![cfg(unix)]

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::ChildStderr;

use crate::guests::{DRAW, PLAIN, PLAIN_WIT};
use crate::interrupt::send_signal;
use crate::support::{Run, Workspace};

/// Reads the diagnostics of one build and its calls.
fn read_cycle(stderr: &mut BufReader<ChildStderr>) -> String {
    let mut text = String::new();
    while !text.contains("waiting for changes") {
        assert_ne!(
            stderr.read_line(&mut text).unwrap(),
            0,
            "the command ended early: {text}"
        );
    }
    text
}

/// Saves a file at once, as an editor does: the command never reads a half-written one.
fn save(workspace: &Workspace, path: &str, text: &str) {
    let new = workspace.path().join(".saved");
    fs::write(&new, text).unwrap();
    fs::rename(new, workspace.path().join(path)).unwrap();
}

#[test]
fn a_saved_file_is_built_and_tested_again_until_an_interrupt() {
    let workspace = Workspace::new()
        .file("plain/plain.wasm", wat::parse_str(PLAIN).unwrap())
        .file("plain/wit/plain.wit", PLAIN_WIT);
    let mut child = workspace.start(&["dev", "plain", "add", "a=1", "b=2"]);
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let first = read_cycle(&mut stderr);
    assert!(
        first.contains("built plain") || first.contains("embedding the WIT"),
        "{first}"
    );
    let case = "[[test]]\nname = \"adds\"\ntool = \"add\"\narguments = { a = 1, b = 1 }\nresult = ";
    save(&workspace, "plain/tests.toml", &format!("{case}2\n"));
    let passed = read_cycle(&mut stderr);
    assert!(passed.contains("1 test: 1 passed, 0 failed"), "{passed}");
    save(&workspace, "plain/tests.toml", &format!("{case}3\n"));
    let failed = read_cycle(&mut stderr);
    assert!(failed.contains("1 test: 0 passed, 1 failed: "), "{failed}");
    // A broken source is reported, and the next save is built.
    save(&workspace, "plain/wit/plain.wit", "package demo:plain; world plain {");
    let broken = read_cycle(&mut stderr);
    assert!(broken.contains("error:"), "{broken}");
    save(&workspace, "plain/wit/plain.wit", &format!("{PLAIN_WIT}\n"));
    let repaired = read_cycle(&mut stderr);
    assert!(!repaired.contains("error:"), "{repaired}");
    send_signal("-INT", &child);
    let run = Run::from(child.wait_with_output().unwrap());
    assert_eq!(run.code, Some(0), "{run}");
    assert!(
        run.stdout.contains("Add two numbers.") && run.stdout.contains("\n3\n"),
        "{run}"
    );
}

// attack: Q5
#[test]
fn a_component_for_wasi_3_is_called_only_with_the_switch() {
    let workspace = Workspace::new().file("draw/draw.wasm", wat::parse_str(DRAW).unwrap());
    for (switch, works) in [(&[][..], false), (&["--wasi-p3"][..], true)] {
        let mut child = workspace.start(&[&["dev", "draw", "draw"], switch].concat());
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let text = read_cycle(&mut stderr);
        send_signal("-INT", &child);
        let run = Run::from(child.wait_with_output().unwrap());
        assert_eq!(text.contains("WASI 0.3 is disabled"), !works, "{text}");
        assert_eq!(text.contains("hint: `--wasi-p3`"), !works, "{text}");
        let drawn = run
            .stdout
            .lines()
            .last()
            .is_some_and(|line| line.parse::<u64>().is_ok());
        assert_eq!(drawn, works, "{run}");
    }
}
