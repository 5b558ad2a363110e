//! Errors of expressions.

use std::fmt;

/// The reason why an expression has no result. Positions are in characters, counted from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EvalError {
    /// The expression has a syntax error.
    Syntax {
        /// The position at which the parser stopped.
        position: usize,
        /// The tokens that are valid at this position.
        expected: String,
        /// The token at this position.
        found: String,
    },
    /// A name is unknown.
    UnknownName {
        /// The name.
        name: String,
        /// The position of the name.
        position: usize,
        /// Similar names that exist.
        near: Vec<String>,
    },
    /// A function has too few or too many arguments.
    WrongArgumentCount {
        /// The function.
        function: String,
        /// The position of the function's name.
        position: usize,
        /// The number of parameters, as text.
        expected: String,
        /// The number of arguments.
        given: usize,
    },
    /// A number is divided by zero.
    DivisionByZero {
        /// The position of the operator or function.
        position: usize,
    },
    /// The operation has no real result.
    OutsideDomain {
        /// The function or operator.
        operation: String,
        /// The position of the operation.
        position: usize,
        /// The requirement of the operation.
        message: String,
    },
    /// A number exceeds the supported size.
    TooLarge {
        /// The position of the operation.
        position: usize,
    },
    /// The expression is nested too deeply.
    TooDeep {
        /// The maximum depth.
        limit: usize,
    },
    /// The expression is too long.
    TooLong {
        /// The maximum number of characters.
        limit: usize,
    },
    /// A variable cannot be used.
    InvalidVariable {
        /// The name of the variable.
        name: String,
        /// The reason.
        message: String,
    },
}

impl fmt::Display for EvalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax {
                position,
                expected,
                found,
            } => {
                write!(f, "character {position}: expected {expected}, found {found}")
            }
            Self::UnknownName { name, position, .. } => write!(f, "character {position}: unknown name `{name}`"),
            Self::WrongArgumentCount {
                function,
                position,
                expected,
                given,
            } => {
                write!(f, "character {position}: `{function}` takes {expected}, not {given}")
            }
            Self::DivisionByZero { position } => write!(f, "character {position}: division by zero"),
            Self::OutsideDomain {
                operation,
                position,
                message,
            } => {
                write!(f, "character {position}: `{operation}` needs {message}")
            }
            Self::TooLarge { position } => write!(f, "character {position}: a number gets too large"),
            Self::TooDeep { limit } => write!(f, "nested deeper than {limit}"),
            Self::TooLong { limit } => write!(f, "longer than {limit} characters"),
            Self::InvalidVariable { name, message } => write!(f, "variable `{name}`: {message}"),
        }
    }
}

impl std::error::Error for EvalError {}
