//! Search and replacement with regular expressions.

use std::ops::Range;

use regex::{Captures, Regex, RegexBuilder};
use regex_syntax::ast;

/// Maximum size of a compiled pattern, in bytes.
const COMPILED_BYTES_MAX: usize = 2 * 1024 * 1024;

/// Options of a pattern.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Ignores case.
    pub ignore_case: bool,
    /// `^` and `$` match at each line.
    pub multi_line: bool,
    /// `.` also matches a line break.
    pub dot_matches_new_line: bool,
    /// Ignores white space and comments in the pattern.
    pub verbose: bool,
}

/// The reason why a search failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PatternError {
    /// The pattern is not a regular expression.
    Invalid {
        /// A description of the error.
        message: String,
        /// The position of the invalid part in characters, counted from 1.
        position: usize,
        /// The invalid part of the pattern.
        excerpt: String,
    },
    /// The compiled pattern is too large.
    TooLarge,
    /// The replacement refers to a group that the pattern does not have.
    UnknownGroup(String),
}

/// A compiled pattern.
#[derive(Clone, Debug)]
pub struct Pattern {
    regex: Regex,
}

/// A match of a pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternMatch {
    /// The matched text.
    pub text: String,
    /// The position of the match in characters, counted from 0.
    pub start: usize,
    /// The line in which the match begins, counted from 1.
    pub line: usize,
    /// Name and text of each group.
    pub groups: Vec<(Option<String>, Option<String>)>,
}

impl Pattern {
    /// Compiles a pattern.
    ///
    /// # Errors
    ///
    /// [`PatternError::Invalid`] with the position, or [`PatternError::TooLarge`].
    pub fn new(pattern: &str, options: Options) -> Result<Self, PatternError> {
        let built = RegexBuilder::new(pattern)
            .case_insensitive(options.ignore_case)
            .multi_line(options.multi_line)
            .dot_matches_new_line(options.dot_matches_new_line)
            .ignore_whitespace(options.verbose)
            .size_limit(COMPILED_BYTES_MAX)
            .build();
        match built {
            Ok(regex) => Ok(Self { regex }),
            Err(regex::Error::CompiledTooBig(_)) => Err(PatternError::TooLarge),
            Err(error) => Err(
                describe_invalid(pattern, options).unwrap_or_else(|| PatternError::Invalid {
                    message: error.to_string(),
                    position: 1,
                    excerpt: pattern.to_owned(),
                }),
            ),
        }
    }

    /// Replaces up to `limit` matches and returns their number.
    ///
    /// # Errors
    ///
    /// [`PatternError::UnknownGroup`].
    pub fn replace(
        &self,
        text: &str,
        replacement: &str,
        limit: Option<usize>,
    ) -> Result<(String, usize), PatternError> {
        self.check_groups(replacement)?;
        let limit = limit.unwrap_or(usize::MAX);
        let mut count = 0;
        let mut output = String::with_capacity(text.len());
        let mut copied_end = 0;
        for captures in self.regex.captures_iter(text).take(limit) {
            let full_match = captures.get_match();
            output.push_str(&text[copied_end..full_match.start()]);
            captures.expand(replacement, &mut output);
            copied_end = full_match.end();
            count += 1;
        }
        output.push_str(&text[copied_end..]);
        Ok((output, count))
    }

    /// Finds up to `limit` matches.
    #[must_use]
    pub fn find(&self, text: &str, limit: usize) -> Vec<PatternMatch> {
        let mut position = TextPosition::default();
        let captures = self.regex.captures_iter(text).take(limit);
        captures
            .map(|captures| self.describe_match(text, &captures, &mut position))
            .collect()
    }

    fn describe_match(&self, text: &str, captures: &Captures<'_>, position: &mut TextPosition) -> PatternMatch {
        let full_match = captures.get_match();
        position.advance(text, full_match.start());
        let names = self.regex.capture_names().skip(1);
        let texts = captures
            .iter()
            .skip(1)
            .map(|group| group.map(|group| group.as_str().to_owned()));
        PatternMatch {
            text: full_match.as_str().to_owned(),
            start: position.characters,
            line: position.line_breaks + 1,
            groups: names.map(|name| name.map(str::to_owned)).zip(texts).collect(),
        }
    }

    /// Checks the groups in the replacement. The regex crate replaces an unknown group by nothing.
    fn check_groups(&self, replacement: &str) -> Result<(), PatternError> {
        let exists = |name: &str| match name.parse::<usize>() {
            Ok(number) => number < self.regex.captures_len(),
            Err(_) => self.regex.capture_names().flatten().any(|group| group == name),
        };
        let mut rest = replacement;
        while let Some(at) = rest.find('$') {
            rest = &rest[at + 1..];
            if let Some(after) = rest.strip_prefix('$') {
                rest = after;
                continue;
            }
            let name = match rest.strip_prefix('{') {
                Some(braced) => braced.split_once('}').map_or("", |(name, _)| name),
                None => {
                    let end = rest.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
                    &rest[..end.unwrap_or(rest.len())]
                }
            };
            if !name.is_empty() && !exists(name) {
                return Err(PatternError::UnknownGroup(name.to_owned()));
            }
        }
        Ok(())
    }
}

