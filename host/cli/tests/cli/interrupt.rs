//! Ctrl-C and SIGTERM.

#![cfg(unix)]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use crate::guests::PLAIN;
use crate::support::{Run, Workspace};

/// Maximum time that an interrupted command takes to end, on a busy machine.
const PROMPTLY: Duration = Duration::from_secs(5);

/// Starts a call that never ends, and waits until the guest runs.
fn spinning(workspace: &Workspace, more: &[&str]) -> Child {
    // Compiles the plugin into the code cache, so that the log line immediately precedes the call.
    workspace.run(&["call", "add", r#"{"a": 1, "b": 1}"#]);
    let mut child = workspace.start(&[&["call", "spin", "--fuel", "18446744073709551615"], more].concat());
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("calling") {
        line.clear();
        assert_ne!(stderr.read_line(&mut line).unwrap(), 0, "the command ended early");
    }
    child.stderr = Some(stderr.into_inner());
    child
}

fn send(signal: &str, child: &Child) {
    // The shell has `kill` built in; minimal images have no such program.
    let status = Command::new("/bin/sh")
        .args(["-c", "kill \"$0\" \"$1\"", signal, &child.id().to_string()])
        .status()
        .unwrap();
    assert!(status.success());
}

// attack: I3
#[test]
fn signal_cancels_the_call_and_ends_the_command() {
    let workspace = Workspace::with("plain", PLAIN);
    for signal in ["-INT", "-TERM"] {
        let child = spinning(&workspace, &["-v"]);
        let sent = Instant::now();
        send(signal, &child);
        let run = Run::from(child.wait_with_output().unwrap());
        assert_eq!(run.code, Some(130), "{run}");
        assert!(sent.elapsed() < PROMPTLY, "{:?}", sent.elapsed());
        assert!(
            run.stderr.contains("error: plain#spin: the call was cancelled"),
            "{run}"
        );
    }
}

#[test]
fn interrupted_call_prints_one_json_document() {
    let workspace = Workspace::with("plain", PLAIN);
    let child = spinning(&workspace, &["-v", "--json"]);
    send("-INT", &child);
    let run = Run::from(child.wait_with_output().unwrap());
    let document: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(
        (run.code, &document["error"]["kind"]),
        (Some(130), &"cancelled".into()),
        "{run}"
    );
}

#[test]
fn interrupt_ends_the_wait_for_standard_input() {
    let workspace = Workspace::with("plain", PLAIN);
    let mut child = workspace.start(&["call", "add", "-", "-vv"]);
    // Nothing is written, and the pipe stays open.
    let input = child.stdin.take();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("reading standard input") {
        line.clear();
        assert_ne!(stderr.read_line(&mut line).unwrap(), 0, "the command ended early");
    }
    child.stderr = Some(stderr.into_inner());
    send("-INT", &child);
    let run = Run::from(child.wait_with_output().unwrap());
    drop(input);
    assert_eq!(run.code, Some(130), "{run}");
}

// attack: A19
#[cfg(target_os = "linux")]
#[test]
fn interrupt_during_a_compilation_ends_the_command_and_its_compiler() {
    let code = "(local.set 0 (i32.mul (i32.add (local.get 0) (i32.const 3)) (local.get 0)))".repeat(150_000);
    let heavy = format!(
        r#"(component
            (core module $m (func (export "f") (param i32) {code}))
            (core instance $i (instantiate $m))
            (func (export "f") (param "a" s32) (canon lift (core func $i "f"))))"#
    );
    let workspace = Workspace::with("heavy", &heavy);
    let child = workspace.start(&["call", "f", r#"{"a": 1}"#]);
    let compiler = loop {
        if let Some(compiler) = child_of(child.id()) {
            break compiler;
        }
    };
    let sent = Instant::now();
    send("-INT", &child);
    let run = Run::from(child.wait_with_output().unwrap());
    assert_eq!(run.code, Some(130), "{run}");
    assert!(sent.elapsed() < PROMPTLY, "{:?}", sent.elapsed());
    while compiler.exists() {
        assert!(sent.elapsed() < PROMPTLY, "the compiler process runs on");
    }
}

/// Returns the directory below `/proc` of a child of a process.
#[cfg(target_os = "linux")]
fn child_of(process: u32) -> Option<std::path::PathBuf> {
    let children = format!("/proc/{process}/task");
    let tasks = std::fs::read_dir(children).ok()?.flatten();
    let children = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    let child = children
        .flat_map(|list| list.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        .next()?;
    Some(std::path::Path::new("/proc").join(child))
}
