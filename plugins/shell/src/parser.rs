//! Parses the tokens of a script.

use std::iter::Peekable;
use std::vec::IntoIter;

use crate::lexer::{Token, literal, tokens};
use crate::syntax::{Command, Condition, List, Part, PartKind, Pipeline, Redirect, Script, Stream, Word};

/// Words that begin compound commands.
const RESERVED: [&str; 8] = ["for", "while", "until", "if", "case", "function", "{", "select"];

/// Parses a script.
///
/// # Errors
/// A description of the syntax error.
pub(crate) fn parse(script: &str) -> Result<Script, String> {
    let mut parser = Parser {
        tokens: tokens(script)?.into_iter().peekable(),
    };
    let mut lists = Script::new();
    loop {
        while parser.take(&["\n", ";"]).is_some() {}
        if parser.tokens.peek().is_none() {
            return Ok(lists);
        }
        lists.push(parser.list()?);
        if let Some(token) = parser.tokens.peek()
            && !matches!(token, Token::Operator("\n" | ";"))
        {
            return Err(unexpected(Some(token)));
        }
    }
}

struct Parser {
    tokens: Peekable<IntoIter<Token>>,
}

impl Parser {
    /// Takes the next token if it is one of these operators.
    fn take(&mut self, operators: &[&str]) -> Option<&'static str> {
        let is_one = |token: &Token| matches!(token, Token::Operator(operator) if operators.contains(operator));
        match self.tokens.next_if(is_one) {
            Some(Token::Operator(operator)) => Some(operator),
            _ => None,
        }
    }

    fn list(&mut self) -> Result<List, String> {
        let mut list = vec![(Condition::Always, self.pipeline()?)];
        while let Some(operator) = self.take(&["&&", "||"]) {
            while self.take(&["\n"]).is_some() {}
            let condition = if operator == "&&" {
                Condition::Success
            } else {
                Condition::Failure
            };
            list.push((condition, self.pipeline()?));
        }
        Ok(list)
    }

    fn pipeline(&mut self) -> Result<Pipeline, String> {
        let mut pipeline = Pipeline::default();
        let is_mark = |token: &Token| matches!(token, Token::Word(word) if literal(word).as_deref() == Some("!"));
        while self.tokens.next_if(is_mark).is_some() {
            pipeline.is_negated = !pipeline.is_negated;
        }
        loop {
            pipeline.commands.push(self.command()?);
            if self.take(&["|"]).is_none() {
                return Ok(pipeline);
            }
            while self.take(&["\n"]).is_some() {}
        }
    }

    fn command(&mut self) -> Result<Command, String> {
        let mut command = Command::default();
        loop {
            match self.tokens.peek() {
                Some(Token::Word(_)) => self.word(&mut command)?,
                Some(Token::Document(_)) => {
                    if let Some(Token::Document(text)) = self.tokens.next() {
                        command.redirects.push(Redirect::Text(text));
                    }
                }
                _ => match self.take(&["<", ">", ">>", "2>", "2>>", "&>", "2>&1", ">&2", "1>&2"]) {
                    Some(operator) => {
                        let redirect = self.redirect(operator)?;
                        command.redirects.push(redirect);
                    }
                    None => break,
                },
            }
        }
        if command == Command::default() {
            return Err(unexpected(self.tokens.peek()));
        }
        Ok(command)
    }

    fn word(&mut self, command: &mut Command) -> Result<(), String> {
        let Some(Token::Word(word)) = self.tokens.next() else {
            return Ok(());
        };
        if command.words.is_empty() {
            if let Some(assignment) = assignment(&word) {
                command.assignments.push(assignment);
                return Ok(());
            }
            let name = literal(&word).filter(|_| word.iter().all(|part| !part.is_quoted));
            if let Some(name) = name.filter(|name| RESERVED.contains(&name.as_str())) {
                return Err(format!(
                    "`{name}` is not supported; use pipes, globs, `find` and `xargs`"
                ));
            }
        }
        command.words.push(word);
        Ok(())
    }

    fn redirect(&mut self, operator: &str) -> Result<Redirect, String> {
        match operator {
            "2>&1" => return Ok(Redirect::ErrorToOutput),
            ">&2" | "1>&2" => return Ok(Redirect::OutputToError),
            _ => {}
        }
        let Some(Token::Word(file)) = self.tokens.next() else {
            return Err(format!("`{operator}` needs a file"));
        };
        let stream = match operator {
            "<" => return Ok(Redirect::Input(file)),
            "2>" | "2>>" => Stream::Error,
            "&>" => Stream::Both,
            _ => Stream::Output,
        };
        let append = operator.ends_with(">>");
        Ok(Redirect::Output { stream, file, append })
    }
}

/// Splits a word such as `NAME=value`.
fn assignment(word: &Word) -> Option<(String, Word)> {
    let Part {
        kind: PartKind::Text(text),
        is_quoted: false,
    } = word.first()?
    else {
        return None;
    };
    let (name, value) = text.split_once('=')?;
    let mut characters = name.chars();
    let first = characters.next()?;
    let is_name = (first.is_ascii_alphabetic() || first == '_')
        && characters.all(|next| next.is_ascii_alphanumeric() || next == '_');
    let value = Part {
        kind: PartKind::Text(value.to_owned()),
        is_quoted: false,
    };
    let rest = word[1..].iter().cloned();
    is_name.then(|| (name.to_owned(), std::iter::once(value).chain(rest).collect()))
}

fn unexpected(token: Option<&Token>) -> String {
    match token {
        None => "the script ends where a command is expected".to_owned(),
        Some(Token::Operator("\n")) => "a line ends where a command is expected".to_owned(),
        Some(Token::Operator(operator)) => format!("unexpected `{operator}`"),
        Some(_) => "unexpected word".to_owned(),
    }
}
