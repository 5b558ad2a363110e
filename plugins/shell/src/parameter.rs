//! Expansion of parameters: `$name`, `$@` and `${name…}`.

use crate::arithmetic::evaluate;
use crate::execute::{Failure, Run, Shell};
use crate::expand::Piece;
use crate::syntax::{Operation, Substitute, Word, is_name};

impl Shell {
    /// Returns the value of a parameter, or `None` if it is not set.
    pub(crate) fn parameter(&self, name: &str) -> Option<String> {
        let parameters = &self.state.parameters;
        match name {
            "?" => Some(self.status.to_string()),
            "#" => Some(parameters.len().to_string()),
            "@" | "*" => Some(parameters.join(" ")).filter(|_| !parameters.is_empty()),
            "0" => Some("sh".to_owned()),
            "$" => Some("1".to_owned()),
            "-" | "!" => None,
            "PWD" => Some(self.state.directory.display().to_string()),
            _ if name.starts_with(|c: char| c.is_ascii_digit()) => {
                let position = name.parse::<usize>().ok()?.checked_sub(1)?;
                parameters.get(position).cloned()
            }
            _ => self.state.variables.get(name).cloned(),
        }
    }

    pub(crate) fn expand_parameter(
        &mut self,
        name: &str,
        operation: Option<&Operation>,
        is_quoted: bool,
        pieces: &mut Vec<Piece>,
    ) -> Run<()> {
        let value = self.parameter(name);
        if let Some(Operation::Substitute {
            covers_empty,
            kind,
            word,
        }) = operation
        {
            let is_missing = value.as_ref().is_none_or(|value| *covers_empty && value.is_empty());
            if is_missing != (*kind == Substitute::Alternative) {
                return self.substitute_parameter(name, *kind, word, is_quoted, pieces);
            }
            if *kind == Substitute::Alternative {
                return Ok(());
            }
        }
        if let ("@" | "*", None | Some(Operation::Substitute { .. })) = (name, operation) {
            self.expand_positional(name, is_quoted, pieces);
            return Ok(());
        }
        if value.is_none()
            && self.state.options.fails_on_unset
            && !matches!(operation, Some(Operation::Substitute { .. }))
        {
            return Err(Failure::Script(format!("the variable `{name}` is not set")));
        }
        let value = value.unwrap_or_default();
        let text = match operation {
            None | Some(Operation::Substitute { .. }) => value,
            Some(Operation::Length) if matches!(name, "@" | "*") => self.state.parameters.len().to_string(),
            Some(Operation::Length) => value.chars().count().to_string(),
            Some(Operation::Trim {
                is_suffix,
                is_longest,
                pattern,
            }) => self.trim(&value, *is_suffix, *is_longest, pattern)?,
            Some(Operation::Replace {
                is_everywhere,
                pattern,
                text,
            }) => self.replace(&value, *is_everywhere, pattern, text)?,
            Some(Operation::Slice { offset, length }) => self.slice(&value, offset, length.as_ref())?,
        };
        pieces.push(Piece::Text {
            text,
            is_quoted,
            splits: !is_quoted,
        });
        Ok(())
    }

    fn expand_positional(&self, name: &str, is_quoted: bool, pieces: &mut Vec<Piece>) {
        let splits = !is_quoted;
        if name == "*" && is_quoted {
            let separator: String = self.separators().chars().take(1).collect();
            let text = self.state.parameters.join(&separator);
            pieces.push(Piece::Text {
                text,
                is_quoted,
                splits,
            });
            return;
        }
        for (position, text) in self.state.parameters.iter().enumerate() {
            if position > 0 {
                pieces.push(Piece::Break);
            }
            pieces.push(Piece::Text {
                text: text.clone(),
                is_quoted,
                splits,
            });
        }
    }

    fn substitute_parameter(
        &mut self,
        name: &str,
        kind: Substitute,
        word: &Word,
        is_quoted: bool,
        pieces: &mut Vec<Piece>,
    ) -> Run<()> {
        match kind {
            Substitute::Default | Substitute::Alternative => {
                let from = pieces.len();
                pieces.extend(self.expand_to_pieces(word)?);
                for piece in &mut pieces[from..] {
                    if let Piece::Text {
                        is_quoted: false,
                        splits,
                        ..
                    } = piece
                    {
                        *splits = true;
                    }
                }
                if is_quoted && pieces.len() == from {
                    let (text, splits) = (String::new(), false);
                    pieces.push(Piece::Text {
                        text,
                        is_quoted,
                        splits,
                    });
                }
            }
            Substitute::Assign => {
                if !is_name(name) {
                    return Err(Failure::Script(format!("`${name}` cannot be assigned")));
                }
                let text = self.expand_to_text(word)?;
                self.set_variable(name, &text);
                pieces.push(Piece::Text {
                    text,
                    is_quoted,
                    splits: !is_quoted,
                });
            }
            Substitute::Fail => {
                let message = self.expand_to_text(word)?;
                let message = if message.is_empty() { "is not set" } else { &message };
                return Err(Failure::Script(format!("{name}: {message}")));
            }
        }
        Ok(())
    }

    fn trim(&mut self, value: &str, is_suffix: bool, is_longest: bool, pattern: &Word) -> Run<String> {
        let pattern = self.expand_to_pattern(pattern)?;
        let mut cuts: Vec<usize> = value.char_indices().map(|(at, _)| at).chain([value.len()]).collect();
        if is_suffix != is_longest {
            cuts.reverse();
        }
        let cut = cuts.into_iter().find(|at| {
            let part = if is_suffix { &value[*at..] } else { &value[..*at] };
            pattern.matches(part)
        });
        let rest = match cut {
            Some(end) if is_suffix => &value[..end],
            Some(start) => &value[start..],
            None => value,
        };
        Ok(rest.to_owned())
    }

    fn replace(&mut self, value: &str, is_everywhere: bool, pattern: &Word, text: &Word) -> Run<String> {
        let (pattern, text) = (self.expand_to_pattern(pattern)?, self.expand_to_text(text)?);
        let mut replaced = String::new();
        let mut rest = value;
        while let Some(next) = rest.chars().next() {
            let ends = rest.char_indices().map(|(at, c)| at + c.len_utf8());
            let ends: Vec<usize> = ends.collect();
            // The longest match is replaced.
            if let Some(end) = ends.into_iter().rev().find(|end| pattern.matches(&rest[..*end])) {
                replaced.push_str(&text);
                rest = &rest[end..];
                if !is_everywhere {
                    break;
                }
            } else {
                replaced.push(next);
                rest = &rest[next.len_utf8()..];
            }
        }
        Ok(replaced + rest)
    }

    fn slice(&mut self, value: &str, offset: &Word, length: Option<&Word>) -> Run<String> {
        let count = i64::try_from(value.chars().count()).unwrap_or(i64::MAX);
        let offset = self.expand_to_text(offset)?;
        let offset = evaluate(self, &offset).map_err(Failure::Script)?;
        let start = if offset < 0 {
            count.saturating_add(offset)
        } else {
            offset
        };
        let mut end = count;
        if let Some(length) = length {
            let length = self.expand_to_text(length)?;
            let length = evaluate(self, &length).map_err(Failure::Script)?;
            let from = if length < 0 { count } else { start };
            end = from.saturating_add(length);
        }
        let start = usize::try_from(start).unwrap_or_default();
        let end = usize::try_from(end).unwrap_or_default();
        Ok(value.chars().take(end).skip(start).collect())
    }
}
