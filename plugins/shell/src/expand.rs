//! Expansion of words: parameters, substitutions, fields and globs.

use std::fs;

use glob::{MatchOptions, Pattern};

use crate::arithmetic::evaluate;
use crate::execute::{Failure, OUTPUT_BYTES_MAX, Run, Shell};
use crate::syntax::{Part, PartKind, Word};

/// A field: its text, and a glob in which quoted characters are escaped.
#[derive(Default)]
struct Field {
    text: String,
    pattern: String,
    is_glob: bool,
    /// Whether the field exists even if it is empty: a part of it was quoted, or a separator ended it.
    exists_if_empty: bool,
}

impl Field {
    fn push(&mut self, text: &str, is_quoted: bool) {
        self.text.push_str(text);
        self.exists_if_empty |= is_quoted;
        push_pattern(&mut self.pattern, text, is_quoted);
        self.is_glob |= !is_quoted && text.contains(['*', '?', '[']);
    }
}

/// A piece of an expanded word.
pub(crate) enum Piece {
    Text {
        text: String,
        is_quoted: bool,
        /// Whether the text is split into fields.
        splits: bool,
    },
    /// The end of a field, as between the parameters of `$@`.
    Break,
}

impl Shell {
    /// Expands words to arguments.
    pub(crate) fn expand_to_arguments(&mut self, words: &[Word]) -> Run<Vec<String>> {
        let mut arguments = Vec::new();
        for word in words {
            for field in self.expand_to_fields(word)? {
                let paths = if field.is_glob {
                    self.matching_paths(&field.pattern)
                } else {
                    Vec::new()
                };
                if paths.is_empty() {
                    arguments.push(field.text);
                } else {
                    arguments.extend(paths);
                }
            }
        }
        Ok(arguments)
    }

    /// Expands a word to one text, without splitting and globs.
    pub(crate) fn expand_to_text(&mut self, word: &Word) -> Run<String> {
        let mut all = String::new();
        for piece in self.expand_to_pieces(word)? {
            match piece {
                Piece::Text { text, .. } => all.push_str(&text),
                Piece::Break => all.push(' '),
            }
        }
        Ok(all)
    }

    /// Expands a word to a pattern in which quoted characters are escaped.
    pub(crate) fn expand_to_pattern(&mut self, word: &Word) -> Run<Pattern> {
        let mut pattern = String::new();
        for piece in self.expand_to_pieces(word)? {
            match piece {
                Piece::Text { text, is_quoted, .. } => push_pattern(&mut pattern, &text, is_quoted),
                Piece::Break => pattern.push(' '),
            }
        }
        while pattern.contains("**") {
            pattern = pattern.replace("**", "*");
        }
        // An invalid pattern, such as one with an open bracket, matches itself.
        Ok(Pattern::new(&pattern)
            .or_else(|_| Pattern::new(&Pattern::escape(&pattern)))
            .unwrap_or_default())
    }

    /// Expands a word to its pieces.
    pub(crate) fn expand_to_pieces(&mut self, word: &Word) -> Run<Vec<Piece>> {
        let mut pieces = Vec::new();
        for part in word {
            self.expand(part, &mut pieces)?;
        }
        let bytes: usize = pieces.iter().map(Piece::len).sum();
        if bytes > OUTPUT_BYTES_MAX {
            return Err(Failure::Limit(
                "a word is longer than 4 MiB after its expansion".to_owned(),
            ));
        }
        Ok(pieces)
    }

    fn expand(&mut self, part: &Part, pieces: &mut Vec<Piece>) -> Run<()> {
        let is_quoted = part.is_quoted;
        let text = match &part.kind {
            PartKind::Text(text) => {
                let (text, splits) = (text.clone(), false);
                pieces.push(Piece::Text {
                    text,
                    is_quoted,
                    splits,
                });
                return Ok(());
            }
            PartKind::Parameter(name, operation) => {
                return self.expand_parameter(name, operation.as_ref(), is_quoted, pieces);
            }
            PartKind::Script(script) => self.substitute(script)?,
            PartKind::Arithmetic(expression) => {
                let expression = self.expand_to_text(expression)?;
                evaluate(self, &expression).map_err(Failure::Script)?.to_string()
            }
        };
        pieces.push(Piece::Text {
            text,
            is_quoted,
            splits: !is_quoted,
        });
        Ok(())
    }

