//! Parses lists, pipelines, simple commands and redirects.

use crate::lexer::{Lexer, Parsed, SyntaxError, Token, TokenKind};
use crate::syntax::{
    Command, Condition, List, Part, PartKind, Pipeline, Redirect, Script, Simple, Stream, Word, is_name, literal,
};

/// Words that end a script inside a compound command.
const CLOSING: [&str; 8] = ["then", "elif", "else", "fi", "do", "done", "esac", "}"];

/// Operators of redirects to and from files.
const REDIRECTS: [&str; 14] = [
    "<", "<<<", ">", ">|", "1>", ">>", "1>>", "2>", "2>>", "&>", "&>>", "2>&1", ">&2", "1>&2",
];

/// Parses a script.
///
/// # Errors
/// A description of the syntax error with its line and column.
pub(crate) fn parse(script: &str) -> Result<Script, String> {
    parse_nested_script(script, 0).map_err(|error| error.describe(script))
}

/// Parses a complete script that is nested in another one.
pub(crate) fn parse_nested_script(script: &str, nesting: usize) -> Parsed<Script> {
    let mut parser = Parser {
        lexer: Lexer::new(script, 0, nesting),
        peeked: None,
    };
    let lists = parser.parse_script()?;
    let token = parser.next()?;
    match token.kind {
        TokenKind::End => Ok(lists),
        _ => parser.unexpected(&token),
    }
}

/// Parses a command substitution after its `$(`, up to the `)`.
pub(crate) fn parse_substitution(lexer: &mut Lexer<'_>, start: usize) -> Parsed<Script> {
    let mut parser = Parser {
        lexer: Lexer::new(lexer.source, lexer.offset, lexer.nesting),
        peeked: None,
    };
    let script = parser.parse_script()?;
    parser.close_parenthesis(start, "$(")?;
    lexer.offset = parser.lexer.offset;
    Ok(script)
}

pub(crate) struct Parser<'a> {
    pub(crate) lexer: Lexer<'a>,
    pub(crate) peeked: Option<Token>,
}

