//! Numbers: exact if possible, else floating point.

use std::cmp::Ordering;

use num_bigint::BigInt;
use num_integer::Integer;
use num_rational::BigRational;
use num_traits::{One, Pow, Signed, ToPrimitive, Zero};

/// Maximum number of decimal digits of numerator and denominator each.
pub(crate) const DIGITS_MAX: u64 = 10_000;

/// The same limit in bits.
const BITS_MAX: u64 = DIGITS_MAX * 3322 / 1000;

/// A number.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Number {
    /// An exact rational number.
    Exact(BigRational),
    /// Rounded; always finite.
    Rounded(f64),
}

/// The reason why an operation has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Undefined {
    DivisionByZero,
    TooLarge,
    /// The requirement of the operation that an operand violates.
    Domain(&'static str),
}

pub(crate) type NumberResult = Result<Number, Undefined>;

/// Returns a power of ten. `None` if it has more than twice [`DIGITS_MAX`] digits.
pub(crate) fn power_of_ten(exponent: u64) -> Option<BigInt> {
    let exponent = u32::try_from(exponent)
        .ok()
        .filter(|exponent| u64::from(*exponent) <= 2 * DIGITS_MAX)?;
    Some(BigInt::from(10).pow(exponent))
}

impl From<BigInt> for Number {
    fn from(number: BigInt) -> Self {
        Self::Exact(number.into())
    }
}

impl Number {
    /// Returns an exact number, or an error if it has too many digits.
    pub(crate) fn exact(number: BigRational) -> NumberResult {
        if number.numer().bits().max(number.denom().bits()) > BITS_MAX {
            return Err(Undefined::TooLarge);
        }
        Ok(Self::Exact(number))
    }

    /// Returns a rounded number, or an error if it is not finite.
    pub(crate) fn rounded(number: f64) -> NumberResult {
        if number.is_finite() {
            Ok(Self::Rounded(number))
        } else {
            Err(Undefined::TooLarge)
        }
    }

    /// Returns the nearest floating-point number.
    pub(crate) fn to_f64(&self) -> Result<f64, Undefined> {
        match self {
            Self::Exact(number) => number
                .to_f64()
                .filter(|number| number.is_finite())
                .ok_or(Undefined::TooLarge),
            Self::Rounded(number) => Ok(*number),
        }
    }

    /// Returns the integer value, if the number is an exact integer.
    pub(crate) fn to_integer(&self) -> Option<BigInt> {
        match self {
            Self::Exact(number) if number.is_integer() => Some(number.to_integer()),
            _ => None,
        }
    }

    pub(crate) fn is_zero(&self) -> bool {
        match self {
            Self::Exact(number) => number.is_zero(),
            Self::Rounded(number) => *number == 0.0,
        }
    }

    pub(crate) fn is_negative(&self) -> bool {
        match self {
            Self::Exact(number) => number.is_negative(),
            Self::Rounded(number) => *number < 0.0,
        }
    }

    pub(crate) fn negated(self) -> Self {
        match self {
            Self::Exact(number) => Self::Exact(-number),
            Self::Rounded(number) => Self::Rounded(-number),
        }
    }

    pub(crate) fn plus(&self, other: &Self) -> NumberResult {
        self.combine(other, |a, b| a + b, |a, b| a + b)
    }

    pub(crate) fn minus(&self, other: &Self) -> NumberResult {
        self.combine(other, |a, b| a - b, |a, b| a - b)
    }

    pub(crate) fn times(&self, other: &Self) -> NumberResult {
        self.combine(other, |a, b| a * b, |a, b| a * b)
    }

    pub(crate) fn over(&self, other: &Self) -> NumberResult {
        if other.is_zero() {
            return Err(Undefined::DivisionByZero);
        }
        self.combine(other, |a, b| a / b, |a, b| a / b)
    }