    /// Expands a word and splits the results of unquoted expansions.
    fn expand_to_fields(&mut self, word: &Word) -> Run<Vec<Field>> {
        let separators = self.separators();
        let mut fields = Vec::new();
        let mut field = Field::default();
        for piece in self.expand_to_pieces(word)? {
            let (text, is_quoted) = match piece {
                Piece::Break => {
                    fields.push(std::mem::take(&mut field));
                    continue;
                }
                Piece::Text {
                    text,
                    is_quoted,
                    splits: true,
                } if !is_quoted => {
                    split(&text, &separators, &mut field, &mut fields);
                    continue;
                }
                Piece::Text { text, is_quoted, .. } => (text, is_quoted),
            };
            field.push(&text, is_quoted);
        }
        fields.push(field);
        fields.retain(|field| !field.text.is_empty() || field.exists_if_empty);
        Ok(fields)
    }

    /// Returns the characters at which fields are split: the value of `IFS`.
    pub(crate) fn separators(&self) -> String {
        self.parameter("IFS").unwrap_or_else(|| " \t\n".to_owned())
    }

    /// Returns the paths that match a glob, sorted.
    fn matching_paths(&self, pattern: &str) -> Vec<String> {
        let (mut paths, rest) = match pattern.strip_prefix('/') {
            Some(rest) => (vec!["/".to_owned()], rest),
            None => (vec![String::new()], pattern),
        };
        for component in rest.split('/').filter(|component| !component.is_empty()) {
            let Ok(pattern) = Pattern::new(component) else {
                return Vec::new();
            };
            paths = paths
                .iter()
                .flat_map(|base| self.children(base, component, &pattern))
                .collect();
        }
        paths
    }

    /// Returns the paths in a directory whose names match.
    fn children(&self, base: &str, component: &str, pattern: &Pattern) -> Vec<String> {
        let joined = |name: &str| match base {
            "" => name.to_owned(),
            base if base.ends_with('/') => format!("{base}{name}"),
            base => format!("{base}/{name}"),
        };
        if !component.contains(['*', '?', '[']) {
            let path = joined(component);
            return if self.resolve_path(&path).symlink_metadata().is_ok() || self.is_root(&path) {
                vec![path]
            } else {
                Vec::new()
            };
        }
        let options = MatchOptions {
            require_literal_leading_dot: true,
            ..MatchOptions::new()
        };
        let names = fs::read_dir(self.resolve_path(base)).into_iter().flatten().flatten();
        let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut names: Vec<_> = names.filter(|name| pattern.matches_with(name, options)).collect();
        names.sort();
        names.iter().map(|name| joined(name)).collect()
    }
}

impl Piece {
    fn len(&self) -> usize {
        match self {
            Self::Text { text, .. } => text.len(),
            Self::Break => 1,
        }
    }
}

/// Appends a text to a pattern. Special characters of a quoted text are escaped. `[^` becomes `[!`, the negation of globs.
fn push_pattern(pattern: &mut String, text: &str, is_quoted: bool) {
    if is_quoted {
        pattern.push_str(&Pattern::escape(text));
    } else {
        pattern.push_str(&text.replace("[^", "[!"));
    }
}

/// Splits the result of an expansion. Any amount of white space separates two fields; each other separator ends one field.
fn split(text: &str, separators: &str, field: &mut Field, fields: &mut Vec<Field>) {
    let mut after_blank = false;
    for piece in text.split_inclusive(|c| separators.contains(c)) {
        let separator = piece.chars().next_back().filter(|c| separators.contains(*c));
        let content = &piece[..piece.len() - separator.map_or(0, char::len_utf8)];
        if !content.is_empty() {
            field.push(content, false);
            after_blank = false;
        }
        let Some(separator) = separator else { continue };
        let is_empty = field.text.is_empty() && !field.exists_if_empty;
        if separator.is_whitespace() {
            after_blank |= !is_empty;
        } else {
            // `a : b` with the separators ` :` has two fields.
            field.exists_if_empty |= !(after_blank && is_empty);
            after_blank = false;
        }
        if !field.text.is_empty() || field.exists_if_empty {
            fields.push(std::mem::take(field));
        }
    }
}
