//! Colours, pipes and help.

use std::io::Read;
use std::process::Stdio;

use crate::guests::PLAIN;
use crate::support::Workspace;

const ESCAPE: char = '\x1b';

#[test]
fn a_pipe_gets_no_colours_and_no_color_turns_forced_ones_off() {
    let workspace = Workspace::with("plain", PLAIN);
    assert!(!workspace.run(&["list"]).stdout.contains(ESCAPE));
    let forced = workspace.variable("CLICOLOR_FORCE", "1");
    assert!(forced.run(&["list"]).stdout.contains(ESCAPE));
    let none = forced.variable("NO_COLOR", "1");
    assert!(!none.run(&["list"]).stdout.contains(ESCAPE));
}

#[test]
fn a_reader_that_has_enough_is_no_error() {
    let workspace = Workspace::with("plain", PLAIN);
    for arguments in [&["list"][..], &["list", "--json"], &["--help"], &["call", "greet"]] {
        let mut child = workspace.start(arguments);
        drop(child.stdout.take());
        let mut stderr = String::new();
        child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        let code = child.wait().unwrap().code();
        assert_eq!((code, stderr.as_str()), (Some(0), ""), "{arguments:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error() {
    let workspace = Workspace::with("plain", PLAIN);
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = workspace.command(&["list"]).stdout(Stdio::from(full)).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(
        stderr.starts_with("error: standard output cannot be written: "),
        "{stderr}"
    );
}

#[test]
fn without_arguments_there_is_help() {
    let workspace = Workspace::new();
    let bare = workspace.run(&[]);
    assert_eq!(bare.code, Some(0));
    assert!(
        bare.stdout.contains("Usage: toolwit") && bare.stderr.is_empty(),
        "{bare}"
    );
    let version = workspace.run(&["--version"]);
    assert_eq!(version.stdout, format!("toolwit {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn wrong_usage_is_told_on_standard_error() {
    let run = Workspace::new().run(&["lst"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{run}");
    assert!(run.stderr.starts_with("error: unrecognized subcommand 'lst'"), "{run}");
}

#[test]
fn each_command_has_help_with_more_than_its_title() {
    let workspace = Workspace::new();
    for command in ["demo", "run", "list", "show", "call", "inspect", "build"] {
        let run = workspace.run(&[command, "--help"]);
        assert_eq!(run.code, Some(0), "{run}");
        let (about, _) = run.stdout.split_once("\nUsage: ").expect("help says how it is used");
        assert!(about.trim().lines().count() > 2, "{about}");
    }
}
