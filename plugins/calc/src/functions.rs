//! The functions and constants that an expression may use.

use std::cmp::Ordering;

use num_bigint::BigInt;
use num_integer::Integer;
use num_rational::BigRational;
use num_traits::{One, Signed, ToPrimitive, Zero};

use crate::{
    EvalError,
    number::{DIGITS_MAX, Number, NumberResult, Undefined, power_of_ten},
};

/// Maximum number of similar names that are suggested for an unknown name.
const NEAR_NAMES_MAX: usize = 3;

/// Minimum similarity (0 to 1) of a suggested name.
const NEAR_SIMILARITY_MIN: f64 = 0.7;

/// The constants. They are irrational, so they are rounded.
pub(crate) const CONSTANTS: [(&str, f64); 3] = [
    ("pi", std::f64::consts::PI),
    ("π", std::f64::consts::PI),
    ("e", std::f64::consts::E),
];

/// A function that an expression may call.
#[derive(Debug)]
pub struct Function {
    /// The name.
    pub name: &'static str,
    /// The signature, such as `round(x, digits)`.
    pub usage: &'static str,
    /// A description of the result.
    pub description: &'static str,
    pub(crate) arguments_min: usize,
    pub(crate) arguments_max: usize,
    pub(crate) apply: fn(&[Number]) -> NumberResult,
}

const fn function(
    usage: &'static str,
    description: &'static str,
    (arguments_min, arguments_max): (usize, usize),
    apply: fn(&[Number]) -> NumberResult,
) -> Function {
    let (name, _) = usage.split_at(name_length(usage));
    Function {
        name,
        usage,
        description,
        arguments_min,
        arguments_max,
        apply,
    }
}

const fn name_length(usage: &str) -> usize {
    let mut length = 0;
    while length < usage.len() && usage.as_bytes()[length] != b'(' {
        length += 1;
    }
    length
}

/// Any number of arguments.
const ANY: usize = usize::MAX;

/// All functions, grouped by kind.
pub static FUNCTIONS: [Function; 27] = [
    function("abs(x)", "The number without its sign", (1, 1), |x| {
        Ok(if x[0].is_negative() {
            x[0].clone().negated()
        } else {
            x[0].clone()
        })
    }),
    function("sign(x)", "-1, 0 or 1, by the sign of the number", (1, 1), |x| {
        let sign = if x[0].is_zero() {
            0
        } else if x[0].is_negative() {
            -1
        } else {
            1
        };
        Ok(BigInt::from(sign).into())
    }),
    function(
        "floor(x)",
        "The next whole number below, or the number itself if it is whole",
        (1, 1),
        |x| map(&x[0], BigRational::floor, f64::floor),
    ),
    function(
        "ceil(x)",
        "The next whole number above, or the number itself if it is whole",
        (1, 1),
        |x| map(&x[0], BigRational::ceil, f64::ceil),
    ),
    function("trunc(x)", "The number without what is after its point", (1, 1), |x| {
        map(&x[0], BigRational::trunc, f64::trunc)
    }),
    function(
        "round(x, digits)",
        "The number rounded to so many digits after the point (0 if left out), half away from zero",
        (1, 2),
        round,
    ),
    function("min(x, ...)", "The least of the numbers", (1, ANY), |x| {
        extreme(x, Ordering::Less)
    }),
    function("max(x, ...)", "The greatest of the numbers", (1, ANY), |x| {
        extreme(x, Ordering::Greater)
    }),
    function("sum(x, ...)", "The sum of the numbers", (1, ANY), sum),
    function("mean(x, ...)", "The arithmetic mean of the numbers", (1, ANY), |x| {
        sum(x)?.over(&BigInt::from(x.len()).into())
    }),
    function(
        "median(x, ...)",
        "The number in the middle, or the mean of the two in the middle",
        (1, ANY),
        median,
    ),
    function(
        "gcd(a, b, ...)",
        "The greatest common divisor of whole numbers",
        (2, ANY),
        |x| fold_integers(x, |a, b| a.gcd(b)),
    ),
    function(
        "lcm(a, b, ...)",
        "The least common multiple of whole numbers",
        (2, ANY),
        |x| fold_integers(x, |a, b| a.lcm(b)),
    ),
    function(
        "choose(n, k)",
        "In how many ways k of n things can be chosen",
        (2, 2),
        choose,
    ),
    function("sqrt(x)", "The square root", (1, 1), |x| x[0].square_root()),
    function("cbrt(x)", "The cube root", (1, 1), cube_root),
    function("exp(x)", "e to the power of the number", (1, 1), |x| {
        real(&x[0], (0, 1), f64::exp)
    }),
    function("ln(x)", "The natural logarithm", (1, 1), |x| {
        real(require_positive(&x[0])?, (1, 0), f64::ln)
    }),
    function(
        "log(x, base)",
        "The logarithm to that base (10 if left out)",
        (1, 2),
        |x| logarithm(&x[0], x.get(1).unwrap_or(&BigInt::from(10).into())),
    ),
    function("log2(x)", "The logarithm to the base 2", (1, 1), |x| {
        logarithm(&x[0], &BigInt::from(2).into())
    }),
    function("log10(x)", "The logarithm to the base 10", (1, 1), |x| {
        logarithm(&x[0], &BigInt::from(10).into())
    }),
    function("sin(x)", "The sine of an angle in radians", (1, 1), |x| {
        real(&x[0], (0, 0), f64::sin)
    }),
    function("cos(x)", "The cosine of an angle in radians", (1, 1), |x| {
        real(&x[0], (0, 1), f64::cos)
    }),
    function("tan(x)", "The tangent of an angle in radians", (1, 1), |x| {
        real(&x[0], (0, 0), f64::tan)
    }),
    function("asin(x)", "The angle in radians of that sine", (1, 1), |x| {
        real(require_ratio(&x[0])?, (0, 0), f64::asin)
    }),
    function("acos(x)", "The angle in radians of that cosine", (1, 1), |x| {
        real(require_ratio(&x[0])?, (1, 0), f64::acos)
    }),
    function("atan(x)", "The angle in radians of that tangent", (1, 1), |x| {
        real(&x[0], (0, 0), f64::atan)
    }),
];

