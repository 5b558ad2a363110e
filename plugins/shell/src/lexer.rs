//! Splits a script into words and operators.

use std::iter::Peekable;
use std::str::Chars;

use crate::syntax::{Part, PartKind, Word};

/// A token of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    Word(Word),
    Operator(&'static str),
    /// The text of a here-document.
    Document(Word),
}

/// Operators, longest first.
const OPERATORS: [&str; 17] = [
    "2>&1", ">&2", "1>&2", "2>>", "&>", "2>", "&&", "||", ">>", "<<-", "<<", "\n", ";", "|", ">", "<", "&",
];

/// Splits a script.
///
/// # Errors
/// For a quote or substitution that is not closed, and for syntax that is not supported.
pub(crate) fn tokens(script: &str) -> Result<Vec<Token>, String> {
    Lexer {
        rest: script,
        tokens: Vec::new(),
        documents: Vec::new(),
    }
    .run()
}

struct Lexer<'a> {
    rest: &'a str,
    tokens: Vec<Token>,
    /// Here-documents that begin after the current line: position of the token, delimiter, whether it is quoted, and whether tabs
    /// are removed.
    documents: Vec<(usize, String, bool, bool)>,
}

impl Lexer<'_> {
    fn run(mut self) -> Result<Vec<Token>, String> {
        loop {
            self.rest = self.rest.trim_start_matches([' ', '\t', '\r']);
            if let Some(rest) = self.rest.strip_prefix("\\\n") {
                self.rest = rest;
            } else if self.rest.starts_with('#') {
                self.rest = &self.rest[self.rest.find('\n').unwrap_or(self.rest.len())..];
            } else if self.rest.is_empty() {
                break;
            } else if let Some(operator) = OPERATORS.iter().find(|operator| self.rest.starts_with(**operator)) {
                self.rest = &self.rest[operator.len()..];
                self.operator(operator)?;
            } else if self.rest.starts_with(['(', ')']) {
                return Err("subshells and functions are not supported".to_owned());
            } else {
                let word = self.word()?;
                self.tokens.push(Token::Word(word));
            }
        }
        match self.documents.first() {
            Some((_, delimiter, ..)) => Err(format!("the here-document `{delimiter}` is not closed")),
            None => Ok(self.tokens),
        }
    }

    fn operator(&mut self, operator: &'static str) -> Result<(), String> {
        match operator {
            "<<" | "<<-" => {
                self.rest = self.rest.trim_start_matches([' ', '\t']);
                let word = self.word()?;
                let is_quoted = word.iter().any(|part| part.is_quoted);
                let delimiter = literal(&word).ok_or("the delimiter of a here-document must be a plain word")?;
                self.documents
                    .push((self.tokens.len(), delimiter, is_quoted, operator == "<<-"));
                self.tokens.push(Token::Document(Word::new()));
            }
            "\n" => {
                self.tokens.push(Token::Operator("\n"));
                for (position, delimiter, is_quoted, removes_tabs) in std::mem::take(&mut self.documents) {
                    let text = self.document(&delimiter, removes_tabs)?;
                    let word = if is_quoted {
                        vec![text_part(text, true)]
                    } else {
                        quoted_parts(&text)?
                    };
                    self.tokens[position] = Token::Document(word);
                }
            }
            "&" => return Err("background jobs are not supported".to_owned()),
            _ => self.tokens.push(Token::Operator(operator)),
        }
        Ok(())
    }

    /// Reads the lines up to a delimiter.
    fn document(&mut self, delimiter: &str, removes_tabs: bool) -> Result<String, String> {
        let mut text = String::new();
        while !self.rest.is_empty() {
            let (line, rest) = self.rest.split_once('\n').unwrap_or((self.rest, ""));
            self.rest = rest;
            let line = if removes_tabs {
                line.trim_start_matches('\t')
            } else {
                line
            };
            if line == delimiter {
                return Ok(text);
            }
            text.push_str(line);
            text.push('\n');
        }
        Err(format!("the here-document `{delimiter}` is not closed"))
    }

    fn word(&mut self) -> Result<Word, String> {
        let mut characters = self.rest.chars().peekable();
        let mut word = Word::new();
        while let Some(character) = characters.peek().copied() {
            match character {
                ' ' | '\t' | '\r' | '\n' | ';' | '|' | '&' | '<' | '>' | '(' | ')' => break,
                '\'' => {
                    characters.next();
                    let text = until(&mut characters, '\'')?;
                    word.push(text_part(text, true));
                }
                '"' => {
                    characters.next();
                    word.push(text_part(String::new(), true));
                    word.extend(double_quoted(&mut characters)?);
                }
                '\\' => {
                    characters.next();
                    if let Some(next) = characters.next().filter(|next| *next != '\n') {
                        word.push(text_part(next.to_string(), true));
                    }
                }
                '$' => word.push(dollar(&mut characters, false)?),
                '`' => return Err("write `$(...)` instead of backquotes".to_owned()),
                _ => {
                    characters.next();
                    push(&mut word, character, false);
                }
            }
        }
        let length: usize = characters.map(char::len_utf8).sum();
        self.rest = &self.rest[self.rest.len() - length..];
        Ok(word)
    }
}

