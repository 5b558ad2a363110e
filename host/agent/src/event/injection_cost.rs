//! The cost of injected tools, as part of an event.

use serde::{Deserialize, Serialize};

/// The number of tokens that injected tools add to a request. The cost covers the tools that were injected since the previous
/// request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct InjectionCost {
    /// The size of the tools' definitions, estimated from their bytes.
    pub estimated_tokens: u64,
    /// The growth of the request since the previous request, minus the estimated size of its new messages. The growth is computed
    /// from the usage that the provider reported. `None` if the provider reports no usage, or if the request does not extend an
    /// earlier request of the same run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured_tokens: Option<u64>,
    /// The part of the full request that the provider took from its cache, in tokens.
    pub cached_tokens: u64,
}

impl InjectionCost {
    /// Returns the measured tokens, or the estimated ones if `measured_tokens` is `None`.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.measured_tokens.unwrap_or(self.estimated_tokens)
    }
}
