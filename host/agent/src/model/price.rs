//! What a model costs.

use std::fmt;

use async_trait::async_trait;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::error::ModelError;
use super::port::{ChatModel, ChatRequest, ChatResponse, TokenUsage};

const NANO: f64 = 1e9;

/// An amount of money in US dollars, exact to a billionth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cost(u64);

impl Cost {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// Makes an amount of dollars; what is no amount, such as a negative number, is nothing.
    #[must_use]
    pub fn usd(dollars: f64) -> Self {
        // A float that is out of range becomes the nearest integer, and NaN zero.
        Self((dollars * NANO).round() as u64)
    }

    /// Returns the amount in dollars.
    #[must_use]
    pub fn as_usd(self) -> f64 {
        self.0 as f64 / NANO
    }

    /// Adds an amount, at most up to the largest.
    #[must_use]
    pub fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// Takes an amount away, at most down to nothing.
    #[must_use]
    pub fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// Tells whether it is nothing.
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

/// Written as a number of dollars.
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

/// What a model's tokens cost, each.
///
/// ```
/// use toolwit_agent::model::{Cost, Price, TokenUsage};
///
/// let price = Price::per_million(3.0, 15.0).with_cached(0.3);
/// assert_eq!(price.cost(&TokenUsage::new(1_000_000, 0, 100_000)), Cost::usd(4.5));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Price {
    /// A token that the model reads.
    pub input: Cost,
    /// A token that the model reads and that the provider had cached.
    pub cached: Cost,
    /// A token that the model writes.
    pub output: Cost,
}

impl Price {
    /// Takes prices in dollars for a million tokens, as providers list them. Cached tokens cost as much as others.
    #[must_use]
    pub fn per_million(input: f64, output: f64) -> Self {
        let each = |dollars: f64| Cost::usd(dollars / 1e6);
        Self {
            input: each(input),
            cached: each(input),
            output: each(output),
        }
    }

    /// Sets what a million cached tokens cost, in dollars.
    #[must_use]
    pub fn with_cached(mut self, dollars_per_million: f64) -> Self {
        self.cached = Cost::usd(dollars_per_million / 1e6);
        self
    }

    /// Computes what tokens cost.
    #[must_use]
    pub fn cost(&self, usage: &TokenUsage) -> Cost {
        let cached = usage.cached_tokens.min(usage.input_tokens);
        let parts = [
            (self.input, usage.input_tokens - cached),
            (self.cached, cached),
            (self.output, usage.output_tokens),
        ];
        parts.into_iter().fold(Cost::ZERO, |sum, (each, tokens)| {
            sum.saturating_add(Cost(each.0.saturating_mul(tokens)))
        })
    }
}

/// A model with its price, which budgets of money need.
pub struct PricedModel<M> {
    model: M,
    price: Price,
}

impl<M: ChatModel> PricedModel<M> {
    /// Takes a model and what its tokens cost.
    #[must_use]
    pub fn new(model: M, price: Price) -> Self {
        Self { model, price }
    }
}

#[async_trait]
impl<M: ChatModel> ChatModel for PricedModel<M> {
    fn name(&self) -> &str {
        self.model.name()
    }

    async fn chat(&self, request: ChatRequest<'_>) -> Result<ChatResponse, ModelError> {
        self.model.chat(request).await
    }

    fn price(&self) -> Option<Price> {
        Some(self.price)
    }

    fn finish(&self) -> Result<(), ModelError> {
        self.model.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_tokens_have_a_price_of_their_own_and_nothing_overflows() {
        let price = Price::per_million(2.0, 8.0).with_cached(0.5);
        assert_eq!(
            price.cost(&TokenUsage::new(1_000, 400, 100)),
            Cost::usd(0.0012 + 0.0002 + 0.0008)
        );
        assert_eq!(
            price.cost(&TokenUsage::new(10, 20, 0)),
            Cost::usd(0.000_005),
            "never more cached than read"
        );
        assert_eq!(price.cost(&TokenUsage::new(u64::MAX, 0, u64::MAX)), Cost(u64::MAX));
        assert_eq!(Cost::usd(-1.0), Cost::ZERO);
        assert_eq!(Cost::usd(f64::NAN), Cost::ZERO);
        assert_eq!(Cost::usd(0.25).to_string(), "$0.250000");
    }
}
