//! The parser: from an expression to a program.

use crate::{
    EvalError,
    functions::Function,
    program::{Action, Program, Step},
    token::{LocatedToken, Symbol, Token, tokenize},
};

/// Maximum length of an expression, in characters.
const CHARACTERS_MAX: usize = 10_000;

/// Maximum nesting depth of parentheses, powers and signs. Each level is a stack frame of the parser.
const DEPTH_MAX: usize = 100;

/// Binding power of a sign: above a product, below a power, so that `-2^2` is `-4`.
const SIGN_POWER: u8 = 5;

/// Binding power of a factorial.
const FACTORIAL_POWER: u8 = 9;

/// Parses an expression.
pub(crate) fn read(expression: &str) -> Result<Program, EvalError> {
    if expression.chars().count() > CHARACTERS_MAX {
        return Err(EvalError::TooLong { limit: CHARACTERS_MAX });
    }
    let mut reader = Reader {
        tokens: tokenize(expression)?,
        next: 0,
        depth: 0,
        program: Program::new(),
    };
    reader.parse_expression(0)?;
    match reader.peek() {
        Token::End => Ok(reader.program),
        Token::Symbol(Symbol::Close) => Err(reader.syntax_error("no `)` without a `(`")),
        _ => Err(reader.syntax_error("an operator or the end")),
    }
}

struct Reader {
    tokens: Vec<LocatedToken>,
    next: usize,
    depth: usize,
    program: Program,
}

/// Returns the left and right binding power of an operator.
fn binding_powers(symbol: Symbol) -> Option<(u8, u8)> {
    match symbol {
        Symbol::Plus | Symbol::Minus => Some((1, 2)),
        Symbol::Times | Symbol::Over | Symbol::Modulo => Some((3, 4)),
        Symbol::Power => Some((8, 7)),
        _ => None,
    }
}

impl Reader {
    /// Parses operands and operators with at least this binding power.
    fn parse_expression(&mut self, power_min: u8) -> Result<(), EvalError> {
        if self.depth == DEPTH_MAX {
            return Err(EvalError::TooDeep { limit: DEPTH_MAX });
        }
        self.depth += 1;
        self.parse_operand()?;
        while let Token::Symbol(symbol) = *self.peek() {
            let position = self.position();
            if symbol == Symbol::Factorial && FACTORIAL_POWER >= power_min {
                self.advance();
                self.emit(Action::Factorial, position);
                continue;
            }
            let Some((_, right)) = binding_powers(symbol).filter(|(left, _)| *left >= power_min) else {
                break;
            };
            self.advance();
            self.parse_expression(right)?;
            self.emit(Action::Operate(symbol), position);
        }
        self.depth -= 1;
        Ok(())
    }

    fn parse_operand(&mut self) -> Result<(), EvalError> {
        let position = self.position();
        match self.peek().clone() {
            Token::Number(number) => {
                self.advance();
                self.emit(Action::Push(number), position);
            }
            Token::Name(name) => {
                self.advance();
                match self.peek() {
                    Token::Symbol(Symbol::Open) => self.parse_call(&name, position)?,
                    _ => self.emit(Action::Load(name), position),
                }
            }
            Token::Symbol(Symbol::Minus) => {
                self.advance();
                self.parse_expression(SIGN_POWER)?;
                self.emit(Action::Negate, position);
            }
            Token::Symbol(Symbol::Plus) => {
                self.advance();
                self.parse_expression(SIGN_POWER)?;
            }
            Token::Symbol(Symbol::Open) => {
                self.advance();
                self.parse_expression(0)?;
                self.require_close("an operator or `)`")?;
            }
            Token::Symbol(_) | Token::End => return Err(self.syntax_error("a number, a name or `(`")),
        }
        Ok(())
    }

    fn parse_call(&mut self, name: &str, position: usize) -> Result<(), EvalError> {
        let function = Function::find(name, position)?;
        self.advance();
        let mut argument_count = 0;
        if *self.peek() != Token::Symbol(Symbol::Close) {
            loop {
                self.parse_expression(0)?;
                argument_count += 1;
                if *self.peek() != Token::Symbol(Symbol::Comma) {
                    break;
                }
                self.advance();
            }
        }
        self.require_close("an operator, `,` or `)`")?;
        function.check_arguments(argument_count, position)?;
        self.emit(Action::Call(function, argument_count), position);
        Ok(())
    }

    fn require_close(&mut self, expected: &str) -> Result<(), EvalError> {
        if *self.peek() != Token::Symbol(Symbol::Close) {
            return Err(self.syntax_error(expected));
        }
        self.advance();
        Ok(())
    }

    fn emit(&mut self, action: Action, position: usize) {
        self.program.push(Step { action, position });
    }

    fn peek(&self) -> &Token {
        self.tokens.get(self.next).map_or(&Token::End, |located| &located.token)
    }

    fn position(&self) -> usize {
        self.tokens.get(self.next).map_or(1, |located| located.position)
    }

    /// Advances to the next token, but not beyond the end.
    fn advance(&mut self) {
        if self.next + 1 < self.tokens.len() {
            self.next += 1;
        }
    }

    fn syntax_error(&self, expected: &str) -> EvalError {
        EvalError::Syntax {
            position: self.position(),
            expected: expected.to_owned(),
            found: self.peek().to_string(),
        }
    }
}
