//! The stack machine that runs programs.

use std::collections::HashMap;

use crate::{
    Answer, EvalError,
    functions::{CONSTANTS, FUNCTIONS, similar_names},
    number::{Number, NumberResult, Undefined},
    program::{Action, Step},
    reader::read,
    token::{Symbol, is_name},
};

/// A variable of an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// The name.
    pub name: String,
    /// The value, as a number or an expression without variables.
    pub value: String,
}

/// Evaluates an expression.
///
/// # Errors
///
/// [`EvalError`] with the cause and position. The values of the variables are computed first. The syntax of an expression is
/// checked before the expression is computed.
pub fn evaluate(expression: &str, variables: &[Variable]) -> Result<Answer, EvalError> {
    let mut values = HashMap::new();
    for variable in variables {
        let value = value_of(variable).map_err(|message| EvalError::InvalidVariable {
            name: variable.name.clone(),
            message,
        })?;
        values.insert(variable.name.as_str(), value);
    }
    Ok(Answer::of(&compute(expression, &values)?))
}

fn value_of(variable: &Variable) -> Result<Number, String> {
    let name = variable.name.as_str();
    if !is_name(name) {
        return Err("a name has letters, digits and `_`, and no digit first".to_owned());
    }
    let is_taken = CONSTANTS.iter().any(|(constant, _)| *constant == name)
        || FUNCTIONS.iter().any(|function| function.name == name);
    if is_taken {
        return Err("this is the name of a constant or function".to_owned());
    }
    compute(&variable.value, &HashMap::new()).map_err(|error| format!("its value cannot be used: {error}"))
}

fn compute(expression: &str, variables: &HashMap<&str, Number>) -> Result<Number, EvalError> {
    let mut stack = Vec::new();
    for step in read(expression)? {
        let result = perform(&step, &mut stack, variables)?;
        stack.push(result);
    }
    // A program leaves exactly one number.
    Ok(pop(&mut stack))
}

fn perform(step: &Step, stack: &mut Vec<Number>, variables: &HashMap<&str, Number>) -> Result<Number, EvalError> {
    let (operation, result) = match &step.action {
        Action::Push(number) => ("number", Number::exact(number.clone())),
        Action::Load(name) => (name.as_str(), Ok(load(name, step.position, variables)?)),
        Action::Negate => ("-", Ok(pop(stack).negated())),
        Action::Factorial => ("!", pop(stack).factorial()),
        Action::Operate(symbol) => {
            let right = pop(stack);
            (symbol.text(), operate(*symbol, &pop(stack), &right))
        }
        Action::Call(function, argument_count) => {
            let arguments = stack.split_off(stack.len().saturating_sub(*argument_count));
            (function.name, (function.apply)(&arguments))
        }
    };
    let position = step.position;
    result.map_err(|undefined| match undefined {
        Undefined::DivisionByZero => EvalError::DivisionByZero { position },
        Undefined::TooLarge => EvalError::TooLarge { position },
        Undefined::Domain(message) => EvalError::OutsideDomain {
            operation: operation.to_owned(),
            position,
            message: message.to_owned(),
        },
    })
}

/// Pops the top of the stack. A program never pops more than it has pushed.
fn pop(stack: &mut Vec<Number>) -> Number {
    stack.pop().unwrap_or(Number::Rounded(0.0))
}

fn operate(symbol: Symbol, left: &Number, right: &Number) -> NumberResult {
    match symbol {
        Symbol::Plus => left.plus(right),
        Symbol::Minus => left.minus(right),
        Symbol::Times => left.times(right),
        Symbol::Over => left.over(right),
        Symbol::Modulo => left.modulo(right),
        Symbol::Power => left.power(right),
        Symbol::Factorial | Symbol::Open | Symbol::Close | Symbol::Comma => Err(Undefined::Domain("two operands")),
    }
}

fn load(name: &str, position: usize, variables: &HashMap<&str, Number>) -> Result<Number, EvalError> {
    if let Some(value) = variables.get(name) {
        return Ok(value.clone());
    }
    if let Some((_, value)) = CONSTANTS.iter().find(|(constant, _)| *constant == name) {
        return Ok(Number::Rounded(*value));
    }
    let names = variables
        .keys()
        .copied()
        .chain(CONSTANTS.iter().map(|(constant, _)| *constant));
    Err(EvalError::UnknownName {
        name: name.to_owned(),
        position,
        near: similar_names(name, names),
    })
}
