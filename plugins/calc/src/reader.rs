//! The parser: from an expression to a program.

use crate::{
    EvalError,
    functions::Function,
    program::{Action, Program, Step},
    token::{LocatedToken, Symbol, Token, tokens},
};

/// Maximum length of an expression, in characters.
const CHARACTERS_MAX: usize = 10_000;

/// Maximum nesting depth of parentheses, powers and signs. Each level is a stack frame of the parser.
const DEPTH_MAX: usize = 100;

/// Binding power of a sign: above a product, below a power, so that `-2^2` is `-4`.
const SIGN: u8 = 5;

/// Binding power of a factorial.
const FACTORIAL: u8 = 9;

/// Parses an expression.
pub(crate) fn read(expression: &str) -> Result<Program, EvalError> {
    if expression.chars().count() > CHARACTERS_MAX {
        return Err(EvalError::TooLong { limit: CHARACTERS_MAX });
    }
    let mut reader = Reader {
        tokens: tokens(expression)?,
        next: 0,
        depth: 0,
        program: Program::new(),
    };
    reader.expression(0)?;
    match reader.peek() {
        Token::End => Ok(reader.program),
        Token::Symbol(Symbol::Close) => Err(reader.expected("no `)` without a `(`")),
        _ => Err(reader.expected("an operator or the end")),
    }
}

struct Reader {
    tokens: Vec<LocatedToken>,
    next: usize,
    depth: usize,
    program: Program,
}

/// Returns the left and right binding power of an operator.
fn binding(symbol: Symbol) -> Option<(u8, u8)> {
    match symbol {
        Symbol::Plus | Symbol::Minus => Some((1, 2)),
        Symbol::Times | Symbol::Over | Symbol::Modulo => Some((3, 4)),
        Symbol::Power => Some((8, 7)),
        _ => None,
    }
}

impl Reader {
    /// Parses operands and operators with at least this binding power.
    fn expression(&mut self, at_least: u8) -> Result<(), EvalError> {
        if self.depth == DEPTH_MAX {
            return Err(EvalError::TooDeep { limit: DEPTH_MAX });
        }
        self.depth += 1;
        self.operand()?;
        while let Token::Symbol(symbol) = *self.peek() {
            let position = self.position();
            if symbol == Symbol::Factorial && FACTORIAL >= at_least {
                self.advance();
                self.emit(Action::Factorial, position);
                continue;
            }
            let Some((_, right)) = binding(symbol).filter(|(left, _)| *left >= at_least) else {
                break;
            };
            self.advance();
            self.expression(right)?;
            self.emit(Action::Operate(symbol), position);
        }
        self.depth -= 1;
        Ok(())
    }

    fn operand(&mut self) -> Result<(), EvalError> {
        let position = self.position();
        match self.peek().clone() {
            Token::Number(number) => {
                self.advance();
                self.emit(Action::Push(number), position);
            }
            Token::Name(name) => {
                self.advance();
                match self.peek() {
                    Token::Symbol(Symbol::Open) => self.call(&name, position)?,
                    _ => self.emit(Action::Load(name), position),
                }
            }
            Token::Symbol(Symbol::Minus) => {
                self.advance();
                self.expression(SIGN)?;
                self.emit(Action::Negate, position);
            }
            Token::Symbol(Symbol::Plus) => {
                self.advance();
                self.expression(SIGN)?;
            }
            Token::Symbol(Symbol::Open) => {
                self.advance();
                self.expression(0)?;
                self.close("an operator or `)`")?;
            }
            Token::Symbol(_) | Token::End => return Err(self.expected("a number, a name or `(`")),
        }
        Ok(())
    }

    fn call(&mut self, name: &str, position: usize) -> Result<(), EvalError> {
        let function = Function::find(name, position)?;
        self.advance();
        let mut given = 0;
        if *self.peek() != Token::Symbol(Symbol::Close) {
            loop {
                self.expression(0)?;
                given += 1;
                if *self.peek() != Token::Symbol(Symbol::Comma) {
                    break;
                }
                self.advance();
            }
        }
        self.close("an operator, `,` or `)`")?;
        function.check_arguments(given, position)?;
        self.emit(Action::Call(function, given), position);
        Ok(())
    }

    fn close(&mut self, expected: &str) -> Result<(), EvalError> {
        if *self.peek() != Token::Symbol(Symbol::Close) {
            return Err(self.expected(expected));
        }
        self.advance();
        Ok(())
    }

    fn emit(&mut self, action: Action, position: usize) {
        self.program.push(Step { action, position });
    }

    fn peek(&self) -> &Token {
        self.tokens.get(self.next).map_or(&Token::End, |placed| &placed.token)
    }

    fn position(&self) -> usize {
        self.tokens.get(self.next).map_or(1, |placed| placed.position)
    }

    /// Advances to the next token, but not beyond the end.
    fn advance(&mut self) {
        if self.next + 1 < self.tokens.len() {
            self.next += 1;
        }
    }

    fn expected(&self, expected: &str) -> EvalError {
        EvalError::Syntax {
            position: self.position(),
            expected: expected.to_owned(),
            found: self.peek().to_string(),
        }
    }
}