impl Function {
    /// Finds a function by name.
    pub(crate) fn find(name: &str, position: usize) -> Result<&'static Self, EvalError> {
        FUNCTIONS
            .iter()
            .find(|function| function.name == name)
            .ok_or_else(|| EvalError::UnknownName {
                name: name.to_owned(),
                position,
                near: similar_names(name, FUNCTIONS.iter().map(|function| function.name)),
            })
    }

    pub(crate) fn check_arguments(&self, argument_count: usize, position: usize) -> Result<(), EvalError> {
        if (self.arguments_min..=self.arguments_max).contains(&argument_count) {
            return Ok(());
        }
        let expected = match (self.arguments_min, self.arguments_max) {
            (1, 1) => "1 argument".to_owned(),
            (min, ANY) => format!("at least {min}"),
            (min, max) if min == max => format!("{min} arguments"),
            (min, max) => format!("{min} to {max} arguments"),
        };
        Err(EvalError::WrongArgumentCount {
            function: self.name.to_owned(),
            position,
            expected,
            given: argument_count,
        })
    }
}

/// Returns similar names, most similar first.
pub(crate) fn similar_names<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Vec<String> {
    let name = name.to_lowercase();
    let mut similar: Vec<_> = candidates
        .map(|candidate| (strsim::jaro_winkler(&candidate.to_lowercase(), &name), candidate))
        .filter(|(similarity, _)| *similarity >= NEAR_SIMILARITY_MIN)
        .collect();
    similar.sort_by(|(a, first), (b, second)| b.total_cmp(a).then_with(|| first.cmp(second)));
    similar
        .into_iter()
        .take(NEAR_NAMES_MAX)
        .map(|(_, name)| name.to_owned())
        .collect()
}

/// Applies a function to a number in its exact or rounded form.
fn map(x: &Number, exact: fn(&BigRational) -> BigRational, rounded: fn(f64) -> f64) -> NumberResult {
    match x {
        Number::Exact(number) => Ok(Number::Exact(exact(number))),
        Number::Rounded(number) => Number::rounded(rounded(*number)),
    }
}

/// Applies a function that has one exact value. `exact` is the argument with this value, and the value. All other values are
/// rounded.
fn real(x: &Number, exact: (i32, i32), apply: fn(f64) -> f64) -> NumberResult {
    let has_exact_value = x.to_integer().is_some_and(|x| x == BigInt::from(exact.0));
    if has_exact_value {
        Ok(BigInt::from(exact.1).into())
    } else {
        Number::rounded(apply(x.to_f64()?))
    }
}

fn require_positive(x: &Number) -> Result<&Number, Undefined> {
    if x.is_zero() || x.is_negative() {
        Err(Undefined::Domain("a number above zero"))
    } else {
        Ok(x)
    }
}

fn require_ratio(x: &Number) -> Result<&Number, Undefined> {
    if x.to_f64()?.abs() > 1.0 {
        Err(Undefined::Domain("a number from -1 to 1"))
    } else {
        Ok(x)
    }
}

fn round(x: &[Number]) -> NumberResult {
    let digits = match x.get(1) {
        Some(digits) => digits.to_integer().and_then(|digits| digits.to_i64()),
        None => Some(0),
    };
    let digits = digits
        .filter(|digits| digits.unsigned_abs() <= DIGITS_MAX)
        .ok_or(Undefined::Domain("a whole number of digits, at most 10000"))?;
    let scale = BigRational::from(power_of_ten(digits.unsigned_abs()).ok_or(Undefined::TooLarge)?);
    let scale = if digits < 0 { scale.recip() } else { scale };
    match &x[0] {
        Number::Exact(number) => Number::exact((number * &scale).round() / scale),
        // Rounds the exact value of the binary number, because scaling it in binary could change its digits.
        Number::Rounded(number) => match BigRational::from_float(*number) {
            Some(number) => Number::Exact((number * &scale).round() / scale)
                .to_f64()
                .and_then(Number::rounded),
            None => Err(Undefined::TooLarge),
        },
    }
}

