//! The WIT bindings of the text tools.

use self::bindings::exports::toolwit_demo::text::text as wit;
use crate::{
    count::Counts,
    diff::Difference,
    layout,
    letter_case::{self, LetterCase},
    pattern::{Options, Pattern, PatternError, PatternMatch},
    slug,
};

#[allow(missing_docs, unreachable_pub, unsafe_code, unused_qualifications)]
mod bindings {
    toolwit_guest::bindings!();
}

bindings::export!(Plugin with_types_in bindings);

/// Default number of lines that a diff shows around a change.
const CONTEXT_LINES_DEFAULT: u32 = 3;

/// Default maximum number of matches.
const MATCHES_DEFAULT: u32 = 100;

struct Plugin;

impl wit::Guest for Plugin {
    fn count(text: String) -> wit::Counts {
        let counts = Counts::of(&text);
        wit::Counts {
            characters: counts.characters as u64,
            characters_without_spaces: counts.characters_without_spaces as u64,
            words: counts.words as u64,
            sentences: counts.sentences as u64,
            lines: counts.lines as u64,
            paragraphs: counts.paragraphs as u64,
            bytes: counts.bytes as u64,
        }
    }

    fn convert_case(text: String, to: wit::LetterCase) -> String {
        letter_case::convert(&text, to.into())
    }

    fn slugify(text: String, max_characters: Option<u32>) -> String {
        slug::slugify(&text, max_characters.map(size))
    }

    fn diff(old: String, new: String, context: Option<u32>) -> wit::Difference {
        let difference = Difference::between(&old, &new, size(context.unwrap_or(CONTEXT_LINES_DEFAULT)));
        wit::Difference {
            equal: old == new,
            added: count(difference.added),
            removed: count(difference.removed),
            unified: difference.unified,
        }
    }

    fn replace_pattern(
        text: String,
        pattern: String,
        replacement: String,
        options: Option<wit::PatternOptions>,
        limit: Option<u32>,
    ) -> Result<wit::Replaced, wit::PatternError> {
        let pattern = Pattern::new(&pattern, self::options(options))?;
        let (text, replaced) = pattern.replace(&text, &replacement, limit.map(size))?;
        Ok(wit::Replaced {
            text,
            count: count(replaced),
        })
    }

    fn find_pattern(
        text: String,
        pattern: String,
        options: Option<wit::PatternOptions>,
        limit: Option<u32>,
    ) -> Result<Vec<wit::Found>, wit::PatternError> {
        let pattern = Pattern::new(&pattern, self::options(options))?;
        Ok(pattern
            .find(&text, size(limit.unwrap_or(MATCHES_DEFAULT)))
            .into_iter()
            .map(Into::into)
            .collect())
    }

    fn truncate(text: String, max_characters: u32) -> String {
        layout::truncate(&text, size(max_characters))
    }

    fn wrap(text: String, width: u32) -> String {
        layout::wrap(&text, size(width))
    }
}

/// Converts a number of the caller. `usize` has 32 bits on this target.
fn size(number: u32) -> usize {
    number as usize
}

/// Converts a count for the caller. `usize` has 32 bits on this target.
fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn options(options: Option<wit::PatternOptions>) -> Options {
    let options = options.unwrap_or(wit::PatternOptions::empty());
    Options {
        ignore_case: options.contains(wit::PatternOptions::IGNORE_CASE),
        multi_line: options.contains(wit::PatternOptions::MULTI_LINE),
        dot_matches_new_line: options.contains(wit::PatternOptions::DOT_MATCHES_NEW_LINE),
        verbose: options.contains(wit::PatternOptions::VERBOSE),
    }
}

impl From<wit::LetterCase> for LetterCase {
    fn from(case: wit::LetterCase) -> Self {
        match case {
            wit::LetterCase::Lower => Self::Lower,
            wit::LetterCase::Upper => Self::Upper,
            wit::LetterCase::Title => Self::Title,
            wit::LetterCase::Camel => Self::Camel,
            wit::LetterCase::Pascal => Self::Pascal,
            wit::LetterCase::Snake => Self::Snake,
            wit::LetterCase::Kebab => Self::Kebab,
            wit::LetterCase::Constant => Self::Constant,
        }
    }
}

impl From<PatternError> for wit::PatternError {
    fn from(error: PatternError) -> Self {
        match error {
            PatternError::Invalid {
                message,
                position,
                excerpt,
            } => Self::Invalid(wit::PatternProblem {
                message,
                position: count(position),
                excerpt,
            }),
            PatternError::TooLarge => Self::TooLarge,
            PatternError::UnknownGroup(group) => Self::UnknownGroup(group),
        }
    }
}

impl From<PatternMatch> for wit::Found {
    fn from(found: PatternMatch) -> Self {
        let groups = found.groups.into_iter().zip(1..);
        Self {
            text: found.text,
            start: count(found.start),
            line: count(found.line),
            groups: groups
                .map(|((name, text), number)| wit::Group { number, name, text })
                .collect(),
        }
    }
}
