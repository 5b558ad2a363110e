//! Every language: a new project is created, built and tested by the command itself.
//!
//! The projects have the same tools and the same cases, so that they behave alike: text, numbers, records and variants, errors and
//! entities; a library with flags, tuples, bytes, constructors and entities with ids of their own; and, where the toolchain has them, async
//! functions, streams and futures. A language whose toolchain is missing is skipped by name. `cargo test --test languages -- python` runs one
//! language.
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
const CASES: u64 = 9;

/// The number of calls that one instance executes in a loop, and of the shapes of each: enough for several garbage collections.
const LOOP_CALLS: usize = 500;
const LOOP_SHAPES: usize = 400;

/// The sources of a library by language: path in a project, and text. They replace those of the new project, as an author does it.
const LIBRARY_SOURCES: [(&str, &[(&str, &str)]); 8] = [
    ("rust", &[("src/lib.rs", include_str!("library_tools/lib.rs"))]),
    (
        "python",
        &[
            ("app.py", include_str!("library_tools/app.py")),
            ("catalog.py", include_str!("library_tools/catalog.py")),
        ],
    ),
    ("js", &[("app.js", include_str!("library_tools/app.js"))]),
    ("ts", &[("app.ts", include_str!("library_tools/app.ts"))]),
    ("c", &[("plugin.c", include_str!("library_tools/plugin.c"))]),
    (
        "cpp",
        &[
            ("plugin.cpp", include_str!("library_tools/plugin.cpp")),
            (
                "exports-acme-library-catalog-Shelf.h",
                include_str!("library_tools/shelf.h"),
            ),
        ],
    ),
    ("zig", &[("plugin.zig", include_str!("library_tools/plugin.zig"))]),
    (
        "go",
        &[(
            "export_acme_library_catalog/catalog.go",
            include_str!("library_tools/catalog.go"),
        )],
    ),
];

/// The WIT and the cases of the libraries. The cases of the second file consume an entity.
const LIBRARY_WIT: &str = include_str!("library_tools/plugin.wit");
const LIBRARY_FILES: [(&str, &str); 3] = [
    ("wit/plugin.wit", LIBRARY_WIT),
    ("tests.toml", include_str!("library_tools/tests.toml")),
    ("consume.toml", include_str!("library_tools/consume.toml")),
];

/// The number of cases in the first file.
const LIBRARY_CASES: u64 = 9;

/// The function that consumes an entity, without its comment.
const CONSUMING: &str = "close: static func(shelf: shelf) -> list<string>;";

/// A plugin in JavaScript that reads the clock, and one of whose functions throws without a `result`.
const SCRIPT_FILES: [(&str, &str); 3] = [
    (
        "wit/plugin.wit",
        "package a:b;\nworld plugin {\n    export today: func() -> string;\n    export broken: func() -> string;\n}\n",
    ),
    (
        "app.js",
        "export function today() { return new Date().toISOString(); }\nexport function broken() { return undefined.x; }\n",
    ),
    (
        "tests.toml",
        "[[test]]\nname = \"a date\"\ntool = \"today\"\ncontains = \"T\"\n\n[[test]]\nname = \"the reason of a trap\"\ntool = \"broken\"\nerror = \"cannot read property\"\n",
    ),
];

/// The files of a plugin with async functions, streams and futures, by language: path in a project, and text.
const ASYNC_SOURCES: [(&str, &[(&str, &str)]); 4] = [
    ("python", &[("app.py", include_str!("async_tools/app.py"))]),
    ("js", &[("app.js", include_str!("async_tools/app.js"))]),
    ("c", &[("plugin.c", include_str!("async_tools/plugin.c"))]),
    (
        "go",
        &[
            (
                "go.mod",
                "module wit_component\n\ngo 1.25\n\nrequire go.bytecodealliance.org/pkg v0.2.2\n\nreplace go.bytecodealliance.org/pkg => ./bindings/pkg\n",
            ),
            (
                "export_example_later_tools/tools.go",
                include_str!("async_tools/tools.go"),
            ),
        ],
    ),
];

