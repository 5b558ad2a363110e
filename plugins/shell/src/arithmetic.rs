//! Arithmetic on 64-bit integers: `$(( … ))`.

use crate::execute::Shell;
use crate::syntax::is_name;

/// Maximum depth of parentheses and operators in an expression.
const DEPTH_MAX: usize = 64;

/// Binary operators by rising precedence. In each level, a longer operator is before its prefix.
const PRECEDENCE: [&[&str]; 10] = [
    &["||"],
    &["&&"],
    &["|"],
    &["^"],
    &["&"],
    &["==", "!="],
    &["<=", ">=", "<", ">"],
    &["<<", ">>"],
    &["+", "-"],
    &["*", "/", "%"],
];

/// Evaluates an expression, which may assign variables. An empty one is 0.
///
/// # Errors
/// For invalid syntax, a division by zero, and a sum, difference, product or quotient that 64 bits cannot hold. Increments,
/// negation and shifts wrap; a shift count is limited to 0 to 63.
pub(crate) fn evaluate(shell: &mut Shell, expression: &str) -> Result<i64, String> {
    let mut evaluation = Evaluation {
        shell,
        rest: expression,
        depth: 0,
        is_unevaluated: false,
    };
    let value = if expression.trim().is_empty() {
        0
    } else {
        evaluation.evaluate_assignment()?
    };
    let rest = evaluation.rest.trim();
    if rest.is_empty() {
        Ok(value)
    } else {
        Err(format!("arithmetic: unexpected `{rest}` in `{}`", expression.trim()))
    }
}

struct Evaluation<'a> {
    shell: &'a mut Shell,
    rest: &'a str,
    depth: usize,
    /// Whether the expression is only parsed, because `&&`, `||` or `?` does not choose it.
    is_unevaluated: bool,
}

impl<'a> Evaluation<'a> {
    /// Takes an operator if it comes next.
    fn take(&mut self, operator: &str) -> bool {
        self.rest = self.rest.trim_start();
        match self.rest.strip_prefix(operator) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, String>) -> Result<T, String> {
        if self.depth >= DEPTH_MAX {
            return Err(format!("arithmetic: nested deeper than {DEPTH_MAX} levels"));
        }
        self.depth += 1;
        let value = read(self);
        self.depth -= 1;
        value
    }

    fn without_effect(
        &mut self,
        is_unevaluated: bool,
        read: impl FnOnce(&mut Self) -> Result<i64, String>,
    ) -> Result<i64, String> {
        let before = self.is_unevaluated;
        self.is_unevaluated |= is_unevaluated;
        let value = self.nested(read);
        self.is_unevaluated = before;
        value
    }

    fn evaluate_assignment(&mut self) -> Result<i64, String> {
        let before = self.rest;
        if let Some(name) = self.take_name() {
            for operator in ["=", "+=", "-=", "*=", "/=", "%="] {
                let is_comparison = operator == "=" && self.rest.trim_start().starts_with("==");
                if is_comparison || !self.take(operator) {
                    continue;
                }
                let value = self.nested(Self::evaluate_assignment)?;
                let value = match operator.strip_suffix('=') {
                    Some("") | None => value,
                    Some(operator) => self.apply(operator, self.variable(name)?, value)?,
                };
                self.assign(name, value);
                return Ok(value);
            }
        }
        self.rest = before;
        self.evaluate_conditional()
    }

    fn evaluate_conditional(&mut self) -> Result<i64, String> {
        let condition = self.evaluate_binary(0)?;
        if !self.take("?") {
            return Ok(condition);
        }
        let chosen = self.without_effect(condition == 0, Self::evaluate_assignment)?;
        if !self.take(":") {
            return Err("arithmetic: a `:` after `?` is missing".to_owned());
        }
        let other = self.without_effect(condition != 0, Self::evaluate_assignment)?;
        Ok(if condition == 0 { other } else { chosen })
    }

    fn evaluate_binary(&mut self, level: usize) -> Result<i64, String> {
        let Some(operators) = PRECEDENCE.get(level) else {
            return self.evaluate_unary();
        };
        let mut left = self.evaluate_binary(level + 1)?;
        while let Some(operator) = self.take_operator(operators) {
            let is_unevaluated = operator == "&&" && left == 0 || operator == "||" && left != 0;
            let right = self.without_effect(is_unevaluated, |evaluation| evaluation.evaluate_binary(level + 1))?;
            left = self.apply(operator, left, right)?;
        }
        Ok(left)
    }

