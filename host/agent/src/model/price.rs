//! Prices of tokens and costs of inferences.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::response::TokenUsage;

/// The number of nanodollars, billionths of a dollar, in a dollar.
const NANO_USD_PER_USD: f64 = 1e9;

/// An amount of money in US dollars, with a resolution of one billionth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cost(u64);

impl Cost {
    /// Zero dollars.
    pub const ZERO: Self = Self(0);

    /// Creates an amount from dollars, rounded to billionths. A negative number or NaN becomes zero.
    #[must_use]
    pub fn usd(dollars: f64) -> Self {
        // The cast saturates, and maps NaN to zero.
        Self((dollars * NANO_USD_PER_USD).round() as u64)
    }

    /// Returns the amount in dollars.
    #[must_use]
    pub fn as_usd(self) -> f64 {
        self.0 as f64 / NANO_USD_PER_USD
    }

    /// Adds an amount, saturating at the largest amount.
    #[must_use]
    pub fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// Subtracts an amount, saturating at zero.
    #[must_use]
    pub fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// Returns whether the amount is zero.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.0 == 0
    }

    /// Returns the amount in billionths of a dollar.
    #[must_use]
    pub fn nano_usd(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "${:.6}", self.as_usd())
    }
}

/// Serializes the amount as a number of dollars.
impl Serialize for Cost {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.as_usd())
    }
}

impl<'de> Deserialize<'de> for Cost {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        f64::deserialize(deserializer).map(Self::usd)
    }
}

/// The prices of a model's tokens.
///
/// ```
/// use toolwit_agent::model::{Cost, Price, TokenUsage};
///
/// let price = Price::per_million(3.0, 15.0).with_cached(0.3);
/// assert_eq!(price.cost(&TokenUsage::new(1_000_000, 0, 100_000)), Cost::usd(4.5));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Price {
    /// Price of an input token.
    pub input: Cost,
    /// Price of an input token that the provider read from its prompt cache.
    pub cached: Cost,
    /// Price of an input token that the provider wrote to its prompt cache.
    pub cache_write: Cost,
    /// Price of an output token.
    pub output: Cost,
}

impl Price {
    /// Creates a price from dollars per million tokens, the unit in which providers list prices. Tokens that are read from or
    /// written to the prompt cache cost as much as other input tokens.
    #[must_use]
    pub fn per_million(input: f64, output: f64) -> Self {
        let per_token = |dollars: f64| Cost::usd(dollars / 1e6);
        Self {
            input: per_token(input),
            cached: per_token(input),
            cache_write: per_token(input),
            output: per_token(output),
        }
    }

    /// Sets the price of a million cached tokens, in dollars.
    #[must_use]
    pub fn with_cached(mut self, dollars_per_million: f64) -> Self {
        self.cached = Cost::usd(dollars_per_million / 1e6);
        self
    }

    /// Sets the price of a million tokens that are written to the prompt cache, in dollars.
    #[must_use]
    pub fn with_cache_write(mut self, dollars_per_million: f64) -> Self {
        self.cache_write = Cost::usd(dollars_per_million / 1e6);
        self
    }

    /// Returns the cost of this token usage.
    #[must_use]
    pub fn cost(&self, usage: &TokenUsage) -> Cost {
        let cached = usage.cached_tokens.min(usage.input_tokens);
        let cache_written = usage.cache_write_tokens.min(usage.input_tokens - cached);
        let priced_tokens = [
            (self.input, usage.input_tokens - cached - cache_written),
            (self.cached, cached),
            (self.cache_write, cache_written),
            (self.output, usage.output_tokens),
        ];
        priced_tokens.into_iter().fold(Cost::ZERO, |sum, (price, tokens)| {
            sum.saturating_add(Cost(price.0.saturating_mul(tokens)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_tokens_have_their_own_price_and_nothing_overflows() {
        let price = Price::per_million(2.0, 8.0).with_cached(0.5);
        assert_eq!(
            price.cost(&TokenUsage::new(1_000, 400, 100)),
            Cost::usd(0.0012 + 0.0002 + 0.0008)
        );
        assert_eq!(
            price.cost(&TokenUsage::new(10, 20, 0)),
            Cost::usd(0.000_005),
            "cached tokens are at most the input tokens"
        );
        let written = TokenUsage::new(1_000, 400, 0).with_cache_write(200);
        assert_eq!(
            price.with_cache_write(2.5).cost(&written),
            Cost::usd(0.0008 + 0.0002 + 0.0005)
        );
        assert_eq!(price.cost(&TokenUsage::new(u64::MAX, 0, u64::MAX)), Cost(u64::MAX));
        assert_eq!(Cost::usd(-1.0), Cost::ZERO);
        assert_eq!(Cost::usd(f64::NAN), Cost::ZERO);
        assert_eq!(Cost::usd(0.25).to_string(), "$0.250000");
    }
}
