//! Reads words: quotes, expansions and substitutions.

use std::rc::Rc;

use crate::lexer::{Lexer, Parsed, SyntaxError};
use crate::parser;
use crate::syntax::{Operation, Part, PartKind, Substitute, Word, is_name};

impl Lexer<'_> {
    pub(crate) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next_char(&mut self) -> Option<char> {
        let character = self.peek()?;
        self.offset += character.len_utf8();
        Some(character)
    }

    /// Takes a text if it comes next.
    pub(crate) fn take(&mut self, text: &str) -> bool {
        let is_next = self.rest().starts_with(text);
        if is_next {
            self.offset += text.len();
        }
        is_next
    }

    /// Reads a word up to white space or an operator.
    pub(crate) fn read_word(&mut self) -> Parsed<Word> {
        self.read_word_until(|character| {
            matches!(
                character,
                ' ' | '\t' | '\r' | '\n' | ';' | '|' | '&' | '<' | '>' | '(' | ')'
            )
        })
    }

    fn read_word_until(&mut self, is_end: impl Fn(char) -> bool) -> Parsed<Word> {
        let mut word = Word::new();
        while let Some(character) = self.peek().filter(|character| !is_end(*character)) {
            match character {
                '\'' => {
                    let text = self.read_single_quoted()?;
                    word.push(Part::text(text, true));
                }
                '"' => word.extend(self.read_double_quoted()?),
                '\\' => {
                    self.offset += 1;
                    match self.next_char() {
                        Some('\n') => {}
                        Some(next) => word.push(Part::text(next.to_string(), true)),
                        None => push(&mut word, '\\', true),
                    }
                }
                '$' | '`' => word.push(self.read_expansion(false)?),
                _ => {
                    self.offset += character.len_utf8();
                    push(&mut word, character, false);
                }
            }
        }
        Ok(word)
    }

    fn read_single_quoted(&mut self) -> Parsed<String> {
        let start = self.offset;
        self.offset += 1;
        match self.rest().split_once('\'') {
            Some((text, _)) => {
                self.offset += text.len() + 1;
                Ok(text.to_owned())
            }
            None => self.error(start, "the `'` is not closed"),
        }
    }

    fn read_double_quoted(&mut self) -> Parsed<Word> {
        let start = self.offset;
        self.offset += 1;
        let mut word = Word::new();
        while !self.take("\"") {
            if self.rest().is_empty() {
                return self.error(start, "the `\"` is not closed");
            }
            self.read_quoted_character(&mut word, "$`\"\\\n")?;
        }
        if word.is_empty() {
            word.push(Part::text(String::new(), true));
        }
        Ok(word)
    }

    /// Reads a text in which only expansions are special, such as a here-document.
    pub(crate) fn read_quoted_parts(&mut self) -> Parsed<Word> {
        let mut word = Word::new();
        while !self.rest().is_empty() {
            self.read_quoted_character(&mut word, "$`\\\n")?;
        }
        Ok(word)
    }

    /// Reads a character or an expansion inside quotes. A backslash escapes some characters only.
    fn read_quoted_character(&mut self, word: &mut Word, escaped: &str) -> Parsed<()> {
        match self.peek() {
            Some('$' | '`') => word.push(self.read_expansion(true)?),
            Some('\\') => {
                self.offset += 1;
                match self.peek().filter(|next| escaped.contains(*next)) {
                    Some(next) => {
                        self.offset += next.len_utf8();
                        if next != '\n' {
                            push(word, next, true);
                        }
                    }
                    None => push(word, '\\', true),
                }
            }
            Some(character) => {
                self.offset += character.len_utf8();
                push(word, character, true);
            }
            None => {}
        }
        Ok(())
    }

    /// Reads an expansion that begins with `$` or a backquote.
    fn read_expansion(&mut self, is_quoted: bool) -> Parsed<Part> {
        let start = self.offset;
        if self.take("`") {
            let kind = self.read_backquoted(start)?;
            return Ok(Part { kind, is_quoted });
        }
        self.offset += 1;
        let kind = match self.peek() {
            Some('{') => {
                self.offset += 1;
                self.nested(|lexer| lexer.read_braces(start, is_quoted))?
            }
            Some('(') if self.rest().starts_with("((") => {
                self.offset += 2;
                PartKind::Arithmetic(self.nested(|lexer| lexer.read_arithmetic(start))?)
            }
            Some('(') => {
                self.offset += 1;
                PartKind::Script(Rc::new(self.nested(|lexer| parser::parse_substitution(lexer, start))?))
            }
            Some('\'') if !is_quoted => {
                let text = self.read_single_quoted()?;
                return Ok(Part::text(crate::commands::unescape(&text), true));
            }
            _ => match self.take_name() {
                Some(name) => PartKind::Parameter(name, None),
                None => PartKind::Text("$".to_owned()),
            },
        };
        Ok(Part { kind, is_quoted })
    }

    /// Takes the name of a variable, a special parameter or a positional parameter, which has one digit.
    fn take_name(&mut self) -> Option<String> {
        let rest = self.rest();
        let first = rest.chars().next()?;
        let length = if is_name(&first.to_string()) {
            let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
            end.unwrap_or(rest.len())
        } else if first.is_ascii_digit() || "?#@*$-!".contains(first) {
            1
        } else {
            return None;
        };
        self.offset += length;
        Some(rest[..length].to_owned())
    }

    /// Reads the script between backquotes, in which a backslash escapes `$`, a backquote and itself.
    fn read_backquoted(&mut self, start: usize) -> Parsed<PartKind> {
        let mut script = String::new();
        loop {
            match self.next_char() {
                Some('`') => break,
                Some('\\') => {
                    if !self.rest().starts_with(['$', '`', '\\']) {
                        script.push('\\');
                    }
                    script.extend(self.next_char());
                }
                Some(character) => script.push(character),
                None => return self.error(start, "the backquote is not closed"),
            }
        }
        let parsed = self.nested(|lexer| parser::parse_nested_script(&script, lexer.nesting));
        let parsed = parsed.map_err(|error| SyntaxError { offset: start, ..error })?;
        Ok(PartKind::Script(Rc::new(parsed)))
    }

    /// Reads an arithmetic expression up to `))`.
    pub(crate) fn read_arithmetic(&mut self, start: usize) -> Parsed<Word> {
        let (mut word, mut depth) = (Word::new(), 0_usize);
        loop {
            if depth == 0 && self.take("))") {
                return Ok(word);
            }
            match self.peek() {
                Some('(') => depth += 1,
                Some(')') if depth == 0 => return self.error(self.offset, "this `)` has no `(`"),
                Some(')') => depth -= 1,
                Some('"') => {
                    self.offset += 1;
                    continue;
                }
                Some(_) => {}
                None => return self.error(start, "the `((` is not closed with `))`"),
            }
            self.read_quoted_character(&mut word, "$`\"\\\n")?;
        }
    }

    /// Reads the rest of `${…}`.
    fn read_braces(&mut self, start: usize, is_quoted: bool) -> Parsed<PartKind> {
        let is_length = self.rest().starts_with('#') && !self.rest().starts_with("#}");
        if is_length {
            self.offset += 1;
        }
        let rest = self.rest();
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let name = if digits > 0 {
            self.offset += digits;
            Some(rest[..digits].to_owned())
        } else {
            self.take_name()
        };
        let Some(name) = name else {
            return self.error(start, "`${` needs the name of a variable");
        };
        let operation = if is_length {
            Some(Operation::Length)
        } else if self.rest().is_empty() || self.rest().starts_with('}') {
            None
        } else {
            Some(self.read_operation(start, is_quoted)?)
        };
        if self.take("}") {
            return Ok(PartKind::Parameter(name, operation));
        }
        self.error(start, "the `${` is not closed with `}`")
    }

    fn read_operation(&mut self, start: usize, is_quoted: bool) -> Parsed<Operation> {
        for (is_suffix, one, two) in [(true, "%", "%%"), (false, "#", "##")] {
            let is_longest = self.take(two);
            if is_longest || self.take(one) {
                return Ok(Operation::Trim {
                    is_suffix,
                    is_longest,
                    pattern: self.read_word_until(|character| character == '}')?,
                });
            }
        }
        if self.take("/") {
            let is_everywhere = self.take("/");
            let pattern = self.read_word_until(|character| matches!(character, '/' | '}'))?;
            let text = if self.take("/") {
                self.read_operand(is_quoted)?
            } else {
                Word::new()
            };
            return Ok(Operation::Replace {
                is_everywhere,
                pattern,
                text,
            });
        }
        let covers_empty = self.take(":");
        let kinds = [
            ("-", Substitute::Default),
            ("=", Substitute::Assign),
            ("?", Substitute::Fail),
            ("+", Substitute::Alternative),
        ];
        for (operator, kind) in kinds {
            if self.take(operator) {
                let word = self.read_operand(is_quoted)?;
                return Ok(Operation::Substitute {
                    covers_empty,
                    kind,
                    word,
                });
            }
        }
        if !covers_empty {
            return self.error(start, "this form of `${…}` is not supported");
        }
        let offset = self.read_word_until(|character| matches!(character, ':' | '}'))?;
        let length = if self.take(":") {
            Some(self.read_word_until(|character| character == '}')?)
        } else {
            None
        };
        Ok(Operation::Slice { offset, length })
    }

    /// Reads the word of an operation. Inside quotes, a single quote is a character like others.
    fn read_operand(&mut self, is_quoted: bool) -> Parsed<Word> {
        if !is_quoted {
            return self.read_word_until(|character| character == '}');
        }
        let mut word = Word::new();
        while self.peek().is_some_and(|character| character != '}') {
            if self.take("\"") {
                continue;
            }
            self.read_quoted_character(&mut word, "$`\"\\\n}")?;
        }
        Ok(word)
    }
}

fn push(word: &mut Word, character: char, is_quoted: bool) {
    match word.last_mut() {
        Some(Part {
            kind: PartKind::Text(text),
            is_quoted: last,
        }) if *last == is_quoted => text.push(character),
        _ => word.push(Part::text(character.to_string(), is_quoted)),
    }
}
