//! Parses compound commands and functions.

use std::rc::Rc;

use crate::lexer::{Parsed, TokenKind};
use crate::parser::{Parser, plain};
use crate::syntax::{Command, Compound, Script, Word, is_name};

/// Words of other shells, with what to write instead.
const FOREIGN: [(&str, &str); 3] = [("[[", "use `[ … ]`"), ("select", "use `for`"), ("coproc", "use a pipe")];

impl Parser<'_> {
    /// Parses a compound command if one begins here.
    pub(crate) fn compound(&mut self) -> Parsed<Option<Compound>> {
        let at = self.peek()?.at;
        if self.take(&["("])?.is_some() {
            return self.nested(|parser| parser.parenthesis(at)).map(Some);
        }
        let Some(word) = self.reserved()? else {
            return Ok(None);
        };
        if let Some((word, instead)) = FOREIGN.iter().find(|(foreign, _)| *foreign == word) {
            return self.lexer.error(at, format!("`{word}` is not supported; {instead}"));
        }
        if !["{", "if", "for", "while", "until", "case"].contains(&word.as_str()) {
            return Ok(None);
        }
        self.peeked = None;
        self.nested(|parser| match word.as_str() {
            "{" => Ok(Compound::Group(parser.body(at, "{", "}")?)),
            "if" => parser.condition(at),
            "for" => parser.iteration(at),
            "case" => parser.case(at),
            _ => {
                let is_until = word == "until";
                let condition = parser.body(at, &word, "do")?;
                let body = parser.body(at, "do", "done")?;
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
        // Checks the depth; what is read counts itself.
        self.lexer.nested(|_| Ok(()))?;
        self.lexer.nesting += 1;
        let result = read(self);
        self.lexer.nesting -= 1;
        result
    }

    /// Parses `( … )` and `(( … ))` after the first parenthesis.
    fn parenthesis(&mut self, at: usize) -> Parsed<Compound> {
        if self.peeked.is_none() && self.lexer.take("(") {
            return Ok(Compound::Arithmetic(self.lexer.arithmetic(at)?));
        }
        let script = self.script()?;
        self.close_parenthesis(at, "(")?;
        self.not_empty(&script, at, "(")?;
        Ok(Compound::Subshell(script))
    }

    fn condition(&mut self, at: usize) -> Parsed<Compound> {
        let mut branches = Vec::new();
        let mut opening = "if";
        loop {
            let condition = self.body(at, opening, "then")?;
            let body = self.script()?;
            self.not_empty(&body, at, "then")?;
            branches.push((condition, body));
            if !self.take_reserved("elif")? {
                break;
            }
            opening = "elif";
        }
        let otherwise = if self.take_reserved("else")? {
            let script = self.script()?;
            self.not_empty(&script, at, "else")?;
            script
        } else {
            Script::new()
        };
        self.expect(at, "if", "fi")?;
        Ok(Compound::If { branches, otherwise })
    }

    fn iteration(&mut self, at: usize) -> Parsed<Compound> {
        let token = self.next()?;
        let name = match &token.kind {
            TokenKind::Word(word) => plain(word).filter(|name| is_name(name)),
            TokenKind::Operator("(") => {
                let message = "`for ((` is not supported; use `for i in $(seq 1 10)`, or `while` with `$((i + 1))`";
                return self.lexer.error(token.at, message);
            }
            _ => None,
        };
        let Some(name) = name else {
            return self.lexer.error(token.at, "`for` needs the name of a variable");
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
        self.expect(at, "for", "do")?;
        let body = self.body(at, "do", "done")?;
        Ok(Compound::For { name, words, body })
    }

    fn case(&mut self, at: usize) -> Parsed<Compound> {
        let token = self.next()?;
        let TokenKind::Word(subject) = token.kind else {
            return self.lexer.error(token.at, "`case` needs a word");
        };
        self.skip_lines()?;
        self.expect(at, "case", "in")?;
        let mut arms = Vec::new();
        loop {
            while self.take(&["\n"])?.is_some() {}
            if self.take_reserved("esac")? {
                return Ok(Compound::Case { subject, arms });
            }
            let patterns = self.patterns(at)?;
            arms.push((patterns, self.script()?));
            if self.take(&[";;"])?.is_none() {
                self.expect(at, "case", "esac")?;
                return Ok(Compound::Case { subject, arms });
            }
        }
    }

    fn patterns(&mut self, at: usize) -> Parsed<Vec<Word>> {
        self.take(&["("])?;
        let mut patterns = Vec::new();
        loop {
            let token = self.next()?;
            match token.kind {
                TokenKind::Word(word) => patterns.push(word),
                TokenKind::End => return self.missing(token.at, at, "case", "esac"),
                _ => return self.lexer.error(token.at, "a pattern of `case` is expected"),
            }
            if self.take(&["|"])?.is_some() {
                continue;
            }
            let token = self.next()?;
            return match token.kind {
                TokenKind::Operator(")") => Ok(patterns),
                _ => self
                    .lexer
                    .error(token.at, "a `)` after the pattern of `case` is missing"),
            };
        }
    }

    /// Parses a script and the word that ends it.
    fn body(&mut self, at: usize, opening: &str, closing: &str) -> Parsed<Script> {
        let script = self.script()?;
        self.expect(at, opening, closing)?;
        self.not_empty(&script, at, opening)?;
        Ok(script)
    }

    fn not_empty(&self, script: &Script, at: usize, opening: &str) -> Parsed<()> {
        if script.is_empty() {
            return self.lexer.error(at, format!("there is no command after `{opening}`"));
        }
        Ok(())
    }

    fn expect(&mut self, start: usize, opening: &str, closing: &str) -> Parsed<()> {
        if self.take_reserved(closing)? {
            return Ok(());
        }
        let at = self.peek()?.at;
        self.missing(at, start, opening, closing)
    }

    fn missing<T>(&self, at: usize, start: usize, opening: &str, closing: &str) -> Parsed<T> {
        let line = self.lexer.source[..start].matches('\n').count() + 1;
        let message = format!("`{closing}` is missing for the `{opening}` of the command that begins in line {line}");
        self.lexer.error(at, message)
    }

    /// Parses the definition of a function, if the word begins one.
    pub(crate) fn function(&mut self, at: usize, word: &Word) -> Parsed<Option<Command>> {
        let mut name = plain(word);
        let has_keyword = name.as_deref() == Some("function");
        if has_keyword {
            let token = self.next()?;
            name = match &token.kind {
                TokenKind::Word(word) => plain(word),
                _ => None,
            };
        }
        let has_parenthesis = self.take(&["("])?.is_some();
        if !has_keyword && !has_parenthesis {
            return Ok(None);
        }
        if has_parenthesis {
            self.close_parenthesis(at, "(")?;
        }
        let is_function_name = |name: &String| is_name(&name.replace('-', "_"));
        let Some(name) = name.filter(is_function_name) else {
            return self.lexer.error(at, "unexpected `(`; a function needs a plain name");
        };
        self.skip_lines()?;
        let Some(body) = self.compound()? else {
            let message = format!("the body of the function `{name}` is missing: write `{name}() {{ …; }}`");
            return self.lexer.error(at, message);
        };
        let mut redirects = Vec::new();
        while let Some(redirect) = self.redirect()? {
            redirects.push(redirect);
        }
        let body = Rc::new(Command::Compound(body, redirects));
        Ok(Some(Command::Function(name, body)))
    }
}
