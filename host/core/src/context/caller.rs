//! The identity of a caller, by which tools that were made for one caller are kept from another.

use super::tool_context::{LOOP_ID, ToolContext};
use crate::text::sha256;

/// The keys of the values that belong to one run, call or request, and not to the caller: those that the agent loop sets, and
/// the W3C trace context.
const REQUEST_KEYS: [&str; 5] = [LOOP_ID, "idempotency_key", "traceparent", "tracestate", "baggage"];

/// A caller: a digest of the values of a [`ToolContext`], such as its tenant and its tokens.
///
/// Tools that were made with a context belong to its caller: a facade, a role and a source may have used the values of the
/// context to make them. For another caller they must be made again.
///
/// Values that belong to one request, such as [`LOOP_ID`] and the trace context, are not part of the caller. Typed objects
/// ([`ToolContext::with_extension`]) are not part of it either, because they cannot be compared: an application that makes
/// tools from a typed object also sets a value that identifies the caller. A value that changes with each request, such as the
/// id of a message, is better a typed object: as a value, it makes every request one of another caller.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Caller {
    /// Empty for a context without values.
    digest: String,
}

impl Caller {
    /// Returns the caller of a context.
    #[must_use]
    pub fn of(context: &ToolContext) -> Self {
        let values: Vec<_> = context
            .values()
            .filter(|(key, _)| !REQUEST_KEYS.contains(key))
            .collect();
        let digest = if values.is_empty() {
            String::new()
        } else {
            // JSON values have no value that cannot be serialised.
            sha256(&serde_json::to_string(&values).unwrap_or_default())
        };
        Self { digest }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_is_the_values_of_a_context_without_those_of_a_request() {
        let of_token = |token: &str| ToolContext::new().with("tenant", "acme").with("token", token);
        let ann = Caller::of(&of_token("ann"));
        assert_eq!(ann, Caller::of(&of_token("ann")));
        assert_ne!(ann, Caller::of(&of_token("bob")));
        assert_ne!(ann, Caller::of(&ToolContext::new().with("tenant", "acme")));
        let request = of_token("ann")
            .with(LOOP_ID, "run-2")
            .with("idempotency_key", "s/call_1")
            .with("traceparent", "00-1")
            .with_extension(7_u32);
        assert_eq!(ann, Caller::of(&request), "they belong to the request");
        assert_ne!(
            Caller::of(&ToolContext::new().with("a", "1").with("b", "2")),
            Caller::of(&ToolContext::new().with("a", "1\",\"b\":\"2")),
        );
    }
}
