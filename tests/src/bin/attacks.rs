//! Runs the tests, and prints a table with the outcome of each attack of `ATTACKS.md` that a test cites.
//!
//! `cargo run -p toolwit-tests --bin attacks` prints the table and fails if an attack succeeded. `--write` also writes the table
//! to `SECURITY.md`. `--log FILE` reads the outcomes from earlier output of `cargo test`.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command of ours, for people")]

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::{fs, io};

/// The markers around the table in `SECURITY.md`.
const BEGIN: &str = "<!-- attacks: begin, written by `just attacks` -->";
const END: &str = "<!-- attacks: end -->";

/// The outcome of a test.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Passed,
    Failed,
    Ignored,
}

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> io::Result<bool> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let attacks = attacks(&fs::read_to_string(root.join("tests/ATTACKS.md"))?);
    let mut cited: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for directory in ["host", "tests/tests", "tests/src"] {
        collect(&root.join(directory), &mut cited)?;
    }
    let outcomes = outcomes(&printed(&root)?)?;
    let table = table(&attacks, &cited, &outcomes);
    println!("{table}");
    if std::env::args().any(|argument| argument == "--write") {
        write(&root.join("SECURITY.md"), &table)?;
    }
    let got_through = |names: &Vec<String>| names.iter().any(|name| outcomes.get(name) == Some(&Outcome::Failed));
    Ok(!cited.values().any(got_through))
}

/// Returns the id and text of each line of the list, in its order.
fn attacks(list: &str) -> Vec<(String, String)> {
    let line = |line: &str| {
        let (id, text) = line.strip_prefix("- ")?.split_once(": ")?;
        Some((id.to_owned(), text.to_owned()))
    };
    list.lines().filter_map(line).collect()
}

/// Collects the tests that cite an attack in a comment above them.
fn collect(directory: &Path, cited: &mut BTreeMap<String, Vec<String>>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path: PathBuf = entry?.path();
        if path.is_dir() {
            collect(&path, cited)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path)?;
            let mut waiting: Vec<String> = Vec::new();
            for line in text.lines().map(str::trim) {
                if line.starts_with("//") {
                    waiting.extend(ids(line));
                } else if let Some(name) = function(line) {
                    for id in waiting.drain(..) {
                        cited.entry(id).or_default().push(name.to_owned());
                    }
                }
            }
        }
    }
    Ok(())
}

/// Returns the attack ids in a comment such as `// accept: 8, attack: E7, attack: E8`.
fn ids(comment: &str) -> Vec<String> {
    let mut is_attack = false;
    let mut ids = Vec::new();
    for part in comment.trim_start_matches('/').split(',').map(str::trim) {
        let id = match part.split_once(": ") {
            Some((keyword, id)) => {
                is_attack = keyword == "attack";
                id
            }
            None => part,
        };
        let is_id =
            id.starts_with(|c: char| c.is_ascii_uppercase()) && id[1..].bytes().all(|byte| byte.is_ascii_digit());
        if is_attack && id.len() > 1 && is_id {
            ids.push(id.to_owned());
        }
    }
    ids
}

fn function(line: &str) -> Option<&str> {
    let line = line.strip_prefix("pub ").unwrap_or(line);
    let line = line.strip_prefix("async ").unwrap_or(line);
    line.strip_prefix("fn ")?.split(['(', '<']).next()
}

/// Returns the output of `cargo test`, which is run now unless a log is given.
fn printed(root: &Path) -> io::Result<String> {
    let mut arguments = std::env::args().skip_while(|argument| argument != "--log").skip(1);
    if let Some(log) = arguments.next() {
        return fs::read_to_string(log);
    }
    let output = Command::new(env!("CARGO"))
        .current_dir(root)
        .args(["test", "--workspace", "--no-fail-fast", "--lib", "--tests"])
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if text.is_empty() {
        return Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    Ok(text)
}

/// Returns the outcome of each test, by the last part of its name.
fn outcomes(text: &str) -> io::Result<HashMap<String, Outcome>> {
    let mut outcomes: HashMap<String, Outcome> = HashMap::new();
    for line in text.lines() {
        let Some((name, outcome)) = line.strip_prefix("test ").and_then(|rest| rest.rsplit_once(" ... ")) else {
            continue;
        };
        let outcome = match outcome.split([',', ' ']).next() {
            Some("ok") => Outcome::Passed,
            Some("ignored") => Outcome::Ignored,
            _ => Outcome::Failed,
        };
        let name = name
            .split(' ')
            .next()
            .unwrap_or(name)
            .rsplit("::")
            .next()
            .unwrap_or(name)
            .to_owned();
        let known = outcomes.entry(name).or_insert(outcome);
        if outcome == Outcome::Failed {
            *known = outcome;
        }
    }
    if outcomes.is_empty() {
        return Err(io::Error::other("no test did run"));
    }
    Ok(outcomes)
}

fn table(
    attacks: &[(String, String)],
    cited: &BTreeMap<String, Vec<String>>,
    outcomes: &HashMap<String, Outcome>,
) -> String {
    let mut lines = vec!["| attack | what is tried, and what must happen | outcome | proved by |".to_owned()];
    lines.push("|---|---|---|---|".to_owned());
    let (mut withstood, mut open) = (0, 0);
    for (id, text) in attacks {
        let Some(names) = cited.get(id) else {
            open += 1;
            continue;
        };
        let of = |name: &String| outcomes.get(name).copied();
        let outcome = if names.iter().any(|name| of(name) == Some(Outcome::Failed)) {
            "**got through**"
        } else if names.iter().any(|name| of(name) == Some(Outcome::Passed)) {
            withstood += 1;
            "withstood"
        } else {
            "not run"
        };
        let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
        lines.push(format!(
            "| {id} | {} | {outcome} | {} |",
            text.replace('|', "\\|"),
            names.join(", ")
        ));
    }
    lines.push(String::new());
    lines.push(format!(
        "{withstood} of {} attacks are tried and withstood; {open} have no test yet.",
        attacks.len()
    ));
    lines.join("\n")
}

/// Replaces the table in a page.
fn write(page: &Path, table: &str) -> io::Result<()> {
    let text = fs::read_to_string(page)?;
    let (Some(begin), Some(end)) = (text.find(BEGIN), text.find(END)) else {
        return Err(io::Error::other("SECURITY.md has no place for the table"));
    };
    let written = format!("{}{BEGIN}\n\n{table}\n\n{}", &text[..begin], &text[end..]);
    fs::write(page, written)
}
