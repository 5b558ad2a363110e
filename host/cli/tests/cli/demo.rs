//! `toolwit demo` in the repository, with the shipped plugins.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::{Run, TOOLWIT, Workspace};

/// Runs the demo in the repository.
///
/// Inherits the environment, because building a plugin needs the machine's toolchain. Sets the variables that affect the output.
fn run_demo(arguments: &[&str]) -> Run {
    // The executable is in `debug` or `release` of the target directory.
    let target = Path::new(TOOLWIT).ancestors().nth(2).unwrap();
    let mut command = Command::new(TOOLWIT);
    command
        .arg("demo")
        .args(arguments)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("src"))
        .env("CARGO_TARGET_DIR", target)
        .env("NO_COLOR", "1")
        .env_remove("CLICOLOR_FORCE");
    command.output().unwrap().into()
}

#[test]
fn demo_ends_with_the_answer() {
    let run = run_demo(&[]);
    assert_eq!(run.code, Some(0), "{run}");
    let last = run.stdout.lines().last().unwrap();
    assert_eq!(
        last, "answer     John Smith's average spend is 450.00 USD a month.",
        "{run}"
    );
    assert!(run.stdout.contains("customer_c123_get_average_spend"), "{run}");
    assert!(run.stderr.lines().last().unwrap().starts_with("hint: "), "{run}");

    let json = run_demo(&["--json", "-q"]);
    let document: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(document["answer"], "John Smith's average spend is 450.00 USD a month.");
    let called: Vec<_> = document["tool_calls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|call| call["name"].clone())
        .collect();
    assert_eq!(
        Value::from(called),
        json!(["search_customer", "customer_c123_get_average_spend"])
    );
}

#[test]
fn command_in_the_hint_of_the_demo_works() {
    let run = run_demo(&[]);
    let hint = run.stderr.lines().last().unwrap();
    let typed = hint.split('`').nth(1).unwrap();
    let words: Vec<_> = typed.split(' ').skip(1).collect();
    let shown = Workspace::new().run(&words);
    assert_eq!(shown.code, Some(0), "{typed}: {shown}");
    assert!(shown.stdout.starts_with("search_customer\n"), "{shown}");
}

#[test]
fn demo_needs_no_clone() {
    let workspace = Workspace::new();
    let target = Path::new(TOOLWIT).ancestors().nth(2).unwrap();
    let mut command = Command::new(TOOLWIT);
    command
        .args(["demo", "--json"])
        .current_dir(workspace.path())
        .env("CARGO_TARGET_DIR", target.join("demo"))
        .env("XDG_DATA_HOME", workspace.path().join("data"));
    let run: Run = command.output().unwrap().into();
    let document: Value = serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {run}"));
    assert_eq!(document["answer"], "John Smith's average spend is 450.00 USD a month.");
    assert!(
        workspace
            .path()
            .join("data/toolwit/shipped/plugins/customers/Cargo.toml")
            .is_file()
    );
}
