//! Every language: a new project is created, built and tested by the command itself.
//!
//! The projects have the same tools and the same cases, so that they behave alike: text, numbers, records and variants, errors and
//! entities. A language whose toolchain is missing is skipped by name. `cargo test --test languages -- python` runs one language.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a test program that prints its results, and finds compilers where the user has them"
)]

use std::path::Path;
use std::process::{Command, ExitCode};

use serde_json::Value;

const LANGUAGES: [&str; 8] = ["rust", "python", "js", "ts", "c", "cpp", "zig", "go"];

/// The number of cases in the `tests.toml` of a new project.
const CASES: u64 = 7;

/// The number of calls that one instance executes in a loop, and of the shapes of each: enough for several garbage collections.
const LOOP_CALLS: usize = 500;
const LOOP_SHAPES: usize = 400;

/// The outcome for a language.
enum Outcome {
    Passed,
    Skipped(String),
    Failed(String),
}

/// Runs `toolwit --json`, and returns the document that it prints.
fn toolwit(dir: &Path, arguments: &[&str]) -> Value {
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("languages");
    let mut command = Command::new(env!("CARGO_BIN_EXE_toolwit"));
    command.args(arguments).arg("--json").current_dir(dir);
    command.env("XDG_CACHE_HOME", cache).env_remove("CARGO_TARGET_DIR");
    let output = command.output().unwrap();
    let document = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    serde_json::from_str(&document).unwrap_or_else(|error| panic!("{error}: {document}\n{errors}"))
}

fn try_language(language: &str) -> Outcome {
    let parent = tempfile::tempdir().unwrap();
    let name = format!("example-{language}");
    let created = toolwit(parent.path(), &["new", &name, "--lang", language]);
    assert_eq!(created["ok"], true, "{created}");
    if let Some(program) = created["missing"]["program"].as_str() {
        let built = toolwit(parent.path(), &["build", &name]);
        let message = built["error"]["message"].as_str().unwrap_or_default();
        let suggestion = built["error"]["suggestion"].as_str().unwrap_or_default();
        let install = created["missing"]["install"].as_str().unwrap();
        return if message.contains(program) && suggestion.contains(install) {
            Outcome::Skipped(format!("`{program}` is not installed"))
        } else {
            Outcome::Failed(format!("the error does not name `{program}` and `{install}`: {built}"))
        };
    }
    let tested = toolwit(parent.path(), &["test", &name]);
    if tested["ok"] != true || tested["passed"] != CASES {
        return Outcome::Failed(format!("{tested:#}"));
    }
    std::fs::write(parent.path().join("loop.toml"), loop_case()).unwrap();
    let looped = toolwit(parent.path(), &["test", &name, "--cases", "loop.toml"]);
    if looped["ok"] == true && looped["passed"] == 1 {
        Outcome::Passed
    } else {
        Outcome::Failed(
            format!("many calls of one instance: {looped:#}")
                .chars()
                .take(3000)
                .collect(),
        )
    }
}

/// Returns a case with many calls that allocate, in one conversation.
fn loop_case() -> String {
    let shapes = "\"dot\", ".repeat(LOOP_SHAPES);
    let call = format!("[[test.calls]]\ntool = \"areas\"\narguments = {{ shapes = [{shapes}] }}\n");
    format!("[[test]]\nname = \"many calls\"\n{}", call.repeat(LOOP_CALLS))
}

fn main() -> ExitCode {
    let filters: Vec<_> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let is_chosen = |language: &str| filters.is_empty() || filters.iter().any(|filter| language == filter);
    let (mut passed, mut skipped, mut failed) = (0, Vec::new(), 0);
    for language in LANGUAGES.into_iter().filter(|language| is_chosen(language)) {
        match try_language(language) {
            Outcome::Passed => {
                println!("test {language} ... ok");
                passed += 1;
            }
            Outcome::Skipped(reason) => {
                println!("test {language} ... skipped: {reason}");
                skipped.push(language);
            }
            Outcome::Failed(reason) => {
                println!("test {language} ... FAILED\n{reason}");
                failed += 1;
            }
        }
    }
    println!(
        "\ntest result: {passed} passed; {failed} failed; {} skipped ({})",
        skipped.len(),
        skipped.join(", ")
    );
    if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
