//! What no public file may name: the machine on which it was written.

use crate::files::{TextFile, read_below};

/// The directories under which people's homes lie. Written in two halves, so that this file may hold them.
const HOMES: [&str; 3] = [concat!("/ro", "ot/"), concat!("/ho", "me/"), concat!("/Us", "ers/")];

/// The lines that name an absolute path into somebody's home.
fn home_paths(file: &TextFile) -> Vec<String> {
    let names_home = |line: &str| {
        HOMES
            .iter()
            .any(|home| line.match_indices(home).any(|(at, _)| starts_path(line, at)))
    };
    let lines = file.text.lines().enumerate().filter(|(_, line)| names_home(line));
    lines
        .map(|(index, line)| format!("{}: names a home directory: {}", file.at(index + 1), line.trim()))
        .collect()
}

/// Whether a path begins at `at`, and is not the middle of one such as `/proc/self/root/`.
fn starts_path(line: &str, at: usize) -> bool {
    !line[..at].ends_with(|before: char| before.is_alphanumeric() || "._-~$}".contains(before))
}

#[test]
fn no_file_names_a_home_directory() {
    let complaints: Vec<String> = read_below("").iter().flat_map(home_paths).collect();
    assert!(complaints.is_empty(), "write `~` or `$HOME`\n{}", complaints.join("\n"));
}

#[test]
fn a_home_directory_is_found_and_other_paths_are_not() {
    let text = format!("{0}x\nsee ({0}.cargo)\n/proc/self{0}etc\n$HOME/x ~/x\n", HOMES[0]);
    let complaints = home_paths(&TextFile::made_up("README.md", &text));
    assert_eq!(complaints.len(), 2, "{complaints:?}");
    assert!(complaints[1].starts_with("README.md:2: "), "{complaints:?}");
}
