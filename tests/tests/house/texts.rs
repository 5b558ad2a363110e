//! Public files must not contain paths of the machine on which they were written.

use crate::files::{TextFile, read_below};

/// The parents of home directories. Each is split in two, so that this file does not contain it.
const HOMES: [&str; 3] = [concat!("/ro", "ot/"), concat!("/ho", "me/"), concat!("/Us", "ers/")];

/// Returns a complaint for each line that contains an absolute path in a home directory.
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

/// Returns whether a path begins at `at`. The middle of a path such as `/proc/self/root/` does not count.
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
