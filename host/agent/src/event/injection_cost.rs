//! The cost of injected tools, as part of an event.

use serde::{Deserialize, Serialize};

/// The number of tokens by which newly injected tools enlarge a request. New are those that were injected since the
/// request before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct InjectionCost {
    /// The size of their definitions, estimated from the bytes.
    pub estimated_tokens: u64,
    /// The growth of the request that the provider reported, without the estimated size of its new messages. `None` if the provider
    /// reports no usage, or if the request does not extend an earlier one of the same run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured_tokens: Option<u64>,
    /// The tokens of the request that the provider took from its cache: the part before the first change.
    pub cached_tokens: u64,
}

impl InjectionCost {
    /// Returns the measured tokens, or the estimated ones if there is no measurement.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.measured_tokens.unwrap_or(self.estimated_tokens)
    }
}
