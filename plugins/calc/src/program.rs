//! What an expression says to do, step by step.

use num_rational::BigRational;

use crate::{functions::Function, token::Symbol};

/// The steps of an expression, operands before operators.
pub(crate) type Program = Vec<Step>;

/// One step, and the character of the expression that it stands at.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) action: Action,
    pub(crate) position: usize,
}

/// What a step does with the stack of numbers.
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
    /// Replaces the upper two by what the operator makes of them.
    Operate(Symbol),
    /// Replaces so many by what the function makes of them.
    Call(&'static Function, usize),
}
