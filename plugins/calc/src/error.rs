//! Why an expression has no result.

use std::fmt;

/// Why an expression has no result; positions are characters, counted from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EvalError {
    /// It cannot be read.
    Syntax {
        /// Where reading stopped.
        position: usize,
        /// What could stand there.
        expected: String,
        /// What stands there.
        found: String,
    },
    /// A name is not known.
    UnknownName {
        /// The name.
        name: String,
        /// Where it begins.
        position: usize,
        /// Known names that are nearly the same.
        near: Vec<String>,
    },
    /// A function has too few or too many arguments.
    WrongArgumentCount {
        /// The function.
        function: String,
        /// Where its name begins.
        position: usize,
        /// How many it takes.
        expected: String,
        /// How many there are.
        given: usize,
    },
    /// Something is divided by zero.
    DivisionByZero {
        /// Where the division stands.
        position: usize,
    },
    /// There is no real result.
    OutsideDomain {
        /// The function or operator.
        operation: String,
        /// Where it stands.
        position: usize,
        /// What it needs.
        message: String,
    },
    /// A number gets too large.
    TooLarge {
        /// Where that happens.
        position: usize,
    },
    /// The nesting is too deep.
    TooDeep {
        /// How deep it may be.
        limit: usize,
    },
    /// The expression is too long.
    TooLong {
        /// How many characters it may have.
        limit: usize,
    },
    /// A variable cannot be used.
    InvalidVariable {
        /// Its name.
        name: String,
        /// What is wrong with it.
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
