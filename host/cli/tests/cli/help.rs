//! The help texts of all commands.

use std::fmt::Write;

use crate::support::Workspace;

/// Returns the names of the subcommands that a help text lists.
fn subcommands(help: &str) -> Vec<String> {
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let listed = listed.take_while(|line| line.starts_with("  "));
    let names = listed.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    names
        .filter(|name| !name.is_empty() && *name != "help")
        .map(str::to_owned)
        .collect()
}

/// Writes the help of a command and of its subcommands.
fn write_help(workspace: &Workspace, command: &[String], text: &mut String) {
    let mut arguments: Vec<&str> = command.iter().map(String::as_str).collect();
    arguments.push("--help");
    let help = workspace.run(&arguments).stdout;
    writeln!(text, "$ toolwit {}\n\n{help}", arguments.join(" ")).unwrap();
    for name in subcommands(&help) {
        write_help(workspace, &[command, &[name]].concat(), text);
    }
}

#[test]
fn help_of_every_command_is_that_of_the_snapshot() {
    let mut text = String::new();
    write_help(&Workspace::new(), &[], &mut text);
    insta::assert_snapshot!("help", text);
    // The texts of options are noun phrases, as those of cargo, uv and gh.
    let lines: Vec<_> = text.lines().map(str::trim).collect();
    for (option, description) in lines.iter().zip(&lines[1..]) {
        let is_sentence = option.starts_with('-') && description.ends_with('.');
        assert!(!is_sentence, "{option}: {description}");
    }
    let width = text.lines().map(|line| line.chars().count()).max();
    assert!(width <= Some(110), "a line has {width:?} columns");
}

#[test]
fn completions_and_man_pages_have_every_command() {
    let workspace = Workspace::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let run = workspace.run(&["completions", shell]);
        assert!(run.code == Some(0) && run.stdout.contains("completions"), "{run}");
        assert!(run.stdout.contains("host-calls"), "{shell} has no options");
    }
    assert_eq!(workspace.run(&["man", "pages"]).stdout, "pages\n");
    for page in ["toolwit.1", "toolwit-call.1", "toolwit-cache-cap.1"] {
        let text = std::fs::read_to_string(workspace.path().join("pages").join(page)).unwrap();
        assert!(text.contains(".SH SYNOPSIS"), "{page}");
    }
}
