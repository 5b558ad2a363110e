//! The table of limits in `SECURITY.md`, and where limits are defined.

use toolwit::limits::{Limit, LimitSetting, all_limits};

use crate::files::{TextFile, read_below};

/// The heading of the section with the tables.
const HEADING: &str = "## Limits";

/// Returns the columns of a row of `SECURITY.md` that follow from the table in `toolwit_core::limits`.
fn expected_row(limit: &Limit) -> String {
    let setting = match limit.setting {
        LimitSetting::Fixed => "fixed".to_owned(),
        LimitSetting::Overrides => format!("`{}`", limit.flag().unwrap_or_default()),
        LimitSetting::Engine => "`EngineLimits`".to_owned(),
        LimitSetting::Named(named) => named.to_owned(),
    };
    format!(
        "| `{}` | {} | {} | {setting} |",
        limit.name, limit.subject, limit.default
    )
}

/// Returns the headings and rows of all tables of limits on a page. The last column of each row is left out: it explains.
fn documented_lines(page: &str) -> Vec<String> {
    let section = page.split(HEADING).nth(1).unwrap_or_default();
    let section = section.split("\n## ").next().unwrap_or_default();
    let lines = section.lines().filter_map(|line| {
        if let Some(heading) = line.strip_prefix("### ") {
            return Some(heading.to_owned());
        }
        let row = line
            .starts_with("| `")
            .then(|| line.trim_end_matches('|').rsplit_once(" | "))??;
        Some(format!("{} |", row.0))
    });
    lines.collect()
}

fn expected_lines() -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut group = None;
    for limit in all_limits() {
        if group.replace(limit.group) != Some(limit.group) {
            lines.push(limit.group.to_string());
        }
        lines.push(expected_row(&limit));
    }
    lines
}

#[test]
fn security_lists_every_limit_with_its_default_and_its_setting() {
    let files = read_below("");
    let page = files.iter().find(|file| file.path.ends_with("SECURITY.md"));
    let (listed, expected) = (documented_lines(&page.expect("the page exists").text), expected_lines());
    let wrong = listed
        .iter()
        .filter(|row| !expected.contains(row))
        .map(|row| format!("- {row}"));
    let missing = expected
        .iter()
        .filter(|row| !listed.contains(row))
        .map(|row| format!("+ {row}"));
    let complaints: Vec<_> = wrong.chain(missing).collect();
    assert!(complaints.is_empty(), "SECURITY.md:\n{}", complaints.join("\n"));
    assert_eq!(listed, expected, "the order differs");
}

/// Returns whether a line defines a constant for a limit that other files use.
fn defines_shared_limit(line: &str) -> bool {
    let code = line.trim_start();
    let Some((name, _)) = code.split_once("const ").and_then(|(_, rest)| rest.split_once(':')) else {
        return false;
    };
    code.starts_with("pub") && name.ends_with("_MAX")
}

fn shared_limits(file: &TextFile) -> Vec<String> {
    let lines = file
        .text
        .lines()
        .enumerate()
        .filter(|(_, line)| defines_shared_limit(line));
    lines
        .map(|(index, line)| format!("{}: {}", file.at(index + 1), line.trim()))
        .collect()
}

#[test]
fn a_limit_that_several_files_use_is_in_the_table() {
    let sources = read_below("host").into_iter().filter(|file| file.has_extension("rs"));
    let complaints: Vec<String> = sources.flat_map(|file| shared_limits(&file)).collect();
    assert!(
        complaints.is_empty(),
        "define them in `toolwit_core::limits`:\n{}",
        complaints.join("\n")
    );
}

#[test]
fn a_row_of_another_default_and_a_constant_elsewhere_are_found() {
    let page = "## Limits\n\n### Calls\n\n| `fuel_max` | fuel | 1 | fixed | a trap |\n\n## Else\n\n| `x` | | | | |\n";
    assert_eq!(documented_lines(page), ["Calls", "| `fuel_max` | fuel | 1 | fixed |"]);
    assert!(!expected_lines().contains(&documented_lines(page)[1]));
    let source = "pub(crate) const NAMES_MAX: usize = 4;\nconst CHARS_MAX: usize = 4;\npub const TICK: u64 = 1;\n";
    assert_eq!(
        shared_limits(&TextFile::made_up("host/x/src/a.rs", source)),
        ["host/x/src/a.rs:1: pub(crate) const NAMES_MAX: usize = 4;"]
    );
}
