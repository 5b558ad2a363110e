//! The differences between a recorded and a replayed conversation.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::Serialize;
use serde_json::{Map, Value};

/// The types of events that are not compared: events without an effect on the run, events about the decisions of a person,
/// which a replay repeats from the trace, and attached pictures, which a trace does not have.
const IGNORED_EVENTS: [&str; 9] = [
    "progress",
    "trace_started",
    "approval_requested",
    "approval_decided",
    "question_asked",
    "question_answered",
    "call_resolved",
    "tools_many",
    "pictures_attached",
];

/// The names of the fields that are not compared, because they differ between equal runs.
const IGNORED_FIELDS: [&str; 8] = [
    "version", "sequence", "at_ms", "process", "wall_ms", "loop_id", "key", "cost_usd",
];

/// An event that differs between the trace and the replay, or that only one of them has. It is found when the events of both
/// are compared. In contrast to a [`Divergence`](super::Divergence), it does not end the replay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Difference {
    /// The number of the event in the trace; `None` for an event that only the replay has.
    pub sequence: Option<u64>,
    /// The type of the event.
    pub event: String,
    /// The id of the call to which the event belongs, if any.
    pub call: Option<String>,
    /// The recorded values of the fields that differ, one field per line; `None` if the trace does not have the event.
    pub recorded: Option<String>,
    /// The replayed values of the fields that differ, one field per line; `None` if the replay does not have the event.
    pub replayed: Option<String>,
}

/// Compares the events of two runs, as JSON. `answered_ids` contains the ids of the calls that the trace answered.
///
/// The events of each call are compared separately, so the order in which concurrent calls end does not matter. An event
/// that only the replay has is not a difference if the recorded run has no event of its type. Of the requests to the
/// model that differ, only the first is returned.
#[must_use]
pub fn differences(recorded: &[Value], replayed: &[Value], answered_ids: &HashSet<String>) -> Vec<Difference> {
    let recorded_types: HashSet<&str> = recorded.iter().map(event_type_of).collect();
    let recorded_events = events_by_key(recorded, answered_ids);
    let replayed_events = events_by_key(replayed, answered_ids);
    let mut differences: Vec<_> = recorded_events
        .iter()
        .filter_map(|(key, event)| match replayed_events.get(key) {
            Some(replayed_event) => compare(event, replayed_event),
            None => Some(new_difference(event, Some(fields_text(&event.fields)), None)),
        })
        .collect();
    // An earlier release may not have recorded events of a type. Replayed events of this type are not differences.
    let only_replayed = replayed_events.iter().filter(|(key, event)| {
        !recorded_events.contains_key(*key) && recorded_types.contains(event.event_type.as_str())
    });
    differences.extend(only_replayed.map(|(_, event)| Difference {
        sequence: None,
        ..new_difference(event, None, Some(fields_text(&event.fields)))
    }));
    differences.sort_by_key(|difference| difference.sequence.unwrap_or(u64::MAX));
    // A request contains all earlier messages. After the first request that differs, all later requests differ too.
    let mut is_first_request = true;
    differences.retain(|difference| difference.event != "model_asked" || std::mem::take(&mut is_first_request));
    differences
}

/// The compared fields of an event.
struct ComparedEvent {
    sequence: u64,
    event_type: String,
    /// The id of the call to which the event belongs, if any.
    call: Option<String>,
    fields: BTreeMap<String, Value>,
}

/// The type of an event, the id of its call, and the number of the event among those with the same type and call.
type EventKey = (String, String, usize);

fn event_type_of(value: &Value) -> &str {
    value.get("event").and_then(Value::as_str).unwrap_or_default()
}

/// Returns the events to compare, by their keys. Events of nested agents are omitted.
fn events_by_key(events: &[Value], answered_ids: &HashSet<String>) -> BTreeMap<EventKey, ComparedEvent> {
    let mut counts: HashMap<(String, String), usize> = HashMap::new();
    // The calls inside a call that the trace answers are not made again.
    let mut calls_without_children = answered_ids.clone();
    let mut compared = BTreeMap::new();
    for value in events
        .iter()
        .filter(|value| value.get("parent_call").is_none_or(Value::is_null))
    {
        let event_type = event_type_of(value);
        let Some(object) = value.as_object().filter(|_| !IGNORED_EVENTS.contains(&event_type)) else {
            continue;
        };
        let call_id = object.get("id").and_then(Value::as_str).map(str::to_owned);
        if event_type.starts_with("nested_call_") {
            let parent = object
                .get("parent")
                .and_then(Value::as_str)
                .filter(|parent| !parent.is_empty());
            let is_made_again = parent
                .or(call_id.as_deref())
                .is_none_or(|id| !calls_without_children.contains(id));
            if !is_made_again {
                calls_without_children.extend(call_id);
                continue;
            }
        }
        let is_answered_by_trace = call_id.as_ref().is_some_and(|id| answered_ids.contains(id));
        // If the trace answers a call, the replayed events of the call lack the denied accesses and the kind of the error.
        if is_answered_by_trace && matches!(event_type, "tool_returned" | "access_denied") {
            continue;
        }
        let mut fields = compared_fields(object);
        if is_answered_by_trace {
            fields.remove("kind");
        }
        // The usage of a run includes that of its agents, which may not run again. If the run was resumed, it is that of the
        // last process. The usage of each inference is compared with its response.
        if event_type == "finished" {
            fields.remove("usage");
        }
        let key_id = call_id.clone().unwrap_or_default();
        let count = counts.entry((event_type.to_owned(), key_id.clone())).or_default();
        *count += 1;
        compared.insert(
            (event_type.to_owned(), key_id, *count),
            ComparedEvent {
                sequence: object.get("sequence").and_then(Value::as_u64).unwrap_or(0),
                event_type: event_type.to_owned(),
                call: call_id,
                fields,
            },
        );
    }
    compared
}

