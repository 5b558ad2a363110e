//! Texts of the repository: no paths of the machine on which they were written, and no commands in errors of the library.

use crate::files::{TextFile, read_below};
use crate::source::without_comments;

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

/// The crates whose errors an embedder or a model reads. The command line adds commands to them.
const LIBRARIES: [&str; 6] = ["core", "sandbox", "registry", "agent", "models", "toolwit"];

/// Returns a complaint for each line of code that names a command.
fn commands(file: &TextFile) -> Vec<String> {
    let code = without_comments(&file.text);
    let lines = code
        .lines()
        .enumerate()
        .filter(|(_, line)| line.contains(concat!("`", "toolwit ")));
    lines
        .map(|(index, line)| format!("{}: {}", file.at(index + 1), line.trim()))
        .collect()
}

#[test]
fn no_error_of_the_library_names_a_command() {
    let complaints: Vec<String> = LIBRARIES
        .iter()
        .flat_map(|library| read_below(&format!("host/{library}/src")))
        .flat_map(|file| commands(&file))
        .collect();
    assert!(
        complaints.is_empty(),
        "name the setting; the command line adds the command\n{}",
        complaints.join("\n")
    );
    let text = format!(
        "// runs {0}list`\nlet hint = \"{0}build`\";\n",
        concat!("`", "toolwit ")
    );
    assert_eq!(
        commands(&TextFile::made_up("a.rs", &text)).len(),
        1,
        "a comment may name one"
    );
}

/// Returns a complaint for each line of code that inserts a value into a command of a hint.
fn unquoted_commands(file: &TextFile) -> Vec<String> {
    let code = without_comments(&file.text);
    let inserts_value = |line: &str| {
        line.split(concat!("`", "toolwit "))
            .skip(1)
            .any(|rest| rest.split('`').next().is_some_and(|command| command.contains('{')))
    };
    let lines = code.lines().enumerate().filter(|(_, line)| inserts_value(line));
    lines
        .map(|(index, line)| format!("{}: {}", file.at(index + 1), line.trim()))
        .collect()
}

// attack: J2
#[test]
fn values_enter_the_command_of_a_hint_through_one_type() {
    let complaints: Vec<String> = read_below("host/cli/src").iter().flat_map(unquoted_commands).collect();
    assert!(
        complaints.is_empty(),
        "use `SuggestedCommand`\n{}",
        complaints.join("\n")
    );
    let text = format!(
        "let fixed = \"{0}list` lists {{name}}\";\nlet unquoted = \"{0}call {{name}}` calls it\";\n",
        concat!("`", "toolwit ")
    );
    let complaints = unquoted_commands(&TextFile::made_up("a.rs", &text));
    assert!(
        complaints.len() == 1 && complaints[0].starts_with("a.rs:2: "),
        "{complaints:?}"
    );
}