/// Returns the least or greatest number: the one that has this order to all others.
fn extreme(x: &[Number], order: Ordering) -> NumberResult {
    let mut best = &x[0];
    for number in &x[1..] {
        if number.compare(best)? == order {
            best = number;
        }
    }
    Ok(best.clone())
}

fn sum(x: &[Number]) -> NumberResult {
    x.iter()
        .try_fold(BigInt::zero().into(), |sum: Number, number| sum.plus(number))
}

fn median(x: &[Number]) -> NumberResult {
    let mut sorted: Vec<&Number> = Vec::with_capacity(x.len());
    for number in x {
        let mut index = sorted.len();
        while index > 0 && number.compare(sorted[index - 1])? == Ordering::Less {
            index -= 1;
        }
        sorted.insert(index, number);
    }
    let middle = sorted.len() / 2;
    match sorted.len() % 2 {
        1 => Ok(sorted[middle].clone()),
        _ => sorted[middle - 1].plus(sorted[middle])?.over(&BigInt::from(2).into()),
    }
}

fn fold_integers(x: &[Number], combine: fn(&BigInt, &BigInt) -> BigInt) -> NumberResult {
    let mut result: Option<BigInt> = None;
    for number in x {
        let number = number.to_integer().ok_or(Undefined::Domain("whole numbers"))?;
        let combined = match result {
            Some(result) => combine(&result, &number),
            None => number.abs(),
        };
        let Number::Exact(combined) = Number::exact(combined.into())? else {
            return Err(Undefined::TooLarge);
        };
        result = Some(combined.to_integer());
    }
    Ok(result.unwrap_or_default().into())
}

fn choose(x: &[Number]) -> NumberResult {
    const NEEDS: Undefined = Undefined::Domain("whole numbers that are not negative");
    let natural_number = |x: &Number| x.to_integer().filter(|number| !number.is_negative()).ok_or(NEEDS);
    let (n, k) = (natural_number(&x[0])?, natural_number(&x[1])?);
    if k > n {
        return Ok(BigInt::zero().into());
    }
    // Uses the symmetry of binomial coefficients, to need fewer steps.
    let k = k.clone().min(&n - &k);
    let steps = k
        .to_u64()
        .filter(|steps| *steps <= 4 * DIGITS_MAX)
        .ok_or(Undefined::TooLarge)?;
    let mut ways = BigInt::one();
    for step in 0..steps {
        ways = ways * (&n - step) / (step + 1);
        Number::exact(ways.clone().into())?;
    }
    Ok(ways.into())
}

fn cube_root(x: &[Number]) -> NumberResult {
    if let Number::Exact(number) = &x[0] {
        let (upper, lower) = (number.numer().cbrt(), number.denom().cbrt());
        if upper.pow(3) == *number.numer() && lower.pow(3) == *number.denom() {
            return Ok(Number::Exact(BigRational::new(upper, lower)));
        }
    }
    Number::rounded(x[0].to_f64()?.cbrt())
}

/// Returns a logarithm, exact if it is an integer.
fn logarithm(x: &Number, base: &Number) -> NumberResult {
    let (x, base) = (require_positive(x)?, require_positive(base)?);
    if base.to_integer().is_some_and(|base| base.is_one()) {
        return Err(Undefined::Domain("a base other than 1"));
    }
    let rounded = match (natural_logarithm(x)?, natural_logarithm(base)?) {
        (_, 0.0) => return Err(Undefined::Domain("a base other than 1")),
        (x, base) => x / base,
    };
    let integer = BigInt::from(rounded.round() as i64);
    match base.power(&integer.clone().into()) {
        Ok(Number::Exact(power)) if *x == Number::Exact(power.clone()) => Ok(integer.into()),
        _ => Number::rounded(rounded),
    }
}

/// Returns the natural logarithm, also of numbers beyond the range of floating point.
fn natural_logarithm(x: &Number) -> Result<f64, Undefined> {
    match x {
        Number::Rounded(number) => Ok(number.ln()),
        Number::Exact(number) => Ok(natural_logarithm_of(number.numer()) - natural_logarithm_of(number.denom())),
    }
}

fn natural_logarithm_of(number: &BigInt) -> f64 {
    // A float can represent the magnitude of any 1023-bit number.
    let excess = number.bits().saturating_sub(1023);
    let leading = (number >> excess).to_f64().unwrap_or(f64::MAX);
    leading.ln() + excess as f64 * std::f64::consts::LN_2
}
