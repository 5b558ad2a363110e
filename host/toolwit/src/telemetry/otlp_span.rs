//! Spans in the JSON encoding of OTLP, the protocol of OpenTelemetry.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use tracing::field::{Field, Visit};

/// Maximum length of a text attribute, in characters. Longer texts are truncated.
const TEXT_CHARS_MAX: usize = 32 << 10;

/// The span kind `INTERNAL` of OTLP.
const SPAN_KIND_INTERNAL: u8 = 1;

/// The span kind `CLIENT` of OTLP.
const SPAN_KIND_CLIENT: u8 = 3;

/// The status code `ERROR` of OTLP.
const STATUS_CODE_ERROR: u8 = 2;

/// The number of ids that this process has created.
static ID_COUNT: AtomicU64 = AtomicU64::new(0);

/// A span that has not ended.
pub(super) struct OpenSpan {
    pub(super) trace_id: String,
    pub(super) id: String,
    parent_id: Option<String>,
    name: String,
    /// The start, in nanoseconds since 1970 UTC.
    start_nanos: u128,
    pub(super) attributes: Attributes,
}

/// The attributes of a span, by name.
#[derive(Default)]
pub(super) struct Attributes(BTreeMap<&'static str, Value>);

impl OpenSpan {
    /// Opens a span. `parent` has the trace id and the span id of the parent span. Without a parent, the new span begins a
    /// new trace.
    pub(super) fn new(name: &str, parent: Option<(String, String)>, attributes: Attributes) -> Self {
        let (trace_id, parent_id) = match parent {
            Some((trace_id, parent_id)) => (trace_id, Some(parent_id)),
            None => (format!("{}{}", new_id(), new_id()), None),
        };
        Self {
            trace_id,
            id: new_id(),
            parent_id,
            name: name.to_owned(),
            start_nanos: unix_nanos(),
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
        let attributes: Vec<_> = attributes
            .iter()
            .map(|(key, value)| encode_attribute(key, value))
            .collect();
        let mut span = json!({
            "traceId": self.trace_id,
            "spanId": self.id,
            "name": name.unwrap_or(self.name),
            "kind": if is_client { SPAN_KIND_CLIENT } else { SPAN_KIND_INTERNAL },
            "startTimeUnixNano": self.start_nanos.to_string(),
            "endTimeUnixNano": unix_nanos().to_string(),
            "attributes": attributes,
            "status": if has_failed { json!({"code": STATUS_CODE_ERROR}) } else { json!({}) },
        });
        if let Some(parent_id) = self.parent_id {
            span["parentSpanId"] = parent_id.into();
        }
        span
    }
}

/// Returns an attribute in the JSON encoding of OTLP, in which integers are strings.
fn encode_attribute(key: &str, value: &Value) -> Value {
    let encoded = match value {
        // The semantic conventions define this attribute as a list, but a field of `tracing` cannot be a list.
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

/// Returns a random id of 16 hexadecimal digits. A span id is one such id, a trace id consists of two. Ids need not be secret.
fn new_id() -> String {
    // The keys of a `RandomState` come from random numbers of the operating system, so the hash is random.
    let id = RandomState::new().hash_one(ID_COUNT.fetch_add(1, Ordering::Relaxed));
    // In OTLP, an id of zero is invalid.
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
        // The message of an event is not an attribute.
        if field.name() == "message" {
            return;
        }
        self.record_str(field, &format!("{value:?}"));
    }
}