/// Returns the fields to compare. The objects `start` and `outcome` are replaced by their fields, such as
/// `start.arguments`.
fn compared_fields(object: &Map<String, Value>) -> BTreeMap<String, Value> {
    let mut fields = BTreeMap::new();
    for (name, value) in object {
        match value {
            Value::Object(inner) if name == "start" || name == "outcome" => {
                let inner_fields = inner
                    .iter()
                    .filter(|(inner_name, _)| !is_ignored_field(inner_name) && *inner_name != "usage");
                fields.extend(inner_fields.map(|(inner_name, value)| (format!("{name}.{inner_name}"), value.clone())));
            }
            _ if is_ignored_field(name) => {}
            _ => drop(fields.insert(name.clone(), value.clone())),
        }
    }
    fields
}

fn is_ignored_field(name: &str) -> bool {
    IGNORED_FIELDS.contains(&name)
}

/// Returns the difference of two events, or `None` if all compared fields are equal.
fn compare(recorded: &ComparedEvent, replayed: &ComparedEvent) -> Option<Difference> {
    let names: Vec<_> = recorded.fields.keys().chain(replayed.fields.keys()).collect();
    let is_different = |name: &str| recorded.fields.get(name) != replayed.fields.get(name);
    let differing_text = |fields: &BTreeMap<String, Value>| {
        let fields = fields.iter().filter(|(name, _)| is_different(name));
        fields_text(&fields.map(|(name, value)| (name.clone(), value.clone())).collect())
    };
    let has_difference = names.into_iter().any(|name| is_different(name));
    has_difference.then(|| {
        new_difference(
            recorded,
            Some(differing_text(&recorded.fields)),
            Some(differing_text(&replayed.fields)),
        )
    })
}

fn new_difference(event: &ComparedEvent, recorded: Option<String>, replayed: Option<String>) -> Difference {
    Difference {
        sequence: Some(event.sequence),
        event: event.event_type.clone(),
        call: event.call.clone(),
        recorded,
        replayed,
    }
}

/// Returns the fields, one per line. A text value keeps its line breaks.
fn fields_text(fields: &BTreeMap<String, Value>) -> String {
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

    fn finished_event(sequence: u64, id: &str, content: &str) -> Value {
        json!({"event": "tool_finished", "sequence": sequence, "at_ms": sequence, "id": id, "content": content, "wall_ms": sequence})
    }

    #[test]
    fn the_order_of_calls_and_the_times_are_not_compared() {
        let recorded = [finished_event(1, "a", "1"), finished_event(2, "b", "2")];
        let replayed = [finished_event(8, "b", "2"), finished_event(9, "a", "1")];
        assert!(differences(&recorded, &replayed, &HashSet::new()).is_empty());
    }

    #[test]
    fn changed_missing_and_added_events_are_differences() {
        let recorded = [finished_event(1, "a", "1"), finished_event(2, "b", "2")];
        let replayed = [finished_event(1, "a", "x"), finished_event(2, "c", "3")];
        let actual = differences(&recorded, &replayed, &HashSet::new());
        let calls: Vec<_> = actual
            .iter()
            .map(|difference| difference.call.as_deref().unwrap())
            .collect();
        assert_eq!(calls, ["a", "b", "c"]);
        assert_eq!(actual[0].recorded.as_deref(), Some("content: 1"));
        assert_eq!(actual[0].replayed.as_deref(), Some("content: x"));
        assert!(actual[1].replayed.is_none() && actual[2].recorded.is_none());
    }

    #[test]
    fn events_of_nested_agents_and_progress_events_are_not_compared() {
        let recorded = [
            json!({"event": "tool_finished", "id": "a", "parent_call": "p"}),
            json!({"event": "progress"}),
        ];
        assert!(differences(&recorded, &[], &HashSet::new()).is_empty());
    }
}
