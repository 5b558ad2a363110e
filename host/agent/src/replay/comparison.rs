//! The differences between a recorded and a replayed conversation.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::Serialize;
use serde_json::{Map, Value};

/// The events that are not compared: they have no effect on the run, or a replay answers them itself.
const IGNORED_EVENTS: [&str; 6] = [
    "progress",
    "trace_started",
    "approval_requested",
    "approval_decided",
    "call_resolved",
    "tools_many",
];

/// The fields that are not compared, because they differ between any two runs.
const IGNORED_FIELDS: [&str; 8] = [
    "version", "sequence", "at_ms", "process", "wall_ms", "loop_id", "key", "cost_usd",
];

/// An event that differs, is missing in the replay, or exists only there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Difference {
    /// The number of the event in the trace; `None` for an event that only the replay has.
    pub sequence: Option<u64>,
    /// The type of the event.
    pub event: String,
    /// The id of its call, if it belongs to one.
    pub call: Option<String>,
    /// The part that differs, as recorded; `None` if it is missing.
    pub recorded: Option<String>,
    /// The part that differs, as replayed; `None` if it is missing.
    pub replayed: Option<String>,
}

/// Compares events, as JSON. `answered` are the calls whose result comes from the trace.
///
/// Events of one call are compared with each other, so that calls that ran at the same time may end in another order.
#[must_use]
pub fn differences(recorded: &[Value], replayed: &[Value], answered: &HashSet<String>) -> Vec<Difference> {
    let known: HashSet<&str> = recorded.iter().map(event_of).collect();
    let expected = keyed(recorded, answered);
    let actual = keyed(replayed, answered);
    let mut differences: Vec<_> = expected
        .iter()
        .filter_map(|(key, one)| match actual.get(key) {
            Some(other) => different(one, other),
            None => Some(difference(one, Some(text(&one.fields)), None)),
        })
        .collect();
    // A trace of another version may lack a type of event. Its events are then not differences.
    let added = actual
        .iter()
        .filter(|(key, one)| !expected.contains_key(*key) && known.contains(one.event.as_str()));
    differences.extend(added.map(|(_, one)| Difference {
        sequence: None,
        ..difference(one, None, Some(text(&one.fields)))
    }));
    differences.sort_by_key(|difference| difference.sequence.unwrap_or(u64::MAX));
    // Requests contain everything before them, so that a later one differs only because of an earlier difference.
    let mut is_first = true;
    differences.retain(|difference| difference.event != "model_asked" || std::mem::take(&mut is_first));
    differences
}

struct ComparedEvent {
    sequence: u64,
    event: String,
    call: Option<String>,
    fields: BTreeMap<String, Value>,
}

type Key = (String, String, usize);

fn event_of(value: &Value) -> &str {
    value.get("event").and_then(Value::as_str).unwrap_or_default()
}

fn keyed(events: &[Value], answered: &HashSet<String>) -> BTreeMap<Key, ComparedEvent> {
    let mut counts: HashMap<(String, String), usize> = HashMap::new();
    let mut keyed = BTreeMap::new();
    for value in events
        .iter()
        .filter(|value| value.get("parent_call").is_none_or(Value::is_null))
    {
        let event = event_of(value);
        let Some(object) = value.as_object().filter(|_| !IGNORED_EVENTS.contains(&event)) else {
            continue;
        };
        let call = object.get("id").and_then(Value::as_str).map(str::to_owned);
        let is_answered = call.as_ref().is_some_and(|call| answered.contains(call));
        if is_answered && matches!(event, "tool_returned" | "access_denied") {
            continue;
        }
        let mut fields = compared_fields(object);
        if is_answered {
            fields.remove("kind");
        }
        let subject = call.clone().unwrap_or_default();
        let count = counts.entry((event.to_owned(), subject.clone())).or_default();
        *count += 1;
        keyed.insert(
            (event.to_owned(), subject, *count),
            ComparedEvent {
                sequence: object.get("sequence").and_then(Value::as_u64).unwrap_or(0),
                event: event.to_owned(),
                call,
                fields,
            },
        );
    }
    keyed
}

/// Returns the fields to compare. The fields of the start and of the outcome of a call are compared one by one.
fn compared_fields(object: &Map<String, Value>) -> BTreeMap<String, Value> {
    let mut fields = BTreeMap::new();
    for (name, value) in object {
        match value {
            Value::Object(inner) if name == "start" || name == "outcome" => {
                let inner = inner.iter().filter(|(name, _)| !is_variable(name) && *name != "usage");
                fields.extend(inner.map(|(inner, value)| (format!("{name}.{inner}"), value.clone())));
            }
            _ if is_variable(name) => {}
            _ => drop(fields.insert(name.clone(), value.clone())),
        }
    }
    fields
}

fn is_variable(name: &str) -> bool {
    IGNORED_FIELDS.contains(&name)
}

fn different(one: &ComparedEvent, other: &ComparedEvent) -> Option<Difference> {
    let names: Vec<_> = one.fields.keys().chain(other.fields.keys()).collect();
    let is_different = |name: &str| one.fields.get(name) != other.fields.get(name);
    let of = |fields: &BTreeMap<String, Value>| {
        let fields = fields.iter().filter(|(name, _)| is_different(name));
        text(&fields.map(|(name, value)| (name.clone(), value.clone())).collect())
    };
    let is_any = names.into_iter().any(|name| is_different(name));
    is_any.then(|| difference(one, Some(of(&one.fields)), Some(of(&other.fields))))
}

fn difference(event: &ComparedEvent, recorded: Option<String>, replayed: Option<String>) -> Difference {
    Difference {
        sequence: Some(event.sequence),
        event: event.event.clone(),
        call: event.call.clone(),
        recorded,
        replayed,
    }
}

/// Returns the fields, one per line. A text value keeps its line breaks.
fn text(fields: &BTreeMap<String, Value>) -> String {
    let line = |(name, value): (&String, &Value)| match value {
        Value::String(text) => format!("{name}: {text}"),
        value => format!("{name}: {value}"),
    };
    fields.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    fn finished(sequence: u64, id: &str, content: &str) -> Value {
        json!({"event": "tool_finished", "sequence": sequence, "at_ms": sequence, "id": id, "content": content, "wall_ms": sequence})
    }

    #[test]
    fn events_of_a_call_are_compared_in_any_order_and_without_times() {
        let recorded = [finished(1, "a", "1"), finished(2, "b", "2")];
        let replayed = [finished(8, "b", "2"), finished(9, "a", "1")];
        assert!(differences(&recorded, &replayed, &HashSet::new()).is_empty());
    }

    #[test]
    fn changed_missing_and_added_events_are_differences() {
        let recorded = [finished(1, "a", "1"), finished(2, "b", "2")];
        let replayed = [finished(1, "a", "x"), finished(2, "c", "3")];
        let found = differences(&recorded, &replayed, &HashSet::new());
        let calls: Vec<_> = found
            .iter()
            .map(|difference| difference.call.as_deref().unwrap())
            .collect();
        assert_eq!(calls, ["a", "b", "c"]);
        assert_eq!(found[0].recorded.as_deref(), Some("content: 1"));
        assert_eq!(found[0].replayed.as_deref(), Some("content: x"));
        assert!(found[1].replayed.is_none() && found[2].recorded.is_none());
    }

    #[test]
    fn events_of_agents_and_progress_are_not_compared() {
        let recorded = [
            json!({"event": "tool_finished", "id": "a", "parent_call": "p"}),
            json!({"event": "progress"}),
        ];
        assert!(differences(&recorded, &[], &HashSet::new()).is_empty());
    }
}