/// Returns the text of a word without expansions.
pub(crate) fn literal(word: &Word) -> Option<String> {
    word.iter()
        .map(|part| match &part.kind {
            PartKind::Text(text) => Some(text.as_str()),
            _ => None,
        })
        .collect()
}

fn text_part(text: String, is_quoted: bool) -> Part {
    let kind = PartKind::Text(text);
    Part { kind, is_quoted }
}

fn push(word: &mut Word, character: char, is_quoted: bool) {
    match word.last_mut() {
        Some(Part {
            kind: PartKind::Text(text),
            is_quoted: last,
        }) if *last == is_quoted => text.push(character),
        _ => word.push(text_part(character.to_string(), is_quoted)),
    }
}

fn until(characters: &mut Peekable<Chars<'_>>, end: char) -> Result<String, String> {
    let mut text = String::new();
    for character in characters.by_ref() {
        if character == end {
            return Ok(text);
        }
        text.push(character);
    }
    Err(format!("a `{end}` is missing"))
}

/// Reads the rest of a text in double quotes.
fn double_quoted(characters: &mut Peekable<Chars<'_>>) -> Result<Word, String> {
    let mut word = Word::new();
    while let Some(character) = characters.peek().copied() {
        match character {
            '"' => {
                characters.next();
                return Ok(word);
            }
            _ => quoted_character(characters, &mut word, "$`\"\\\n")?,
        }
    }
    Err("a `\"` is missing".to_owned())
}

/// Reads a text in which variables and substitutions are expanded, such as a here-document.
fn quoted_parts(text: &str) -> Result<Word, String> {
    let mut characters = text.chars().peekable();
    let mut word = Word::new();
    while characters.peek().is_some() {
        quoted_character(&mut characters, &mut word, "$`\\\n")?;
    }
    Ok(word)
}

/// Reads a character or an expansion inside quotes. A backslash escapes some characters only.
fn quoted_character(characters: &mut Peekable<Chars<'_>>, word: &mut Word, escaped: &str) -> Result<(), String> {
    match characters.peek().copied() {
        Some('$') => word.push(dollar(characters, true)?),
        Some('\\') => {
            characters.next();
            match characters.next_if(|next| escaped.contains(*next)) {
                Some('\n') => {}
                Some(next) => push(word, next, true),
                None => push(word, '\\', true),
            }
        }
        Some(character) => {
            characters.next();
            push(word, character, true);
        }
        None => {}
    }
    Ok(())
}

/// Reads an expansion that begins with `$`.
fn dollar(characters: &mut Peekable<Chars<'_>>, is_quoted: bool) -> Result<Part, String> {
    characters.next();
    let kind = match characters.peek().copied() {
        Some('{') => {
            characters.next();
            braces(&until(characters, '}')?)?
        }
        Some('(') => {
            characters.next();
            PartKind::Script(substitution(characters)?)
        }
        Some('?') => {
            characters.next();
            PartKind::Variable("?".to_owned(), None)
        }
        Some(first) if first.is_ascii_alphabetic() || first == '_' => {
            let mut name = String::new();
            while let Some(next) = characters.next_if(|next| next.is_ascii_alphanumeric() || *next == '_') {
                name.push(next);
            }
            PartKind::Variable(name, None)
        }
        _ => PartKind::Text("$".to_owned()),
    };
    Ok(Part { kind, is_quoted })
}

/// Parses the content of `${...}`.
fn braces(content: &str) -> Result<PartKind, String> {
    let (name, default) = match content.split_once(":-") {
        Some((name, default)) => (name, Some(default.to_owned())),
        None => (content, None),
    };
    let is_name = !name.is_empty() && name.chars().all(|next| next.is_ascii_alphanumeric() || next == '_');
    if is_name || name == "?" {
        Ok(PartKind::Variable(name.to_owned(), default))
    } else {
        Err(format!(
            "`${{{content}}}` is not supported; use `${{NAME}}` or `${{NAME:-default}}`"
        ))
    }
}

/// Reads a command substitution up to its closing parenthesis.
fn substitution(characters: &mut Peekable<Chars<'_>>) -> Result<String, String> {
    if characters.peek() == Some(&'(') {
        return Err("arithmetic is not supported".to_owned());
    }
    let (mut script, mut depth, mut quote) = (String::new(), 1, None);
    while let Some(character) = characters.next() {
        match (quote, character) {
            (None, '(') => depth += 1,
            (None, ')') => depth -= 1,
            (None, '\'' | '"') => quote = Some(character),
            (Some(open), close) if open == close => quote = None,
            _ => {}
        }
        if depth == 0 {
            return Ok(script);
        }
        script.push(character);
        if character == '\\' && quote != Some('\'') {
            script.extend(characters.next());
        }
    }
    Err("a `)` is missing".to_owned())
}
