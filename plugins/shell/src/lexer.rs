//! Splits a script into words and operators.

use std::rc::Rc;

use crate::syntax::{Document, Part, Word, literal};

/// Maximum depth of compound commands, substitutions and expansions inside each other.
const NESTING_MAX: usize = 32;

/// A syntax error at an offset of the script.
#[derive(Debug)]
pub(crate) struct SyntaxError {
    pub(crate) at: usize,
    pub(crate) message: String,
}

impl SyntaxError {
    /// Describes the error with its line and column.
    pub(crate) fn describe(&self, source: &str) -> String {
        let before = source.get(..self.at).unwrap_or(source);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        format!("line {line}, column {column}: {}", self.message)
    }
}

/// The result of reading syntax.
pub(crate) type Parsed<T> = Result<T, SyntaxError>;

/// A token and the offset at which it begins.
#[derive(Debug)]
pub(crate) struct Token {
    pub(crate) at: usize,
    pub(crate) kind: TokenKind,
}

/// The kind of a token.
#[derive(Debug)]
pub(crate) enum TokenKind {
    Word(Word),
    Operator(&'static str),
    Document(Document),
    End,
}

/// Operators, a longer one before its prefix.
const OPERATORS: [&str; 27] = [
    "2>&1", "1>&2", ">&2", "2>>", "1>>", "&>>", "2>", "1>", "&>", "&&", "||", ">>", ">|", "<<<", "<<-", "<<", ";;",
    "\n", ";", "|", ">&", ">", "<", "&", "(", ")", "<&",
];

/// A here-document whose text has not been read.
struct Pending {
    document: Document,
    delimiter: String,
    is_quoted: bool,
    removes_tabs: bool,
    at: usize,
}

/// Reads tokens on demand, because a command substitution inside a word is parsed in place.
pub(crate) struct Lexer<'a> {
    pub(crate) source: &'a str,
    pub(crate) at: usize,
    pub(crate) nesting: usize,
    pending: Vec<Pending>,
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(source: &'a str, at: usize, nesting: usize) -> Self {
        Self {
            source,
            at,
            nesting,
            pending: Vec::new(),
        }
    }

    pub(crate) fn rest(&self) -> &'a str {
        self.source.get(self.at..).unwrap_or_default()
    }

    pub(crate) fn error<T>(&self, at: usize, message: impl Into<String>) -> Parsed<T> {
        let message = message.into();
        Err(SyntaxError { at, message })
    }

    /// Reads something nested, up to a limit of depth.
    pub(crate) fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.nesting >= NESTING_MAX {
            return self.error(
                self.at,
                format!("the script is nested deeper than {NESTING_MAX} levels"),
            );
        }
        self.nesting += 1;
        let result = read(self);
        self.nesting -= 1;
        result
    }

    /// Reads the next token.
    pub(crate) fn token(&mut self) -> Parsed<Token> {
        self.skip_blanks();
        let at = self.at;
        if self.rest().is_empty() {
            if let Some(pending) = self.pending.first() {
                return self.unclosed(pending);
            }
            let kind = TokenKind::End;
            return Ok(Token { at, kind });
        }
        let kind = match OPERATORS.iter().find(|operator| self.rest().starts_with(**operator)) {
            Some(operator) => {
                self.at += operator.len();
                self.operator(operator, at)?
            }
            None => TokenKind::Word(self.word()?),
        };
        Ok(Token { at, kind })
    }

    /// Skips blanks, continued lines and comments.
    pub(crate) fn skip_blanks(&mut self) {
        loop {
            let rest = self.rest();
            if rest.starts_with([' ', '\t', '\r']) {
                self.at += 1;
            } else if rest.starts_with("\\\n") {
                self.at += 2;
            } else if rest.starts_with('#') {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else {
                return;
            }
        }
    }

    fn operator(&mut self, operator: &'static str, at: usize) -> Parsed<TokenKind> {
        match operator {
            "<<" | "<<-" => {
                self.skip_blanks();
                let word = self.word()?;
                let Some(delimiter) = literal(&word).filter(|_| !word.is_empty()) else {
                    return self.error(at, "the delimiter of a here-document must be a plain word");
                };
                let document = Document::default();
                self.pending.push(Pending {
                    document: Rc::clone(&document),
                    delimiter,
                    is_quoted: word.iter().any(|part| part.is_quoted),
                    removes_tabs: operator == "<<-",
                    at,
                });
                return Ok(TokenKind::Document(document));
            }
            "\n" => {
                for pending in std::mem::take(&mut self.pending) {
                    let word = self.document(&pending)?;
                    // A new document has no text yet.
                    let _ = pending.document.set(word);
                }
            }
            "&" => return self.error(at, "background jobs (`&`) are not supported"),
            ">&" | "<&" => return self.error(at, "of the duplications, only `2>&1` and `>&2` are supported"),
            _ => {}
        }
        Ok(TokenKind::Operator(operator))
    }

    /// Reads the lines up to a delimiter.
    fn document(&mut self, pending: &Pending) -> Parsed<Word> {
        let mut text = String::new();
        while !self.rest().is_empty() {
            let rest = self.rest();
            let end = rest.find('\n').unwrap_or(rest.len());
            self.at += (end + 1).min(rest.len());
            let mut line = rest[..end].strip_suffix('\r').unwrap_or(&rest[..end]);
            if pending.removes_tabs {
                line = line.trim_start_matches('\t');
            }
            if line == pending.delimiter {
                if pending.is_quoted {
                    return Ok(vec![Part::text(text, true)]);
                }
                // The text may differ from the script, so an error is reported at the operator.
                let parts = Lexer::new(&text, 0, self.nesting).quoted_parts();
                return parts.map_err(|error| SyntaxError {
                    at: pending.at,
                    message: format!("in the here-document `{}`: {}", pending.delimiter, error.message),
                });
            }
            text.push_str(line);
            text.push('\n');
        }
        self.unclosed(pending)
    }

    fn unclosed<T>(&self, pending: &Pending) -> Parsed<T> {
        let message = format!(
            "the here-document is not closed: a line with only `{}` is missing",
            pending.delimiter
        );
        self.error(pending.at, message)
    }
}
