//! The context of a call, with the trace context of its request.

use rmcp::model::RequestMetaObject;
use toolwit::ToolContext;

/// Maximum length of a value of the trace context, in bytes. W3C Trace Context requires at least 512 for `tracestate`.
const TRACE_BYTES_MAX: usize = 1_024;

/// The `_meta` of a request, which can contain a trace context.
pub(crate) struct TraceMeta<'m>(pub(crate) &'m RequestMetaObject);

impl TraceMeta<'_> {
    /// Returns the values of the trace context: `traceparent`, `tracestate` and `baggage`. Malformed values are left
    /// out. `tracestate` is also left out if there is no valid `traceparent`.
    fn values(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let traceparent = self.0.get_traceparent().filter(|value| is_traceparent(value));
        let has_traceparent = traceparent.is_some();
        let tracestate = self
            .0
            .get_tracestate()
            .filter(|value| has_traceparent && is_header_value(value));
        let baggage = self.0.get_baggage().filter(|value| is_header_value(value));
        let values = [
            ("traceparent", traceparent),
            ("tracestate", tracestate),
            ("baggage", baggage),
        ];
        values.into_iter().filter_map(|(key, value)| Some((key, value?)))
    }
}

/// Returns the context of a call: the values of the principal's context, and the trace context of the request.
pub(crate) fn call_context(principal_context: &ToolContext, meta: &TraceMeta<'_>) -> ToolContext {
    meta.values().fold(principal_context.clone(), |context, (key, value)| {
        context.with(key, value)
    })
}

/// Returns whether a value has the form `<version>-<32 hex digits>-<16 hex digits>-<2 hex digits>`, with ids that are
/// not zero.
fn is_traceparent(value: &str) -> bool {
    let parts: Vec<_> = value.split('-').collect();
    let is_hex = |part: &str, digits: usize| {
        part.len() == digits && part.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
    };
    let is_zero = |part: &str| part.bytes().all(|digit| digit == b'0');
    match parts.as_slice() {
        [version, trace, parent, flags] => {
            is_hex(version, 2)
                && *version != "ff"
                && is_hex(trace, 32)
                && !is_zero(trace)
                && is_hex(parent, 16)
                && !is_zero(parent)
                && is_hex(flags, 2)
        }
        _ => false,
    }
}

/// Returns whether a value has only printable ASCII characters, and at most [`TRACE_BYTES_MAX`] bytes.
fn is_header_value(value: &str) -> bool {
    value.len() <= TRACE_BYTES_MAX && value.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    fn context(meta: serde_json::Value) -> ToolContext {
        let meta: RequestMetaObject = serde_json::from_value(meta).unwrap();
        call_context(&ToolContext::new().with("tenant", "acme"), &TraceMeta(&meta))
    }

    #[test]
    fn the_trace_context_reaches_the_call() {
        let parent = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";
        let context = context(json!({"traceparent": parent, "tracestate": "a=1", "baggage": "k=v"}));
        assert_eq!(context.text("traceparent"), Some(parent));
        assert_eq!(context.text("tracestate"), Some("a=1"));
        assert_eq!(context.text("baggage"), Some("k=v"));
        assert_eq!(context.text("tenant"), Some("acme"));
    }

    #[test]
    fn malformed_values_and_other_keys_of_the_request_do_not_reach_the_call() {
        let context = context(json!({
            "traceparent": "00-zz-1-1",
            "tracestate": "a=1",
            "baggage": "line\nbreak",
            "tenant": "other",
        }));
        assert_eq!(context.keys().collect::<Vec<_>>(), ["tenant"]);
        assert_eq!(context.text("tenant"), Some("acme"));
    }
}