/// The WIT and the cases of the plugins with async functions.
const ASYNC_FILES: [(&str, &str); 2] = [
    ("wit/plugin.wit", include_str!("async_tools/plugin.wit")),
    ("tests.toml", include_str!("async_tools/tests.toml")),
];

/// The number of cases of a plugin with async functions.
const ASYNC_CASES: u64 = 8;

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
    if looped["ok"] != true || looped["passed"] != 1 {
        return failure("many calls of one instance", &looped);
    }
    let library = try_library(language, parent.path(), &name);
    match library {
        Outcome::Passed if language == "js" => try_javascript(),
        Outcome::Passed => try_async(language),
        failed => failed,
    }
}

fn failure(what: &str, report: &Value) -> Outcome {
    Outcome::Failed(format!("{what}: {report:#}").chars().take(3000).collect())
}

/// Writes files into a project.
fn write_files(project: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        let file = project.join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }
}

/// Replaces the WIT and the tools of a project by those of the library, and tests them.
fn try_library(language: &str, parent: &Path, name: &str) -> Outcome {
    let (_, sources) = LIBRARY_SOURCES.iter().find(|(name, _)| *name == language).unwrap();
    let project = parent.join(name);
    write_files(&project, &LIBRARY_FILES);
    write_files(&project, sources);
    if matches!(language, "js" | "ts") {
        let built = toolwit(parent, &["build", name]);
        let message = built["error"]["message"].as_str().unwrap_or_default();
        if !message.contains("`close` consumes an instance") {
            return failure("a function that consumes an entity is not refused", &built);
        }
        let wit = LIBRARY_WIT.replace(CONSUMING, "");
        write_files(&project, &[("wit/plugin.wit", &wit)]);
    } else {
        let cases = project.join("consume.toml");
        let consumed = toolwit(parent, &["test", name, "--cases", cases.to_str().unwrap()]);
        if consumed["ok"] != true || consumed["passed"] != 1 {
            return failure("a function that consumes an entity", &consumed);
        }
    }
    let tested = toolwit(parent, &["test", name]);
    if tested["ok"] == true && tested["passed"] == LIBRARY_CASES {
        Outcome::Passed
    } else {
        failure("a library", &tested)
    }
}

/// Tests that JavaScript has dates and reports why it trapped; then its async functions.
fn try_javascript() -> Outcome {
    let dir = tempfile::tempdir().unwrap();
    write_files(&dir.path().join("script"), &SCRIPT_FILES);
    let tested = toolwit(dir.path(), &["test", "script"]);
    if tested["ok"] == true && tested["passed"] == 2 {
        try_async("js")
    } else {
        failure("a script", &tested)
    }
}

/// Builds and tests a plugin with async functions. Bindings for C++ do not have them: the build fails with an error that names the reason.
fn try_async(language: &str) -> Outcome {
    let dir = tempfile::tempdir().unwrap();
    let project = dir.path().join("later");
    write_files(&project, &ASYNC_FILES);
    if language == "cpp" {
        write_files(&project, &[("plugin.cpp", "")]);
        let built = toolwit(dir.path(), &["build", "later"]);
        let message = built["error"]["message"].as_str().unwrap_or_default();
        return if message.contains("async functions") && message.contains("C++") {
            Outcome::Passed
        } else {
            Outcome::Failed(format!("async functions are not refused: {built:#}"))
        };
    }
    let Some((_, sources)) = ASYNC_SOURCES.iter().find(|(name, _)| *name == language) else {
        return Outcome::Passed;
    };
    write_files(&project, sources);
    let tested = toolwit(dir.path(), &["test", "later"]);
    if tested["ok"] == true && tested["passed"] == ASYNC_CASES {
        Outcome::Passed
    } else {
        Outcome::Failed(format!("async functions: {tested:#}"))
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
