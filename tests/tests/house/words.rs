//! Words that Toolwit does not use: each has a standard term that readers know.

use crate::files::{TextFile, read_below};
use crate::source::is_identifier;

/// A word or phrase, and its replacement.
const WORDS: &[(&str, &str)] = &[
    ("anew", "again, from scratch"),
    ("in vain", "failed, without success"),
    ("mend", "fix, repair"),
    ("mended", "fixed"),
    ("mends", "fixes"),
    ("nought", "zero"),
    ("whoever", "name who"),
    ("takes back", "revokes, withdraws"),
    ("strangers", "untrusted input, its authors"),
];

/// Words with which no comment may begin. They do not name the thing that the comment is about.
const BEGINNINGS: &[&str] = &["What", "Who", "Whoever", "Nobody", "Somebody"];

/// Returns whether a file is text or source that people read.
fn is_checked(file: &TextFile) -> bool {
    let path = file.path.to_string_lossy();
    let is_text = ["rs", "md", "wit", "toml"]
        .into_iter()
        .any(|extension| file.has_extension(extension));
    // Excluded are this list itself, and the lists of promises, which are quoted from elsewhere.
    is_text && !path.ends_with("house/words.rs") && !path.ends_with("ACCEPTANCE.md") && !path.contains("seeds/")
}

/// Returns a complaint for each line that uses one of the words, with the replacement.
fn complaints(file: &TextFile) -> Vec<String> {
    let mut complaints = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        let lower = line.to_lowercase();
        for (word, instead) in WORDS {
            if lower
                .match_indices(word)
                .any(|(at, _)| stands_alone(&lower, at, word.len()))
            {
                complaints.push(format!("{}: `{word}`: write {instead}", file.at(index + 1)));
            }
        }
    }
    complaints
}

/// Returns a complaint for each doc comment in Rust that begins with a word that names nothing.
fn vague_beginnings(file: &TextFile) -> Vec<String> {
    // Docs in WIT can describe a value to a model: `What is on a shelf.`
    let lines = file.text.lines().enumerate().filter(|_| file.has_extension("rs"));
    let vague = lines.filter(|(_, line)| {
        let line = line.trim_start();
        let comment = line.strip_prefix("/// ").or_else(|| line.strip_prefix("//! "));
        comment.is_some_and(|comment| BEGINNINGS.contains(&comment.split(' ').next().unwrap_or_default()))
    });
    vague
        .map(|(index, line)| format!("{}: name the thing: {}", file.at(index + 1), line.trim()))
        .collect()
}

/// Returns whether a match is not a part of a longer word.
fn stands_alone(line: &str, at: usize, length: usize) -> bool {
    !line[..at].ends_with(is_identifier) && !line[at + length..].starts_with(is_identifier)
}

#[test]
fn texts_use_standard_terms() {
    let complaints: Vec<String> = read_below("")
        .iter()
        .filter(|file| is_checked(file))
        .flat_map(|file| [complaints(file), vague_beginnings(file)].concat())
        .collect();
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

#[test]
fn a_word_is_found_alone_and_not_inside_another() {
    let found = |text: &str| complaints(&TextFile::made_up("README.md", text)).len();
    assert_eq!(found("Read it anew, whoever you are.\n"), 2);
    assert_eq!(found("recommended amendment; is_none(); commend\n"), 0);
}

#[test]
fn a_comment_that_begins_without_a_name_is_found() {
    let found = |text: &str| vague_beginnings(&TextFile::made_up("a.rs", text)).len();
    assert_eq!(
        found("/// What a client learns.\n    //! Nobody answered.\n/// Whoever calls.\n"),
        3
    );
    assert_eq!(
        found("/// Whatever.\n/// The reason. What a client learns.\n// What\nlet x = \"/// What\";\n"),
        0
    );
}