    /// Returns the remainder, with the sign of the divisor.
    pub(crate) fn modulo(&self, other: &Self) -> NumberResult {
        if other.is_zero() {
            return Err(Undefined::DivisionByZero);
        }
        self.combine(other, |a, b| a - b * (a / b).floor(), |a, b| a - b * (a / b).floor())
    }

    pub(crate) fn power(&self, exponent: &Self) -> NumberResult {
        if let (Self::Exact(base), Some(exponent)) = (self, exponent.to_integer()) {
            return integer_power(base, &exponent);
        }
        let is_half =
            matches!(exponent, Self::Exact(half) if half.numer().is_one() && *half.denom() == BigInt::from(2));
        if is_half {
            return self.square_root();
        }
        if self.is_zero() && exponent.is_negative() {
            return Err(Undefined::DivisionByZero);
        }
        let (base, exponent) = (self.to_f64()?, exponent.to_f64()?);
        if base < 0.0 && exponent.fract() != 0.0 {
            return Err(Undefined::Domain(
                "a base that is not negative, for an exponent that is not whole",
            ));
        }
        Self::rounded(base.powf(exponent))
    }

    /// Returns the square root, exact if it is rational.
    pub(crate) fn square_root(&self) -> NumberResult {
        if self.is_negative() {
            return Err(Undefined::Domain("a number that is not negative"));
        }
        if let Self::Exact(number) = self {
            let (upper, lower) = (number.numer().sqrt(), number.denom().sqrt());
            if &upper * &upper == *number.numer() && &lower * &lower == *number.denom() {
                return Ok(Self::Exact(BigRational::new(upper, lower)));
            }
        }
        Self::rounded(self.to_f64()?.sqrt())
    }

    pub(crate) fn factorial(&self) -> NumberResult {
        const NEEDS: Undefined = Undefined::Domain("a whole number that is not negative");
        let number = self.to_integer().filter(|number| !number.is_negative()).ok_or(NEEDS)?;
        let number = number
            .to_u64()
            .filter(|number| *number <= DIGITS_MAX)
            .ok_or(Undefined::TooLarge)?;
        let mut product = BigInt::one();
        for factor in 2..=number {
            product *= factor;
            if product.bits() > BITS_MAX {
                return Err(Undefined::TooLarge);
            }
        }
        Ok(product.into())
    }

    pub(crate) fn compare(&self, other: &Self) -> Result<Ordering, Undefined> {
        if let (Self::Exact(a), Self::Exact(b)) = (self, other) {
            return Ok(a.cmp(b));
        }
        // Both are finite, so they have an order.
        Ok(self.to_f64()?.total_cmp(&other.to_f64()?))
    }

    fn combine(
        &self,
        other: &Self,
        exact: impl Fn(&BigRational, &BigRational) -> BigRational,
        rounded: impl Fn(f64, f64) -> f64,
    ) -> NumberResult {
        match (self, other) {
            (Self::Exact(a), Self::Exact(b)) => Self::exact(exact(a, b)),
            _ => Self::rounded(rounded(self.to_f64()?, other.to_f64()?)),
        }
    }
}

/// Computes an exact power, after a check of the size of the result.
fn integer_power(base: &BigRational, exponent: &BigInt) -> NumberResult {
    if base.is_zero() {
        if exponent.is_negative() {
            return Err(Undefined::DivisionByZero);
        }
        let power = if exponent.is_zero() {
            BigInt::one()
        } else {
            BigInt::zero()
        };
        return Ok(power.into());
    }
    if base.abs().is_one() {
        let sign = if base.is_negative() && exponent.is_odd() { -1 } else { 1 };
        return Ok(BigInt::from(sign).into());
    }
    let steps = exponent.magnitude().to_u32().ok_or(Undefined::TooLarge)?;
    let bits = base.numer().bits().max(base.denom().bits()) - 1;
    if bits.saturating_mul(u64::from(steps)) > BITS_MAX {
        return Err(Undefined::TooLarge);
    }
    let power = Pow::pow(base, steps);
    Number::exact(if exponent.is_negative() { power.recip() } else { power })
}
