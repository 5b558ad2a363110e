//! `ACCEPTANCE.md` and `ATTACKS.md`, and the tests that cite them.

use std::collections::BTreeSet;

use crate::files::{TextFile, read_below};

/// The words that begin a citation: `// accept: 8, 15, attack: E7`.
const KEYWORDS: [&str; 2] = ["accept", "attack"];

/// The lines of one list, and the word with which a test cites them.
struct List {
    keyword: &'static str,
    ids: Vec<String>,
}

/// A comment in the sources that claims to prove a line.
struct Citation {
    id: String,
    position: String,
}

impl List {
    /// Reads the numbered lines of `ACCEPTANCE.md`: `31. An entity …`.
    fn acceptance(text: &str) -> Self {
        let number = |line: &str| {
            let (id, _) = line.split_once(". ")?;
            id.bytes().all(|byte| byte.is_ascii_digit()).then(|| id.to_owned())
        };
        List {
            keyword: "accept",
            ids: text.lines().filter_map(number).collect(),
        }
    }

    /// Reads the lettered lines of `ATTACKS.md`: `- C10: under a grant …`.
    fn attacks(text: &str) -> Self {
        let id = |line: &str| Some(line.strip_prefix("- ")?.split_once(": ")?.0.to_owned());
        List {
            keyword: "attack",
            ids: text.lines().filter_map(id).collect(),
        }
    }

    /// Returns the gaps and repetitions of the ids: each must follow its predecessor, such as `A2` on `A1`, or `B1` on
    /// the last A.
    fn gaps_and_repetitions(&self) -> Vec<String> {
        let mut complaints = Vec::new();
        let (mut group, mut last) = ("", 0);
        for id in &self.ids {
            let (letter, number) = id.split_at(id.len() - id.trim_start_matches(char::is_alphabetic).len());
            if letter != group {
                if letter <= group || letter.len() > 1 {
                    complaints.push(format!("group `{letter}` comes after group `{group}`"));
                }
                (group, last) = (letter, 0);
            }
            match number.parse::<u32>() {
                Ok(number) if number == last + 1 => last = number,
                Ok(number) => {
                    complaints.push(format!("expected `{letter}{}`, but found `{id}`", last + 1));
                    last = number;
                }
                Err(_) => complaints.push(format!("`{id}` is not a valid id")),
            }
        }
        complaints
    }

    /// Returns the citations of this list in a source. A citation is a comment that begins with a keyword; one line may
    /// have several.
    fn citations(&self, file: &TextFile) -> Vec<Citation> {
        let mut citations = Vec::new();
        for (index, line) in file.text.lines().enumerate() {
            let Some(comment) = line.trim_start().strip_prefix("//") else {
                continue;
            };
            let mut cited = None;
            for part in comment.trim_start_matches('/').split(',').map(str::trim) {
                let keyword = KEYWORDS
                    .into_iter()
                    .find(|keyword| part.starts_with(&format!("{keyword}:")));
                cited = keyword.or(cited);
                if cited.is_none() {
                    break;
                }
                if cited == Some(self.keyword) {
                    let id = keyword.map_or(part, |keyword| part[keyword.len() + 1..].trim_start());
                    citations.push(Citation {
                        id: id.to_owned(),
                        position: file.at(index + 1),
                    });
                }
            }
        }
        citations
    }

    /// Returns a complaint for each citation of a line that does not exist.
    fn unknown_citations(&self, citations: &[Citation]) -> Vec<String> {
        let is_unknown = |citation: &&Citation| !self.ids.contains(&citation.id);
        let complaint = |citation: &Citation| {
            format!(
                "{}: `{}` is not a line to {}",
                citation.position, citation.id, self.keyword
            )
        };
        citations.iter().filter(is_unknown).map(complaint).collect()
    }

    /// Describes how many lines are cited by tests, and lists the others.
    fn coverage(&self, citations: &[Citation]) -> String {
        let cited: BTreeSet<&str> = citations.iter().map(|citation| citation.id.as_str()).collect();
        let open: Vec<&str> = self
            .ids
            .iter()
            .map(String::as_str)
            .filter(|id| !cited.contains(id))
            .collect();
        let covered = self.ids.len() - open.len();
        format!(
            "{}: {covered} of {} lines cited by tests; open: {}",
            self.keyword,
            self.ids.len(),
            open.join(" ")
        )
    }
}

fn lists() -> [List; 2] {
    [
        List::acceptance(include_str!("../../ACCEPTANCE.md")),
        List::attacks(include_str!("../../ATTACKS.md")),
    ]
}

#[test]
fn ids_are_unique_and_without_gaps() {
    let [acceptance, attacks] = lists();
    assert_eq!(
        (acceptance.ids.len(), attacks.ids.len()),
        (148, 175),
        "a line was added or lost"
    );
    assert_eq!(acceptance.gaps_and_repetitions(), [""; 0]);
    assert_eq!(attacks.gaps_and_repetitions(), [""; 0]);
}

#[test]
#[expect(clippy::print_stdout, reason = "`--nocapture` prints the coverage")]
fn every_citation_names_a_line() {
    let sources: Vec<TextFile> = read_below("")
        .into_iter()
        .filter(|file| file.has_extension("rs"))
        .collect();
    assert!(!sources.is_empty(), "no sources found");
    let mut complaints = Vec::new();
    for list in lists() {
        let citations: Vec<Citation> = sources.iter().flat_map(|file| list.citations(file)).collect();
        println!("{}", list.coverage(&citations));
        complaints.extend(list.unknown_citations(&citations));
    }
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

#[test]
fn gaps_repetitions_and_misplaced_groups_are_found() {
    assert_eq!(
        List::acceptance("1. one\n2. two\n4. four\n4. four\n")
            .gaps_and_repetitions()
            .len(),
        2
    );
    assert_eq!(
        List::attacks("- A1: x → y\n- A3: x → y\n- B1: x → y\n- A2: x → y\n")
            .gaps_and_repetitions()
            .len(),
        3
    );
    assert_eq!(
        List::attacks("- A: x → y\n").gaps_and_repetitions(),
        ["`A` is not a valid id"]
    );
}

#[test]
fn a_citation_of_a_missing_line_is_reported_with_its_position() {
    let list = List::attacks("- A1: x → y\n- A2: x → y\n");
    let source = "// attack: A1, A7, accept: 31\nfn one() {}\n    // attack:\nlet url = \"// attack: A9\";\n\
                  let x = 1;\n/// accept: 8, attack: A2\n// Prose, attack: A3.\n";
    let citations = list.citations(&TextFile::made_up("host/src/made_up.rs", source));
    assert_eq!(
        list.unknown_citations(&citations),
        [
            "host/src/made_up.rs:1: `A7` is not a line to attack",
            "host/src/made_up.rs:3: `` is not a line to attack"
        ]
    );
    assert_eq!(
        list.coverage(&citations[..1]),
        "attack: 1 of 2 lines cited by tests; open: A2"
    );
    assert_eq!(list.coverage(&citations), "attack: 2 of 2 lines cited by tests; open: ");
}
