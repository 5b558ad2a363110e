//! The WIT bindings of the calculator.

use self::bindings::exports::toolwit_demo::calc::calculator as wit;
use crate::{EvalError, FUNCTIONS, Variable, evaluate};

#[allow(missing_docs, unreachable_pub, unsafe_code, unused_qualifications)]
mod bindings {
    toolwit_guest::bindings!();
}

bindings::export!(Plugin with_types_in bindings);

struct Plugin;

impl wit::Guest for Plugin {
    fn evaluate(expression: String, variables: Option<Vec<wit::Variable>>) -> Result<wit::Answer, wit::EvalError> {
        let variables = variables.unwrap_or_default().into_iter();
        let variables: Vec<_> = variables
            .map(|wit::Variable { name, value }| Variable { name, value })
            .collect();
        let answer = evaluate(&expression, &variables)?;
        Ok(wit::Answer {
            value: answer.value,
            exact: answer.exact,
            fraction: answer.fraction,
        })
    }

    fn list_functions() -> Vec<wit::Function> {
        let wit_function = |function: &crate::Function| wit::Function {
            usage: function.usage.to_owned(),
            description: function.description.to_owned(),
        };
        FUNCTIONS.iter().map(wit_function).collect()
    }
}

/// Converts a position or limit, which is at most 10,000.
fn number(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

impl From<EvalError> for wit::EvalError {
    fn from(error: EvalError) -> Self {
        match error {
            EvalError::Syntax {
                position,
                expected,
                found,
            } => Self::Syntax(wit::SyntaxProblem {
                position: number(position),
                expected,
                found,
            }),
            EvalError::UnknownName { name, position, near } => Self::UnknownName(wit::UnknownName {
                name,
                position: number(position),
                near,
            }),
            EvalError::WrongArgumentCount {
                function,
                position,
                expected,
                given,
            } => Self::WrongArgumentCount(wit::ArgumentCount {
                function,
                position: number(position),
                expected,
                given: number(given),
            }),
            EvalError::DivisionByZero { position } => Self::DivisionByZero(number(position)),
            EvalError::OutsideDomain {
                operation,
                position,
                message,
            } => Self::OutsideDomain(wit::DomainProblem {
                operation,
                position: number(position),
                message,
            }),
            EvalError::TooLarge { position } => Self::TooLarge(number(position)),
            EvalError::TooDeep { limit } => Self::TooDeep(number(limit)),
            EvalError::TooLong { limit } => Self::TooLong(number(limit)),
            EvalError::InvalidVariable { name, message } => {
                Self::InvalidVariable(wit::VariableProblem { name, message })
            }
        }
    }
}
