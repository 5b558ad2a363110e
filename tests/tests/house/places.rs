//! The table of `ARCHITECTURE.md` that says where each thing is decided.

use std::path::Path;

/// The heading above the table.
const HEADING: &str = "### Where each thing is decided";

/// Returns the places in the table, as paths of the repository.
fn places(document: &str) -> Vec<String> {
    let section = document.split_once(HEADING).map_or("", |(_, section)| section);
    let section = section.split_once("\n#").map_or(section, |(section, _)| section);
    let rows = section.lines().filter(|line| line.starts_with("| "));
    // The odd parts of a row are in backquotes.
    let quoted = rows.flat_map(|row| row.split('`').skip(1).step_by(2));
    let places = quoted.filter_map(|place| place.split_once('/'));
    places.map(|(name, path)| format!("host/{name}/src/{path}")).collect()
}

#[test]
fn each_place_of_a_decision_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let document = std::fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    let places = places(&document);
    assert!(places.len() >= 10, "{places:?}");
    let missing: Vec<_> = places.iter().filter(|place| !root.join(place).exists()).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn a_place_is_a_path_in_backquotes() {
    let document = format!(
        "`a/no.rs`\n{HEADING}\n\n| b | c |\n|---|---|\n| d | `core/e.rs`, and `f` |\n\n## G\n| h | `i/no.rs` |\n"
    );
    assert_eq!(places(&document), ["host/core/src/e.rs"]);
}