    /// Takes one of these operators, unless a longer one begins here.
    fn take_operator(&mut self, operators: &[&'static str]) -> Option<&'static str> {
        self.rest = self.rest.trim_start();
        let is_longer = |operator: &str| match operator {
            "|" | "&" => self.rest[1..].starts_with(operator),
            "<" | ">" => self.rest[1..].starts_with(operator),
            _ => false,
        };
        let operator = operators
            .iter()
            .find(|operator| self.rest.starts_with(**operator) && !is_longer(operator))?;
        self.rest = &self.rest[operator.len()..];
        Some(operator)
    }

    fn evaluate_unary(&mut self) -> Result<i64, String> {
        for (operator, step) in [("++", 1), ("--", -1)] {
            if self.take(operator) {
                let name = self.take_name().ok_or("arithmetic: `++` and `--` need a variable")?;
                let value = self.variable(name)?.wrapping_add(step);
                self.assign(name, value);
                return Ok(value);
            }
        }
        for operator in ["!", "~", "-", "+"] {
            if self.take(operator) {
                let value = self.nested(Self::evaluate_unary)?;
                return Ok(match operator {
                    "!" => i64::from(value == 0),
                    "~" => !value,
                    "-" => value.wrapping_neg(),
                    _ => value,
                });
            }
        }
        if self.take("(") {
            let value = self.nested(Self::evaluate_assignment)?;
            return if self.take(")") {
                Ok(value)
            } else {
                Err("arithmetic: a `)` is missing".to_owned())
            };
        }
        if let Some(name) = self.take_name() {
            let value = self.variable(name)?;
            for (operator, step) in [("++", 1), ("--", -1)] {
                if self.take(operator) {
                    self.assign(name, value.wrapping_add(step));
                }
            }
            return Ok(value);
        }
        self.take_number()
    }

    fn take_number(&mut self) -> Result<i64, String> {
        self.rest = self.rest.trim_start();
        let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric());
        let (digits, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        if digits.is_empty() {
            return Err(match self.rest.chars().next() {
                Some(next) => format!("arithmetic: a number is expected at `{next}`"),
                None => "arithmetic: the expression ends where a number is expected".to_owned(),
            });
        }
        self.rest = rest;
        parse_integer(digits)
    }

    fn take_name(&mut self) -> Option<&'a str> {
        let rest = self.rest.trim_start();
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        let (name, rest) = rest.split_at(end.unwrap_or(rest.len()));
        if !is_name(name) {
            return None;
        }
        self.rest = rest;
        Some(name)
    }

    fn variable(&self, name: &str) -> Result<i64, String> {
        let value = self.shell.parameter(name).unwrap_or_default();
        match value.trim() {
            "" => Ok(0),
            _ if self.is_unevaluated => Ok(0),
            value => parse_integer(value).map_err(|error| format!("{error} (the value of `{name}`)")),
        }
    }

    fn assign(&mut self, name: &str, value: i64) {
        if !self.is_unevaluated {
            self.shell.set_variable(name, &value.to_string());
        }
    }

    fn apply(&self, operator: &str, left: i64, right: i64) -> Result<i64, String> {
        if self.is_unevaluated {
            return Ok(0);
        }
        let shift = u32::try_from(right.clamp(0, 63)).unwrap_or_default();
        let value = match operator {
            "||" => Some(i64::from(left != 0 || right != 0)),
            "&&" => Some(i64::from(left != 0 && right != 0)),
            "|" => Some(left | right),
            "^" => Some(left ^ right),
            "&" => Some(left & right),
            "==" => Some(i64::from(left == right)),
            "!=" => Some(i64::from(left != right)),
            "<=" => Some(i64::from(left <= right)),
            ">=" => Some(i64::from(left >= right)),
            "<" => Some(i64::from(left < right)),
            ">" => Some(i64::from(left > right)),
            "<<" => Some(left.wrapping_shl(shift)),
            ">>" => Some(left.wrapping_shr(shift)),
            "+" => left.checked_add(right),
            "-" => left.checked_sub(right),
            "*" => left.checked_mul(right),
            "/" | "%" if right == 0 => return Err("arithmetic: division by zero".to_owned()),
            "/" => left.checked_div(right),
            _ => left.checked_rem(right),
        };
        value.ok_or_else(|| format!("arithmetic: {left} {operator} {right} does not fit in 64 bits"))
    }
}

/// Parses a decimal, octal (`0…`) or hexadecimal (`0x…`) number.
fn parse_integer(text: &str) -> Result<i64, String> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text),
    };
    let (radix, digits) = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(digits) => (16, digits),
        None if digits.len() > 1 && digits.starts_with('0') => (8, digits),
        None => (10, digits),
    };
    i64::from_str_radix(&format!("{sign}{digits}"), radix).map_err(|_| format!("arithmetic: `{text}` is not a number"))
}
