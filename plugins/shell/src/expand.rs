//! Expansion of words: variables, substitutions, fields and globs.

use std::fs;

use glob::{MatchOptions, Pattern};

use crate::execute::Shell;
use crate::syntax::{PartKind, Word};

/// A field: its text, and a glob in which quoted characters are escaped.
#[derive(Default)]
struct Field {
    text: String,
    pattern: String,
    is_glob: bool,
    /// Whether a part was quoted, so that it exists even if it is empty.
    is_quoted: bool,
}

impl Field {
    fn push(&mut self, text: &str, is_quoted: bool) {
        self.text.push_str(text);
        self.is_quoted |= is_quoted;
        if is_quoted {
            self.pattern.push_str(&Pattern::escape(text));
        } else {
            self.pattern.push_str(text);
            self.is_glob |= text.contains(['*', '?', '[']);
        }
    }
}

impl Shell {
    /// Expands words to arguments.
    pub(crate) fn arguments(&mut self, words: &[Word]) -> Result<Vec<String>, String> {
        let mut arguments = Vec::new();
        for word in words {
            for field in self.fields(word)? {
                let paths = if field.is_glob {
                    self.matches(&field.pattern)
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
    pub(crate) fn text(&mut self, word: &Word) -> Result<String, String> {
        let mut text = String::new();
        for part in word {
            text.push_str(&self.part(&part.kind)?);
        }
        Ok(text)
    }

    fn part(&mut self, kind: &PartKind) -> Result<String, String> {
        match kind {
            PartKind::Text(text) => Ok(text.clone()),
            PartKind::Variable(name, default) => {
                let value = self.variable(name);
                Ok(match default {
                    Some(default) if value.is_empty() => default.clone(),
                    _ => value,
                })
            }
            PartKind::Script(script) => self.substitute(script),
        }
    }

    /// Expands a word and splits the results of unquoted expansions at white space.
    fn fields(&mut self, word: &Word) -> Result<Vec<Field>, String> {
        let mut fields = Vec::new();
        let mut field = Field::default();
        for part in word {
            let text = self.part(&part.kind)?;
            if part.is_quoted || matches!(part.kind, PartKind::Text(_)) {
                field.push(&text, part.is_quoted);
                continue;
            }
            let starts_apart = text.starts_with(char::is_whitespace);
            for (index, piece) in text.split_whitespace().enumerate() {
                if index > 0 || starts_apart && !field.text.is_empty() {
                    fields.push(std::mem::take(&mut field));
                }
                field.push(piece, false);
            }
            if text.ends_with(char::is_whitespace) && !field.text.is_empty() {
                fields.push(std::mem::take(&mut field));
            }
        }
        fields.push(field);
        fields.retain(|field| !field.text.is_empty() || field.is_quoted);
        Ok(fields)
    }

    /// Returns the paths that match a glob, sorted.
    fn matches(&self, pattern: &str) -> Vec<String> {
        let (mut found, rest) = match pattern.strip_prefix('/') {
            Some(rest) => (vec!["/".to_owned()], rest),
            None => (vec![String::new()], pattern),
        };
        for component in rest.split('/').filter(|component| !component.is_empty()) {
            let Ok(pattern) = Pattern::new(component) else {
                return Vec::new();
            };
            found = found
                .iter()
                .flat_map(|base| self.children(base, component, &pattern))
                .collect();
        }
        found
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
            return if self.path(&path).symlink_metadata().is_ok() || self.is_root(&path) {
                vec![path]
            } else {
                Vec::new()
            };
        }
        let options = MatchOptions {
            require_literal_leading_dot: true,
            ..MatchOptions::new()
        };
        let names = fs::read_dir(self.path(base)).into_iter().flatten().flatten();
        let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut names: Vec<_> = names.filter(|name| pattern.matches_with(name, options)).collect();
        names.sort();
        names.iter().map(|name| joined(name)).collect()
    }
}
