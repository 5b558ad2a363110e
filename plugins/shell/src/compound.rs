//! Parses compound commands and functions.

use std::rc::Rc;

use crate::lexer::{Parsed, TokenKind};
use crate::parser::{Parser, plain_text};
use crate::syntax::{Command, Compound, Script, Word, is_name};

/// Words of other shells that are not supported, with the replacements.
const FOREIGN: [(&str, &str); 3] = [("[[", "use `[ … ]`"), ("select", "use `for`"), ("coproc", "use a pipe")];

impl Parser<'_> {
    /// Parses a compound command if one begins here.
    pub(crate) fn parse_compound(&mut self) -> Parsed<Option<Compound>> {
        let start = self.peek()?.offset;
        if self.take(&["("])?.is_some() {
            return self.nested(|parser| parser.parse_parenthesis(start)).map(Some);
        }
        let Some(word) = self.peek_reserved()? else {
            return Ok(None);
        };
        if let Some((word, instead)) = FOREIGN.iter().find(|(foreign, _)| *foreign == word) {
            return self.lexer.error(start, format!("`{word}` is not supported; {instead}"));
        }
        if !["{", "if", "for", "while", "until", "case"].contains(&word.as_str()) {
            return Ok(None);
        }
        self.peeked = None;
        self.nested(|parser| match word.as_str() {
            "{" => Ok(Compound::Group(parser.parse_body(start, "{", "}")?)),
            "if" => parser.parse_condition(start),
            "for" => parser.parse_iteration(start),
            "case" => parser.parse_case(start),
            _ => {
                let is_until = word == "until";
                let condition = parser.parse_body(start, &word, "do")?;
                let body = parser.parse_body(start, "do", "done")?;
                Ok(Compound::Loop {
                    is_until,
                    condition,
                    body,
                })
            }
        })
        .map(Some)
    }

    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        // Checks the depth. The level is counted here, because `read` needs the parser, and not only the lexer.
        self.lexer.nested(|_| Ok(()))?;
        self.lexer.nesting += 1;
        let result = read(self);
        self.lexer.nesting -= 1;
        result
    }

    /// Parses `( … )` and `(( … ))` after the first parenthesis.
    fn parse_parenthesis(&mut self, start: usize) -> Parsed<Compound> {
        if self.peeked.is_none() && self.lexer.take("(") {
            return Ok(Compound::Arithmetic(self.lexer.read_arithmetic(start)?));
        }
        let script = self.parse_script()?;
        self.close_parenthesis(start, "(")?;
        self.require_commands(&script, start, "(")?;
        Ok(Compound::Subshell(script))
    }

    fn parse_condition(&mut self, start: usize) -> Parsed<Compound> {
        let mut branches = Vec::new();
        let mut opening = "if";
        loop {
            let condition = self.parse_body(start, opening, "then")?;
            let body = self.parse_script()?;
            self.require_commands(&body, start, "then")?;
            branches.push((condition, body));
            if !self.take_reserved("elif")? {
                break;
            }
            opening = "elif";
        }
        let otherwise = if self.take_reserved("else")? {
            let script = self.parse_script()?;
            self.require_commands(&script, start, "else")?;
            script
        } else {
            Script::new()
        };
        self.require_reserved(start, "if", "fi")?;
        Ok(Compound::If { branches, otherwise })
    }

    fn parse_iteration(&mut self, start: usize) -> Parsed<Compound> {
        let token = self.next()?;
        let name = match &token.kind {
            TokenKind::Word(word) => plain_text(word).filter(|name| is_name(name)),
            TokenKind::Operator("(") => {
                let message = "`for ((` is not supported; use `for i in $(seq 1 10)`, or `while` with `$((i + 1))`";
                return self.lexer.error(token.offset, message);
            }
            _ => None,
        };
        let Some(name) = name else {
            return self.lexer.error(token.offset, "`for` needs the name of a variable");
        };
        self.skip_lines()?;
        let mut words = None;
        if self.take_reserved("in")? {
            let words = words.insert(Vec::new());
            while let TokenKind::Word(_) = self.peek()?.kind {
                if let TokenKind::Word(word) = self.next()?.kind {
                    words.push(word);
                }
            }
        }
        self.take(&[";"])?;
        self.skip_lines()?;
        self.require_reserved(start, "for", "do")?;
        let body = self.parse_body(start, "do", "done")?;
        Ok(Compound::For { name, words, body })
    }

    fn parse_case(&mut self, start: usize) -> Parsed<Compound> {
        let token = self.next()?;
        let TokenKind::Word(subject) = token.kind else {
            return self.lexer.error(token.offset, "`case` needs a word");
        };
        self.skip_lines()?;
        self.require_reserved(start, "case", "in")?;
        let mut arms = Vec::new();
        loop {
            while self.take(&["\n"])?.is_some() {}
            if self.take_reserved("esac")? {
                return Ok(Compound::Case { subject, arms });
            }
            let patterns = self.parse_patterns(start)?;
            arms.push((patterns, self.parse_script()?));
            if self.take(&[";;"])?.is_none() {
                self.require_reserved(start, "case", "esac")?;
                return Ok(Compound::Case { subject, arms });
            }
        }
    }

    fn parse_patterns(&mut self, start: usize) -> Parsed<Vec<Word>> {
        self.take(&["("])?;
        let mut patterns = Vec::new();
        loop {
            let token = self.next()?;
            match token.kind {
                TokenKind::Word(word) => patterns.push(word),
                TokenKind::End => return self.missing(token.offset, start, "case", "esac"),
                _ => return self.lexer.error(token.offset, "a pattern of `case` is expected"),
            }
            if self.take(&["|"])?.is_some() {
                continue;
            }
            let token = self.next()?;
            return match token.kind {
                TokenKind::Operator(")") => Ok(patterns),
                _ => self
                    .lexer
                    .error(token.offset, "a `)` after the pattern of `case` is missing"),
            };
        }
    }

    /// Parses a script and the word that ends it.
    fn parse_body(&mut self, start: usize, opening: &str, closing: &str) -> Parsed<Script> {
        let script = self.parse_script()?;
        self.require_reserved(start, opening, closing)?;
        self.require_commands(&script, start, opening)?;
        Ok(script)
    }

    fn require_commands(&self, script: &Script, start: usize, opening: &str) -> Parsed<()> {
        if script.is_empty() {
            return self
                .lexer
                .error(start, format!("there is no command after `{opening}`"));
        }
        Ok(())
    }

    fn require_reserved(&mut self, start: usize, opening: &str, closing: &str) -> Parsed<()> {
        if self.take_reserved(closing)? {
            return Ok(());
        }
        let offset = self.peek()?.offset;
        self.missing(offset, start, opening, closing)
    }

    fn missing<T>(&self, offset: usize, start: usize, opening: &str, closing: &str) -> Parsed<T> {
        let line = self.lexer.source[..start].matches('\n').count() + 1;
        let message = format!("`{closing}` is missing for the `{opening}` of the command that begins in line {line}");
        self.lexer.error(offset, message)
    }

    /// Parses the definition of a function, if the word begins one.
    pub(crate) fn parse_function(&mut self, start: usize, word: &Word) -> Parsed<Option<Command>> {
        let mut name = plain_text(word);
        let has_keyword = name.as_deref() == Some("function");
        if has_keyword {
            let token = self.next()?;
            name = match &token.kind {
                TokenKind::Word(word) => plain_text(word),
                _ => None,
            };
        }
        let has_parenthesis = self.take(&["("])?.is_some();
        if !has_keyword && !has_parenthesis {
            return Ok(None);
        }
        if has_parenthesis {
            self.close_parenthesis(start, "(")?;
        }
        let is_function_name = |name: &String| is_name(&name.replace('-', "_"));
        let Some(name) = name.filter(is_function_name) else {
            return self.lexer.error(start, "unexpected `(`; a function needs a plain name");
        };
        self.skip_lines()?;
        let Some(body) = self.parse_compound()? else {
            let message = format!("the body of the function `{name}` is missing: write `{name}() {{ …; }}`");
            return self.lexer.error(start, message);
        };
        let mut redirects = Vec::new();
        while let Some(redirect) = self.parse_redirect()? {
            redirects.push(redirect);
        }
        let body = Rc::new(Command::Compound(body, redirects));
        Ok(Some(Command::Function(name, body)))
    }
}
