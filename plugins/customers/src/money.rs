//! Amounts of money, exact to the cent.

use std::{fmt, iter::Sum};

/// The currency of every amount in this shop.
pub const CURRENCY: &str = "USD";

/// An amount in cents.
///
/// Its `Display` is the amount in the currency's unit, such as `450.00`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cents(pub u64);

impl Cents {
    /// Multiplies by a count.
    #[must_use]
    pub fn times(self, count: u32) -> Self {
        Self(self.0.saturating_mul(u64::from(count)))
    }

    /// Divides by a count that is not zero, rounding half up.
    #[must_use]
    pub fn divided_by(self, count: std::num::NonZeroU64) -> Self {
        Self(self.0.saturating_add(count.get() / 2) / count)
    }

    /// Returns the difference, which is never negative.
    #[must_use]
    pub fn difference(self, other: Self) -> Self {
        Self(self.0.abs_diff(other.0))
    }
}

impl Sum for Cents {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        Self(amounts.fold(0, |sum, amount| sum.saturating_add(amount.0)))
    }
}

impl fmt::Display for Cents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:02}", self.0 / 100, self.0 % 100)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use std::num::NonZeroU64;

    use super::*;

    #[test]
    fn cents_are_always_shown() {
        assert_eq!(Cents(45_000).to_string(), "450.00");
        assert_eq!(Cents(7).to_string(), "0.07");
    }

    #[test]
    fn averages_round_half_up() {
        let by = |count| NonZeroU64::new(count).unwrap();
        assert_eq!(Cents(10).divided_by(by(4)), Cents(3));
        assert_eq!(Cents(9).divided_by(by(4)), Cents(2));
    }

    #[test]
    fn no_amount_is_too_large() {
        assert_eq!(Cents(u64::MAX).times(2), Cents(u64::MAX));
        assert_eq!([Cents(u64::MAX), Cents(1)].into_iter().sum::<Cents>(), Cents(u64::MAX));
    }
}
