//! Splits a script into words and operators.

use std::rc::Rc;

use crate::syntax::{Document, Part, PartKind, Word, literal};

/// Maximum depth of compound commands, substitutions and expansions inside each other.
const NESTING_MAX: usize = 32;

/// A syntax error at an offset of the script.
#[derive(Debug)]
pub(crate) struct SyntaxError {
    pub(crate) offset: usize,
    pub(crate) message: String,
}

impl SyntaxError {
    /// Describes the error with its line and column.
    pub(crate) fn describe(&self, source: &str) -> String {
        let before = source.get(..self.offset).unwrap_or(source);
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
    pub(crate) offset: usize,
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
struct PendingDocument {
    document: Document,
    delimiter: String,
    is_quoted: bool,
    removes_tabs: bool,
    offset: usize,
}

/// Reads tokens on demand, because a command substitution inside a word is parsed in place.
pub(crate) struct Lexer<'a> {
    pub(crate) source: &'a str,
    pub(crate) offset: usize,
    pub(crate) nesting: usize,
    pending: Vec<PendingDocument>,
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(source: &'a str, offset: usize, nesting: usize) -> Self {
        Self {
            source,
            offset,
            nesting,
            pending: Vec::new(),
        }
    }

    pub(crate) fn rest(&self) -> &'a str {
        self.source.get(self.offset..).unwrap_or_default()
    }

    pub(crate) fn error<T>(&self, offset: usize, message: impl Into<String>) -> Parsed<T> {
        let message = message.into();
        Err(SyntaxError { offset, message })
    }

    /// Calls a function that reads a nested construct, up to a limit of depth.
    pub(crate) fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.nesting >= NESTING_MAX {
            return self.error(
                self.offset,
                format!("the script is nested deeper than {NESTING_MAX} levels"),
            );
        }
        self.nesting += 1;
        let result = read(self);
        self.nesting -= 1;
        result
    }

    /// Reads the next token.
    pub(crate) fn next_token(&mut self) -> Parsed<Token> {
        self.skip_blanks();
        let offset = self.offset;
        if self.rest().is_empty() {
            if let Some(pending) = self.pending.first() {
                return self.unclosed(pending);
            }
            let kind = TokenKind::End;
            return Ok(Token { offset, kind });
        }
        let kind = match OPERATORS.iter().find(|operator| self.rest().starts_with(**operator)) {
            Some(operator) => {
                self.offset += operator.len();
                self.read_operator(operator, offset)?
            }
            None => {
                let word = self.read_word()?;
                if has_braces(&word) {
                    let message =
                        "brace expansion is not supported; write each word, use `$(seq 1 3)`, or quote the braces";
                    return self.error(offset, message);
                }
                TokenKind::Word(word)
            }
        };
        Ok(Token { offset, kind })
    }

    /// Skips blanks, continued lines and comments.
    pub(crate) fn skip_blanks(&mut self) {
        loop {
            let rest = self.rest();
            if rest.starts_with([' ', '\t', '\r']) {
                self.offset += 1;
            } else if rest.starts_with("\\\n") {
                self.offset += 2;
            } else if rest.starts_with('#') {
                self.offset += rest.find('\n').unwrap_or(rest.len());
            } else {
                return;
            }
        }
    }

    fn read_operator(&mut self, operator: &'static str, offset: usize) -> Parsed<TokenKind> {
        match operator {
            "<<" | "<<-" => {
                self.skip_blanks();
                let word = self.read_word()?;
                let Some(delimiter) = literal(&word).filter(|_| !word.is_empty()) else {
                    return self.error(offset, "the delimiter of a here-document must be a plain word");
                };
                let document = Document::default();
                self.pending.push(PendingDocument {
                    document: Rc::clone(&document),
                    delimiter,
                    is_quoted: word.iter().any(|part| part.is_quoted),
                    removes_tabs: operator == "<<-",
                    offset,
                });
                return Ok(TokenKind::Document(document));
            }
            "\n" => {
                for pending in std::mem::take(&mut self.pending) {
                    let word = self.read_document(&pending)?;
                    // A pending document has no text yet, so setting it does not fail.
                    let _ = pending.document.set(word);
                }
            }
            "&" => return self.error(offset, "background jobs (`&`) are not supported"),
            ">&" | "<&" => return self.error(offset, "of the duplications, only `2>&1` and `>&2` are supported"),
            _ => {}
        }
        Ok(TokenKind::Operator(operator))
    }

    /// Reads the lines of a here-document up to its delimiter.
    fn read_document(&mut self, pending: &PendingDocument) -> Parsed<Word> {
        let mut text = String::new();
        while !self.rest().is_empty() {
            let rest = self.rest();
            let end = rest.find('\n').unwrap_or(rest.len());
            self.offset += (end + 1).min(rest.len());
            let mut line = rest[..end].strip_suffix('\r').unwrap_or(&rest[..end]);
            if pending.removes_tabs {
                line = line.trim_start_matches('\t');
            }
            if line == pending.delimiter {
                if pending.is_quoted {
                    return Ok(vec![Part::text(text, true)]);
                }
                // The text may differ from the script, so an error is reported at the operator.
                let parts = Lexer::new(&text, 0, self.nesting).read_quoted_parts();
                return parts.map_err(|error| SyntaxError {
                    offset: pending.offset,
                    message: format!("in the here-document `{}`: {}", pending.delimiter, error.message),
                });
            }
            text.push_str(line);
            text.push('\n');
        }
        self.unclosed(pending)
    }

    fn unclosed<T>(&self, pending: &PendingDocument) -> Parsed<T> {
        let message = format!(
            "the here-document is not closed: a line with only `{}` is missing",
            pending.delimiter
        );
        self.error(pending.offset, message)
    }
}

/// Returns whether other shells would expand a word such as `{1..3}` or `{a,b}`.
fn has_braces(word: &Word) -> bool {
    let unquoted: String = word
        .iter()
        .map(|part| match &part.kind {
            PartKind::Text(text) if !part.is_quoted => text.as_str(),
            _ => "",
        })
        .collect();
    let inner = unquoted.split_once('{').and_then(|(_, rest)| rest.rsplit_once('}'));
    inner.is_some_and(|(inner, _)| inner.contains(',') || inner.contains(".."))
}
