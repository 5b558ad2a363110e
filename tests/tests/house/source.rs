//! Reading Rust sources as text. The sources are formatted by rustfmt, so that indentation shows where an item ends.

use crate::files::{TextFile, read_below};

/// The longest function, in lines.
const FUNCTION_LINES_MAX: usize = 70;

/// The longest file that is not a test, in lines.
const FILE_LINES_MAX: usize = 400;

/// Returns a source without the text of its line comments. Lines keep their numbers. `//` after a colon belongs to a URL.
pub(crate) fn without_comments(source: &str) -> String {
    let comment = |line: &str| {
        line.match_indices("//")
            .map(|(at, _)| at)
            .find(|&at| !line[..at].ends_with(':'))
    };
    let lines = source.lines().map(|line| comment(line).map_or(line, |at| &line[..at]));
    lines.collect::<Vec<_>>().join("\n")
}

pub(crate) fn is_identifier(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// Returns the first line and the length of each function with a body.
fn functions(source: &str) -> Vec<(usize, usize)> {
    let lines: Vec<&str> = source.lines().collect();
    let mut functions = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let text = line.trim_start();
        let head = text.split('(').next().unwrap_or_default();
        let is_function = head.split_whitespace().rev().nth(1) == Some("fn") || head.starts_with("fn ");
        let head_end = lines[start..].iter().find(|line| line.ends_with(['{', ';', '}']));
        let has_body = head_end.is_some_and(|line| line.ends_with('{'));
        if !is_function || text.starts_with("//") || !has_body {
            continue;
        }
        let indent = line.len() - text.len();
        let end = format!("{}}}", " ".repeat(indent));
        let length = lines[start..].iter().position(|line| *line == end);
        functions.extend(length.map(|length| (start + 1, length + 1)));
    }
    functions
}

/// Returns whether a file contains tests, whose tables of cases may be long.
fn is_test(file: &TextFile) -> bool {
    file.path.to_string_lossy().contains("tests")
}

fn sources() -> Vec<TextFile> {
    let files = ["host", "plugins", "sdk", "tests"].into_iter().flat_map(read_below);
    let files: Vec<TextFile> = files.filter(|file| file.has_extension("rs")).collect();
    assert!(files.len() > 300, "the sources were not found");
    files
}

#[test]
fn functions_are_at_most_seventy_lines_long() {
    let long = |file: &TextFile| -> Vec<String> {
        if is_test(file) {
            return Vec::new();
        }
        let functions = functions(&file.text).into_iter();
        let long = functions.filter(|(_, lines)| *lines > FUNCTION_LINES_MAX);
        long.map(|(at, lines)| format!("{}: a function of {lines} lines", file.at(at)))
            .collect()
    };
    let complaints: Vec<String> = sources().iter().flat_map(long).collect();
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

#[test]
fn source_files_are_at_most_four_hundred_lines_long() {
    let long = |file: &TextFile| {
        let lines = file.text.lines().count();
        (lines > FILE_LINES_MAX && !is_test(file)).then(|| format!("{}: {lines} lines", file.path.display()))
    };
    let complaints: Vec<String> = sources().iter().filter_map(long).collect();
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

#[test]
fn public_names_are_exported_without_globs() {
    let globs = |file: &TextFile| -> Vec<String> {
        let code = without_comments(&file.text);
        let lines = code.lines().enumerate();
        let globs = lines.filter(|(_, line)| line.trim_start().starts_with("pub use") && line.contains("::*"));
        globs
            .map(|(index, line)| format!("{}: {}", file.at(index + 1), line.trim()))
            .collect()
    };
    let complaints: Vec<String> = read_below("host").iter().flat_map(globs).collect();
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

/// Returns whether a line is an arm of a `match` on a boolean.
fn is_boolean_arm(line: &str) -> bool {
    ["true =>", "false =>"]
        .iter()
        .any(|arm| line.trim_start().starts_with(arm))
}

#[test]
fn conditions_are_written_with_if() {
    let arms = |file: &TextFile| -> Vec<String> {
        let lines = file.text.lines().enumerate();
        let arms = lines.filter(|(_, line)| is_boolean_arm(line));
        arms.map(|(index, line)| format!("{}: {}", file.at(index + 1), line.trim()))
            .collect()
    };
    let complaints: Vec<String> = sources().iter().flat_map(arms).collect();
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
    assert!(is_boolean_arm("    true => 1,") && !is_boolean_arm("Some(true) => 1,"));
}

#[test]
fn the_length_of_a_function_is_measured_from_its_head_to_its_brace() {
    let source = "impl X {\n    pub async fn long(\n        self,\n    ) {\n        if a {\n        }\n    }\n\n    fn declared();\n}\n\nfn short() {}\n\nfn plain() {\n}\n";
    assert_eq!(functions(source), [(2, 6), (14, 2)]);
}
