//! Spans in the JSON encoding of OTLP.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use tracing::field::{Field, Visit};

/// Maximum length of a text attribute, in characters. Longer texts are truncated.
const TEXT_CHARS_MAX: usize = 32 << 10;

/// The number of ids that were created.
static ID_COUNT: AtomicU64 = AtomicU64::new(0);

/// A span that has not ended.
pub(super) struct OpenSpan {
    /// The id of the trace.
    pub(super) trace: String,
    pub(super) id: String,
    /// The id of the span around this one.
    parent: Option<String>,
    name: String,
    /// The start, in nanoseconds since 1970 UTC.
    start: u128,
    pub(super) attributes: Attributes,
}

/// The attributes of a span, by name.
#[derive(Default)]
pub(super) struct Attributes(BTreeMap<&'static str, Value>);

impl OpenSpan {
    /// Opens a span. `parent` has the ids of the trace and of the span around the new one. Without a parent, the span
    /// begins a trace.
    pub(super) fn new(name: &str, parent: Option<(String, String)>, attributes: Attributes) -> Self {
        let (trace, parent) = match parent {
            Some((trace, parent)) => (trace, Some(parent)),
            None => (format!("{}{}", new_id(), new_id()), None),
        };
        Self {
            trace,
            id: new_id(),
            parent,
            name: name.to_owned(),
            start: unix_nanos(),
            attributes,
        }
    }

    /// Ends the span and returns its JSON.
    pub(super) fn end(mut self) -> Value {
        let attributes = &mut self.attributes.0;
        let name = attributes.remove("otel.name").and_then(|name| match name {
            Value::String(name) => Some(name),
            _ => None,
        });
        let is_client = attributes.remove("otel.kind").is_some_and(|kind| kind == "client");
        let has_failed = attributes.contains_key("error.type");
        let attributes: Vec<_> = attributes.iter().map(|(key, value)| attribute(key, value)).collect();
        let mut span = json!({
            "traceId": self.trace,
            "spanId": self.id,
            "name": name.unwrap_or(self.name),
            "kind": if is_client { 3 } else { 1 },
            "startTimeUnixNano": self.start.to_string(),
            "endTimeUnixNano": unix_nanos().to_string(),
            "attributes": attributes,
            "status": if has_failed { json!({"code": 2}) } else { json!({}) },
        });
        if let Some(parent) = self.parent {
            span["parentSpanId"] = parent.into();
        }
        span
    }
}

/// Returns an attribute in the JSON encoding of OTLP, in which integers are strings.
fn attribute(key: &str, value: &Value) -> Value {
    let encoded = match value {
        // The conventions define this attribute as a list, but a field of `tracing` cannot be a list.
        Value::String(text) if key == "gen_ai.response.finish_reasons" => {
            json!({"arrayValue": {"values": [{"stringValue": text}]}})
        }
        Value::String(text) => json!({ "stringValue": text }),
        Value::Bool(flag) => json!({ "boolValue": flag }),
        Value::Number(number) if number.is_f64() => json!({ "doubleValue": number }),
        integer => json!({ "intValue": integer.to_string() }),
    };
    json!({"key": key, "value": encoded})
}

/// Returns the time in nanoseconds since 1970 UTC.
fn unix_nanos() -> u128 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_nanos()
}

/// Returns an id that is almost certainly unique. Ids are not secret.
fn new_id() -> String {
    // The keys of a `RandomState` are random numbers from the operating system.
    let id = RandomState::new().hash_one(ID_COUNT.fetch_add(1, Ordering::Relaxed));
    format!("{:016x}", id.max(1))
}

impl Visit for Attributes {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.0.insert(field.name(), value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.0.insert(field.name(), value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.insert(field.name(), value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.0.insert(field.name(), value.into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        let text: String = value.chars().take(TEXT_CHARS_MAX).collect();
        self.0.insert(field.name(), text.into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            return;
        }
        self.record_str(field, &format!("{value:?}"));
    }
}
