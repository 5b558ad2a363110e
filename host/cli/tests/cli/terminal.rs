//! Colours, pipes and help.

use std::io::Read;
use std::process::Stdio;

use crate::guests::PLAIN;
use crate::support::Workspace;

const COMMANDS: [&str; 36] = [
    "demo",
    "run",
    "chat",
    "resume",
    "sessions",
    "approvals",
    "approve",
    "deny",
    "trace",
    "replay",
    "list",
    "search",
    "show",
    "call",
    "mcp",
    "serve",
    "inspect",
    "new",
    "build",
    "test",
    "dev",
    "grant",
    "revoke",
    "trust",
    "explain",
    "secret",
    "add",
    "remove",
    "refresh",
    "pack",
    "lint",
    "cache",
    "vectors",
    "doctor",
    "completions",
    "man",
];

const ESCAPE: char = '\x1b';

#[test]
fn pipe_gets_no_colours_and_no_color_overrides_forced_ones() {
    let workspace = Workspace::with("plain", PLAIN);
    assert!(!workspace.run(&["list"]).stdout.contains(ESCAPE));
    let forced = workspace.variable("CLICOLOR_FORCE", "1");
    assert!(forced.run(&["list"]).stdout.contains(ESCAPE));
    let none = forced.variable("NO_COLOR", "1");
    assert!(!none.run(&["list"]).stdout.contains(ESCAPE));
}

#[test]
fn closed_pipe_is_not_an_error() {
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
fn full_disk_is_an_error() {
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
fn help_is_printed_without_arguments() {
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
fn wrong_usage_is_reported_on_standard_error() {
    let run = Workspace::new().run(&["lst"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""), "{run}");
    assert!(run.stderr.starts_with("error: unrecognized subcommand 'lst'"), "{run}");
}

#[test]
fn each_command_has_detailed_help() {
    let workspace = Workspace::new();
    for command in COMMANDS {
        let run = workspace.run(&[command, "--help"]);
        assert_eq!(run.code, Some(0), "{run}");
        let (about, _) = run
            .stdout
            .split_once("\nUsage: ")
            .expect("the help text has a usage line");
        assert!(about.trim().lines().count() > 2, "{about}");
    }
}

#[test]
fn help_lists_the_commands_with_their_purpose() {
    let help = Workspace::new().run(&["--help"]).stdout;
    let (_, commands) = help.split_once("Commands:\n").expect("help lists the commands");
    let (commands, _) = commands.split_once("\n\n").unwrap();
    let lines: Vec<_> = commands.lines().map(str::trim).collect();
    for (name, purpose) in [
        ("demo", "Run a scripted conversation, without an API key"),
        ("run", "Run a prompt with a model and the tools of plugins"),
        ("list", "List plugins and MCP servers, with their tools"),
        ("search", "Find tools by name or purpose"),
        (
            "show",
            "Show a tool's full definition: description, input and output schema",
        ),
        ("call", "Call a tool without a model"),
        ("mcp", "Serve the tools of plugins to an MCP client"),
        ("serve", "Serve the tools of plugins to MCP clients over HTTP"),
        (
            "inspect",
            "Show the tools, imports and WIT of a component without running it",
        ),
        ("build", "Build a plugin from source"),
        ("add", "Add a component to a plugin directory"),
        ("remove", "Remove a package from a plugin directory"),
        ("refresh", "Discover the dynamic tools of plugins again"),
        (
            "pack",
            "Embed manifest and docs in a component, to ship a package as one file",
        ),
        ("cache", "Show, limit or empty the code cache"),
        ("doctor", "Diagnose the installation and suggest fixes"),
    ] {
        let is_listed = |line: &&str| {
            line.split_once(' ')
                .is_some_and(|(first, rest)| first == name && rest.trim() == purpose)
        };
        assert!(lines.iter().any(is_listed), "{name}: {purpose}\n{commands}");
    }
    assert_eq!(lines.len(), COMMANDS.len() + 1, "each command and `help`:\n{commands}");
}
