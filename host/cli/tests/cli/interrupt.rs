//! Ctrl-C and SIGTERM.

#![cfg(unix)]

use std::io::{BufRead, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use crate::guests::PLAIN;
use crate::support::{Run, Workspace};

/// Maximum time that an interrupted command takes to end, on a busy machine.
const PROMPTLY: Duration = Duration::from_secs(5);

/// Starts a call that never ends, and waits until the guest runs.
fn start_endless_call(workspace: &Workspace, more: &[&str]) -> Child {
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

pub(crate) fn send_signal(signal: &str, child: &Child) {
    // The shell has `kill` built in. Minimal images have no program of this name.
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
        let child = start_endless_call(&workspace, &["-v"]);
        let sent = Instant::now();
        send_signal(signal, &child);
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
    let child = start_endless_call(&workspace, &["-v", "--json"]);
    send_signal("-INT", &child);
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
    send_signal("-INT", &child);
    let run = Run::from(child.wait_with_output().unwrap());
    drop(input);
    assert_eq!(run.code, Some(130), "{run}");
}

/// Starts to add a package from a server that sends only a part of it. Returns the open connection.
fn start_download(workspace: &Workspace, more: &[&str]) -> (Child, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let url = format!("http://{address}/plain.wasm#sha256={}", "0".repeat(64));
    let child = workspace.start(&[&["add", &url], more].concat());
    let (mut connection, _) = listener.accept().unwrap();
    let mut request = BufReader::new(connection.try_clone().unwrap()).lines();
    while !request.next().unwrap().unwrap().is_empty() {}
    let part = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n\0asm";
    connection.write_all(part).unwrap();
    (child, connection)
}

fn assert_nothing_was_added(workspace: &Workspace) {
    let files = std::fs::read_dir(workspace.path().join("tools")).unwrap();
    assert_eq!(files.count(), 0);
}

#[test]
fn interrupted_download_leaves_nothing() {
    let workspace = Workspace::new();
    let (child, connection) = start_download(&workspace, &[]);
    send_signal("-INT", &child);
    let run = Run::from(child.wait_with_output().unwrap());
    drop(connection);
    assert!(
        run.code == Some(130) && run.stderr.contains("nothing was added"),
        "{run}"
    );
    assert_nothing_was_added(&workspace);
}

#[test]
fn download_that_takes_too_long_leads_to_its_option() {
    let workspace = Workspace::new();
    let (child, connection) = start_download(&workspace, &["--timeout", "300ms"]);
    let run = Run::from(child.wait_with_output().unwrap());
    drop(connection);
    assert!(run.stderr.contains("the download took longer than 300 ms"), "{run}");
    assert!(run.code == Some(4) && run.stderr.contains("--timeout TIME"), "{run}");
    assert_nothing_was_added(&workspace);
}

// attack: A19
#[cfg(target_os = "linux")]
#[test]
fn interrupt_during_a_compilation_ends_the_command_and_its_compiler() {
    // Takes half a minute to compile.
    let functions = "(func)".repeat(100_000);
    let heavy = format!(
        r#"(component
            (core module $m (func (export "f")) {functions})
            (core instance $i (instantiate $m))
            (func (export "f") (canon lift (core func $i "f"))))"#
    );
    let workspace = Workspace::with("heavy", &heavy);
    let child = workspace.start(&["call", "f"]);
    let compiler = loop {
        if let Some(compiler) = child_of(child.id()) {
            break compiler;
        }
    };
    let sent = Instant::now();
    send_signal("-INT", &child);
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