impl Parser<'_> {
    pub(crate) fn peek(&mut self) -> Parsed<&Token> {
        let token = match self.peeked.take() {
            Some(token) => token,
            None => self.lexer.next_token()?,
        };
        Ok(self.peeked.insert(token))
    }

    pub(crate) fn next(&mut self) -> Parsed<Token> {
        match self.peeked.take() {
            Some(token) => Ok(token),
            None => self.lexer.next_token(),
        }
    }

    /// Takes the next token if it is one of these operators.
    pub(crate) fn take(&mut self, operators: &[&str]) -> Parsed<Option<&'static str>> {
        let operator = match self.peek()?.kind {
            TokenKind::Operator(operator) if operators.contains(&operator) => Some(operator),
            _ => None,
        };
        if operator.is_some() {
            self.peeked = None;
        }
        Ok(operator)
    }

    pub(crate) fn skip_lines(&mut self) -> Parsed<()> {
        while self.take(&["\n"])?.is_some() {}
        Ok(())
    }

    /// Returns the text of the next token if it is a plain word, as reserved words are. Does not take the token.
    pub(crate) fn peek_reserved(&mut self) -> Parsed<Option<String>> {
        Ok(match &self.peek()?.kind {
            TokenKind::Word(word) => plain_text(word),
            _ => None,
        })
    }

    /// Takes the next token if it is this reserved word.
    pub(crate) fn take_reserved(&mut self, expected: &str) -> Parsed<bool> {
        let is_next = self.peek_reserved()?.as_deref() == Some(expected);
        if is_next {
            self.peeked = None;
        }
        Ok(is_next)
    }

    /// Parses lists up to a word or operator that ends them.
    pub(crate) fn parse_script(&mut self) -> Parsed<Script> {
        let mut lists = Script::new();
        loop {
            while self.take(&["\n", ";"])?.is_some() {}
            let is_closed = match &self.peek()?.kind {
                TokenKind::End | TokenKind::Operator(")" | ";;") => true,
                TokenKind::Word(word) => plain_text(word).is_some_and(|word| CLOSING.contains(&word.as_str())),
                _ => false,
            };
            if is_closed {
                return Ok(lists);
            }
            lists.push(self.parse_list()?);
            let token = self.next()?;
            let may_follow = match &token.kind {
                TokenKind::End | TokenKind::Operator("\n" | ";" | ")" | ";;") => true,
                TokenKind::Word(word) => plain_text(word).is_some_and(|word| CLOSING.contains(&word.as_str())),
                _ => false,
            };
            if !may_follow {
                return self.unexpected(&token);
            }
            self.peeked = Some(token);
        }
    }

    fn parse_list(&mut self) -> Parsed<List> {
        let mut list = vec![(Condition::Always, self.parse_pipeline()?)];
        while let Some(operator) = self.take(&["&&", "||"])? {
            self.skip_lines()?;
            let condition = if operator == "&&" {
                Condition::Success
            } else {
                Condition::Failure
            };
            list.push((condition, self.parse_pipeline()?));
        }
        Ok(list)
    }

    fn parse_pipeline(&mut self) -> Parsed<Pipeline> {
        let mut pipeline = Pipeline::default();
        while self.take_reserved("!")? {
            pipeline.is_negated = !pipeline.is_negated;
        }
        loop {
            pipeline.commands.push(self.parse_command()?);
            if self.take(&["|"])?.is_none() {
                return Ok(pipeline);
            }
            self.skip_lines()?;
        }
    }

    fn parse_command(&mut self) -> Parsed<Command> {
        if let Some(compound) = self.parse_compound()? {
            let mut redirects = Vec::new();
            while let Some(redirect) = self.parse_redirect()? {
                redirects.push(redirect);
            }
            return Ok(Command::Compound(compound, redirects));
        }
        let mut simple = Simple::default();
        let mut is_empty = true;
        loop {
            if let Some(redirect) = self.parse_redirect()? {
                simple.redirects.push(redirect);
            } else if let TokenKind::Word(_) = self.peek()?.kind {
                let token = self.next()?;
                let TokenKind::Word(word) = token.kind else {
                    return self.unexpected(&token);
                };
                if is_empty && let Some(function) = self.parse_function(token.offset, &word)? {
                    return Ok(function);
                }
                match split_assignment(&word).filter(|_| simple.words.is_empty()) {
                    Some(assignment) => simple.assignments.push(assignment),
                    None => simple.words.push(word),
                }
            } else {
                break;
            }
            is_empty = false;
        }
        if is_empty {
            let token = self.next()?;
            return self.unexpected(&token);
        }
        Ok(Command::Simple(simple))
    }

    pub(crate) fn parse_redirect(&mut self) -> Parsed<Option<Redirect>> {
        if let TokenKind::Document(_) = self.peek()?.kind {
            let token = self.next()?;
            return Ok(match token.kind {
                TokenKind::Document(document) => Some(Redirect::Document(document)),
                _ => None,
            });
        }
        let offset = self.peek()?.offset;
        let Some(operator) = self.take(&REDIRECTS)? else {
            return Ok(None);
        };
        match operator {
            "2>&1" => return Ok(Some(Redirect::ErrorToOutput)),
            ">&2" | "1>&2" => return Ok(Some(Redirect::OutputToError)),
            _ => {}
        }
        let TokenKind::Word(file) = self.next()?.kind else {
            return self.lexer.error(offset, format!("`{operator}` needs a file"));
        };
        let stream = match operator {
            "<" => return Ok(Some(Redirect::Input(file))),
            "<<<" => return Ok(Some(Redirect::Text(file))),
            "2>" | "2>>" => Stream::Error,
            "&>" | "&>>" => Stream::Both,
            _ => Stream::Output,
        };
        let append = operator.ends_with(">>");
        Ok(Some(Redirect::Output { stream, file, append }))
    }

    /// Takes the `)` for a parenthesis that was opened at the offset `start`.
    pub(crate) fn close_parenthesis(&mut self, start: usize, opening: &str) -> Parsed<()> {
        let token = self.next()?;
        match token.kind {
            TokenKind::Operator(")") => Ok(()),
            TokenKind::End => self
                .lexer
                .error(start, format!("the `{opening}` is not closed with `)`")),
            _ => self.unexpected(&token),
        }
    }

    pub(crate) fn unexpected<T>(&self, token: &Token) -> Parsed<T> {
        let message = match &token.kind {
            TokenKind::End => "the script ends where a command is expected".to_owned(),
            TokenKind::Operator("\n") => "the line ends where a command is expected".to_owned(),
            TokenKind::Operator(operator) => format!("unexpected `{operator}`"),
            TokenKind::Document(_) => "unexpected here-document".to_owned(),
            TokenKind::Word(word) => match plain_text(word) {
                Some(word) => match opener(&word) {
                    Some(opener) => format!("unexpected `{word}`: there is no `{opener}` before it"),
                    None => format!("unexpected `{word}`; a `;` or a line break may be missing before it"),
                },
                None => "unexpected word; a `;` or a line break may be missing before it".to_owned(),
            },
        };
        Err(SyntaxError {
            offset: token.offset,
            message,
        })
    }
}

/// Returns the word that begins the command which a closing word continues or ends.
fn opener(word: &str) -> Option<&'static str> {
    Some(match word {
        "then" | "elif" | "else" | "fi" => "if",
        "do" => "for` or `while",
        "done" => "do",
        "esac" => "case",
        "}" => "{",
        _ => return None,
    })
}

/// Returns the text of a word. `None` for a word with quotes or expansions.
pub(crate) fn plain_text(word: &Word) -> Option<String> {
    literal(word).filter(|_| word.iter().all(|part| !part.is_quoted))
}

/// Splits a word such as `NAME=value`. `None` for a word that is not an assignment.
fn split_assignment(word: &Word) -> Option<(String, Word)> {
    let Part {
        kind: PartKind::Text(text),
        is_quoted: false,
    } = word.first()?
    else {
        return None;
    };
    let (name, value) = text.split_once('=').filter(|(name, _)| is_name(name))?;
    let rest = word[1..].iter().cloned();
    Some((
        name.to_owned(),
        std::iter::once(Part::text(value.to_owned(), false))
            .chain(rest)
            .collect(),
    ))
}
