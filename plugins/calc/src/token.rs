//! The tokens of an expression.

use std::{fmt, iter::Peekable, str::CharIndices};

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{One, Zero};

use crate::{
    EvalError,
    number::{DIGITS_MAX, power_of_ten},
};

/// A token of an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    Number(BigRational),
    Name(String),
    Symbol(Symbol),
    End,
}

/// An operator or a bracket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Symbol {
    Plus,
    Minus,
    Times,
    Over,
    Modulo,
    Power,
    Factorial,
    Open,
    Close,
    Comma,
}

/// A token and its position in characters, counted from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LocatedToken {
    pub(crate) token: Token,
    pub(crate) position: usize,
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(_) => f.write_str("a number"),
            Self::Name(name) => write!(f, "`{name}`"),
            Self::Symbol(symbol) => write!(f, "`{}`", symbol.text()),
            Self::End => f.write_str("the end"),
        }
    }
}

impl Symbol {
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Plus => "+",
            Self::Minus => "-",
            Self::Times => "*",
            Self::Over => "/",
            Self::Modulo => "%",
            Self::Power => "^",
            Self::Factorial => "!",
            Self::Open => "(",
            Self::Close => ")",
            Self::Comma => ",",
        }
    }

    /// Reads a symbol, including typographic and programming variants.
    fn of(letter: char) -> Option<Self> {
        Some(match letter {
            '+' => Self::Plus,
            '-' | '−' | '–' => Self::Minus,
            '*' | '×' | '·' => Self::Times,
            '/' | '÷' => Self::Over,
            '%' => Self::Modulo,
            '^' => Self::Power,
            '!' => Self::Factorial,
            '(' => Self::Open,
            ')' => Self::Close,
            ',' => Self::Comma,
            _ => return None,
        })
    }
}

/// Returns whether a text is a valid name.
pub(crate) fn is_name(text: &str) -> bool {
    let begins = |letter: char| letter.is_alphabetic() || letter == '_';
    text.starts_with(begins) && text.chars().all(|letter| begins(letter) || letter.is_alphanumeric())
}

/// Splits an expression into tokens. The last is [`Token::End`].
pub(crate) fn tokenize(expression: &str) -> Result<Vec<LocatedToken>, EvalError> {
    let mut scanner = Scanner {
        text: expression,
        letters: expression.char_indices().peekable(),
        position: 1,
    };
    let mut tokens = Vec::new();
    loop {
        let located = scanner.read_token()?;
        let is_end = located.token == Token::End;
        tokens.push(located);
        if is_end {
            return Ok(tokens);
        }
    }
}

struct Scanner<'a> {
    text: &'a str,
    letters: Peekable<CharIndices<'a>>,
    position: usize,
}

impl<'a> Scanner<'a> {
    fn read_token(&mut self) -> Result<LocatedToken, EvalError> {
        while self.next_if(char::is_whitespace).is_some() {}
        let position = self.position;
        let located = |token| Ok(LocatedToken { token, position });
        let Some(&(_, letter)) = self.letters.peek() else {
            return located(Token::End);
        };
        if letter.is_ascii_digit() || letter == '.' {
            return located(Token::Number(self.read_number()?));
        }
        if letter.is_alphabetic() || letter == '_' {
            return located(Token::Name(
                self.read_while(|letter| letter.is_alphanumeric() || letter == '_')
                    .to_owned(),
            ));
        }
        let Some(symbol) = Symbol::of(letter) else {
            let expected = "a number, a name, an operator or a parenthesis".to_owned();
            return Err(EvalError::Syntax {
                position,
                expected,
                found: format!("`{letter}`"),
            });
        };
        self.next();
        if letter == '*' && self.next_if(|letter| letter == '*').is_some() {
            return located(Token::Symbol(Symbol::Power));
        }
        located(Token::Symbol(symbol))
    }

    /// Reads `12`, `1_000.5`, `.5`, `1e-3`.
    fn read_number(&mut self) -> Result<BigRational, EvalError> {
        let start = self.position;
        let integer = self.read_digits();
        let mut fraction = String::new();
        if self.next_if(|letter| letter == '.').is_some() {
            fraction = self.read_digits();
            if fraction.is_empty() {
                return Err(self.syntax_error("a digit after the point"));
            }
        }
        let digits = format!("{integer}{fraction}");
        let mantissa = digits
            .bytes()
            .fold(BigInt::zero(), |number, digit| number * 10 + (digit - b'0'));
        let shift = self.read_exponent(start)? - fraction.len() as i64;
        let scale = power_of_ten(shift.unsigned_abs()).ok_or(EvalError::TooLarge { position: start })?;
        if shift < 0 {
            Ok(BigRational::new(mantissa, scale))
        } else {
            Ok(BigRational::new(mantissa * scale, One::one()))
        }
    }

    /// Reads `e-3`, unless the `e` begins a name.
    fn read_exponent(&mut self, start: usize) -> Result<i64, EvalError> {
        let mut ahead = self.letters.clone();
        if ahead.next_if(|(_, letter)| matches!(letter, 'e' | 'E')).is_none() {
            return Ok(0);
        }
        let sign = ahead.next_if(|(_, letter)| matches!(letter, '+' | '-'));
        if !ahead.peek().is_some_and(|(_, letter)| letter.is_ascii_digit()) {
            return Ok(0);
        }
        self.next();
        if sign.is_some() {
            self.next();
        }
        let digits = self.read_digits();
        let exponent: i64 = digits
            .parse()
            .ok()
            .filter(|exponent| *exponent <= DIGITS_MAX as i64)
            .ok_or(EvalError::TooLarge { position: start })?;
        Ok(if sign.is_some_and(|(_, letter)| letter == '-') {
            -exponent
        } else {
            exponent
        })
    }

    fn read_digits(&mut self) -> String {
        self.read_while(|letter| letter.is_ascii_digit() || letter == '_')
            .replace('_', "")
    }

    fn read_while(&mut self, belongs: impl Fn(char) -> bool) -> &'a str {
        let start = self.offset();
        while self.next_if(&belongs).is_some() {}
        &self.text[start..self.offset()]
    }

    fn syntax_error(&mut self, expected: &str) -> EvalError {
        let found = match self.letters.peek() {
            Some((_, letter)) => format!("`{letter}`"),
            None => "the end".to_owned(),
        };
        EvalError::Syntax {
            position: self.position,
            expected: expected.to_owned(),
            found,
        }
    }

    fn offset(&mut self) -> usize {
        self.letters.peek().map_or(self.text.len(), |(offset, _)| *offset)
    }

    fn next(&mut self) {
        if self.letters.next().is_some() {
            self.position += 1;
        }
    }

    fn next_if(&mut self, belongs: impl Fn(char) -> bool) -> Option<char> {
        let (_, letter) = self.letters.next_if(|(_, letter)| belongs(*letter))?;
        self.position += 1;
        Some(letter)
    }
}
