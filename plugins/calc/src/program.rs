//! Programs of the stack machine.

use num_rational::BigRational;

use crate::{functions::Function, token::Symbol};

/// The steps of an expression, operands before operators.
pub(crate) type Program = Vec<Step>;

/// A step and its position in the expression.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) action: Action,
    pub(crate) position: usize,
}

/// An operation on the stack.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    /// Pushes a number.
    Push(BigRational),
    /// Pushes the value of a variable or constant.
    Load(String),
    /// Negates the top.
    Negate,
    /// Replaces the top by its factorial.
    Factorial,
    /// Replaces the two topmost numbers by the result of an operator.
    Operate(Symbol),
    /// Replaces this number of arguments by the result of a function.
    Call(&'static Function, usize),
}