/// A position in a text, advanced from match to match.
#[derive(Debug, Default)]
struct TextPosition {
    byte: usize,
    characters: usize,
    line_breaks: usize,
}

impl TextPosition {
    fn advance(&mut self, text: &str, byte: usize) {
        let passed = &text[self.byte..byte];
        self.characters += passed.chars().count();
        self.line_breaks += passed.matches('\n').count();
        self.byte = byte;
    }
}

/// Describes an invalid pattern. Parses it again to get the position of the error, which the regex crate reports only as text.
fn describe_invalid(pattern: &str, options: Options) -> Option<PatternError> {
    let mut parser = ast::parse::ParserBuilder::new()
        .ignore_whitespace(options.verbose)
        .build();
    let (message, span) = match parser.parse(pattern) {
        Err(error) => (error.kind().to_string(), *error.span()),
        Ok(tree) => {
            let mut translator = regex_syntax::hir::translate::TranslatorBuilder::new()
                .case_insensitive(options.ignore_case)
                .build();
            let error = translator.translate(pattern, &tree).err()?;
            (error.kind().to_string(), *error.span())
        }
    };
    let range: Range<usize> = span.start.offset..span.end.offset;
    Some(PatternError::Invalid {
        message,
        position: pattern.get(..range.start)?.chars().count() + 1,
        excerpt: pattern.get(range)?.to_owned(),
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> Pattern {
        Pattern::new(text, Options::default()).unwrap()
    }

    fn replaced(text: &str, by: &str, replacement: &str) -> String {
        pattern(by).replace(text, replacement, None).unwrap().0
    }

    #[test]
    fn groups_are_inserted_by_number_and_by_name() {
        assert_eq!(
            replaced("2026-06-30", r"(\d+)-(?<month>\d+)-(\d+)", "$3.${month}.$1"),
            "30.06.2026"
        );
        assert_eq!(replaced("5 apples", r"\d+", "$$$0"), "$5 apples");
    }

    #[test]
    fn matches_are_counted_and_may_be_limited() {
        let vowels = pattern("[aeiou]");
        assert_eq!(vowels.replace("banana", "o", None).unwrap(), ("bonono".to_owned(), 3));
        assert_eq!(
            vowels.replace("banana", "o", Some(1)).unwrap(),
            ("bonana".to_owned(), 1)
        );
        assert_eq!(pattern("x*").replace("é", "-", None).unwrap(), ("-é-".to_owned(), 2));
    }

    #[test]
    fn options_change_what_matches() {
        let all = Options {
            ignore_case: true,
            multi_line: true,
            dot_matches_new_line: true,
            verbose: true,
        };
        let found = Pattern::new("^ straße . # end", all)
            .unwrap()
            .find("eins\nSTRAßE\nzwei", 9);
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].text.as_str(), found[0].start, found[0].line),
            ("STRAßE\n", 5, 2)
        );
    }

    #[test]
    fn positions_are_counted_in_characters_and_lines() {
        let found = pattern(r"(?<word>\w)(!)?").find("é\nß!", 9);
        assert_eq!((found[1].start, found[1].line), (2, 2));
        let word = (Some("word".to_owned()), Some("ß".to_owned()));
        assert_eq!(found[1].groups, [word, (None, Some("!".to_owned()))]);
        assert_eq!(found[0].groups[1], (None, None));
    }

    #[test]
    fn an_invalid_pattern_is_reported_with_its_position() {
        let error = |text| match Pattern::new(text, Options::default()).unwrap_err() {
            PatternError::Invalid { position, excerpt, .. } => (position, excerpt),
            other => panic!("{other:?}"),
        };
        assert_eq!(error("é(b"), (2, "(".to_owned()));
        assert_eq!(error(r"a{3,2}"), (2, "{3,2}".to_owned()));
        assert_eq!(error(r"(a)\1"), (4, r"\1".to_owned()));
        assert_eq!(error(r"\p{Nonsense}"), (1, r"\p{Nonsense}".to_owned()));
    }

    #[test]
    fn a_pattern_that_compiles_to_a_huge_program_is_refused() {
        assert_eq!(
            Pattern::new(r"\w{1000}{1000}", Options::default()).unwrap_err(),
            PatternError::TooLarge
        );
    }

    #[test]
    fn a_missing_group_is_refused() {
        let error = |replacement| pattern("(a)(?<b>b)").replace("ab", replacement, None).unwrap_err();
        assert_eq!(error("$3"), PatternError::UnknownGroup("3".to_owned()));
        assert_eq!(error("${c}"), PatternError::UnknownGroup("c".to_owned()));
        assert_eq!(error("$1st"), PatternError::UnknownGroup("1st".to_owned()));
        assert_eq!(replaced("ab", "(a)(?<b>b)", "$b${1} costs 5$, $"), "ba costs 5$, $");
    }
}
