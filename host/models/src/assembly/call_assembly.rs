//! The assembly of tool calls from pieces.

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::Value;

use super::json_end::JsonEnd;
use crate::decode::without_lone_surrogates;
use toolwit_core::{Message, ToolCall};

/// A piece of a tool call. Fields that the provider did not send are empty.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CallPiece<'p> {
    /// The index that the provider gives all pieces of one call.
    pub(crate) index: Option<u64>,
    /// The id of the call, or an empty text.
    pub(crate) id: &'p str,
    /// The name of the tool, or an empty text.
    pub(crate) name: &'p str,
    /// A string with a piece of the arguments' JSON, or the complete arguments as another JSON value.
    pub(crate) arguments: Option<&'p Value>,
}

/// The calls of a response, in the order in which their first pieces arrived.
///
/// Servers mark the pieces of calls in different ways. Some use a different index for each call, possibly with gaps;
/// others use the same index for all calls, or no index. Some send the id in every piece; others send it in the first
/// piece of a call, or not at all. [`call_position`](CallAssembly::call_position) decides to which call a piece belongs.
#[derive(Debug, Default)]
pub(super) struct CallAssembly {
    calls: Vec<PartialCall>,
}

#[derive(Debug, Default)]
struct PartialCall {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
    /// Detects whether the arguments are complete.
    arguments_end: JsonEnd,
    /// The number of bytes of the arguments that the listener of the request has received. `None` before the listener has
    /// received the name.
    emitted_bytes: Option<usize>,
}

impl CallPiece<'_> {
    /// Returns the arguments as JSON text. Some providers send them as text, others as a JSON value.
    pub(super) fn argument_text(&self) -> Cow<'_, str> {
        match self.arguments {
            None | Some(Value::Null) => Cow::Borrowed(""),
            Some(Value::String(text)) => Cow::Borrowed(text),
            Some(value) => Cow::Owned(value.to_string()),
        }
    }
}

/// The call to which a piece was added.
pub(super) struct PushedPiece<'c> {
    /// The position of the call in the response.
    pub(super) position: usize,
    /// The name of the tool, as far as it has arrived, and the arguments that the listener of the request has not received
    /// yet. `None` if the name has not arrived, or if the listener has received the name and all arguments.
    pub(super) unemitted: Option<(&'c str, &'c str)>,
}

impl CallAssembly {
    /// Returns the number of calls.
    pub(super) fn len(&self) -> usize {
        self.calls.len()
    }

    /// Adds a piece with the [JSON text](CallPiece::argument_text) of its arguments.
    pub(super) fn push(&mut self, piece: CallPiece<'_>, arguments: &str) -> PushedPiece<'_> {
        let position = match self.call_position(piece) {
            Some(position) => position,
            None if piece.id.is_empty() && piece.name.is_empty() && arguments.is_empty() => {
                return PushedPiece {
                    position: self.calls.len(),
                    unemitted: None,
                };
            }
            None => {
                self.calls.push(PartialCall {
                    index: piece.index,
                    ..PartialCall::default()
                });
                self.calls.len() - 1
            }
        };
        let call = &mut self.calls[position];
        if call.id.is_empty() {
            piece.id.clone_into(&mut call.id);
        }
        // Some servers repeat the complete name in each piece. Others send the name in pieces.
        if call.name != piece.name {
            call.name.push_str(piece.name);
        }
        call.arguments.push_str(arguments);
        call.arguments_end.push(arguments);
        let argument_bytes = call.arguments.len();
        if call.name.is_empty() || call.emitted_bytes == Some(argument_bytes) {
            return PushedPiece {
                position,
                unemitted: None,
            };
        }
        let emitted_bytes = call.emitted_bytes.replace(argument_bytes).unwrap_or_default();
        PushedPiece {
            position,
            unemitted: Some((&call.name, &call.arguments[emitted_bytes..])),
        }
    }

    /// Returns the position of the call to which a piece belongs, or `None` if the piece starts a new call.
    ///
    /// A piece with an index belongs to the last call with this index. A piece with an id, but without an index, belongs
    /// to the last call with this id. Any other piece belongs to the last call. If no such call exists, the piece starts a
    /// new call.
    ///
    /// If the piece and the existing call both have a name, the piece also starts a new call in two cases: their ids
    /// differ, or the piece has no id and the arguments of the existing call are complete. Servers that give all calls the
    /// index 0 send such pieces.
    fn call_position(&self, piece: CallPiece<'_>) -> Option<usize> {
        let position = match piece.index {
            Some(_) => self.calls.iter().rposition(|call| call.index == piece.index)?,
            None if !piece.id.is_empty() => self.calls.iter().rposition(|call| call.id == piece.id)?,
            None => self.calls.len().checked_sub(1)?,
        };
        let call = &self.calls[position];
        let has_other_id = !piece.id.is_empty() && !call.id.is_empty() && piece.id != call.id;
        let follows_complete_call = piece.id.is_empty() && call.arguments_end.is_closed();
        let starts_new_call =
            !piece.name.is_empty() && !call.name.is_empty() && (has_other_id || follows_complete_call);
        (!starts_new_call).then_some(position)
    }

    /// Returns the calls. In a complete response, blank arguments become `{}`. In a truncated response, they stay blank,
    /// so that the call is not executed. A call gets a new id if the provider sent no id, or if an earlier call of this
    /// response or of `history` has the same id: some servers number the calls of each response from the start.
    pub(super) fn finish(self, is_complete: bool, history: &[Message]) -> Vec<ToolCall> {
        let mut used_ids: HashSet<&str> = history
            .iter()
            .flat_map(Message::tool_calls)
            .map(|call| call.id.as_str())
            .collect();
        let provider_ids: HashSet<&str> = self.calls.iter().map(|call| call.id.as_str()).collect();
        let mut number = used_ids.len();
        let mut ids = Vec::with_capacity(self.calls.len());
        for call in &self.calls {
            if !call.id.is_empty() && used_ids.insert(&call.id) {
                ids.push(call.id.clone());
                continue;
            }
            ids.push(loop {
                number += 1;
                let id = format!("call_{number}");
                if !provider_ids.contains(id.as_str()) && !used_ids.contains(id.as_str()) {
                    break id;
                }
            });
        }
        let calls = self.calls.into_iter().zip(ids);
        calls
            .map(|(call, id)| ToolCall {
                id,
                name: call.name,
                // Some models write `null` for a tool without parameters.
                arguments: if is_complete && matches!(call.arguments.trim(), "" | "null") {
                    "{}".to_owned()
                } else {
                    // The arguments are JSON within JSON, so that the decoder of the body has not seen their escapes.
                    without_lone_surrogates(&call.arguments).into_owned()
                },
            })
            .collect()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Assembles pieces, given as JSON with the fields of [`CallPiece`]. Returns the id, name and arguments of each
    /// call.
    fn assemble(pieces: &Value) -> Vec<(String, String, String)> {
        let mut calls = CallAssembly::default();
        for piece in pieces.as_array().unwrap() {
            let text = |key: &str| piece.get(key).and_then(Value::as_str).unwrap_or_default();
            let piece = CallPiece {
                index: piece.get("index").and_then(Value::as_u64),
                id: text("id"),
                name: text("name"),
                arguments: piece.get("arguments"),
            };
            calls.push(piece, &piece.argument_text());
        }
        let calls = calls.finish(true, &[]);
        calls
            .into_iter()
            .map(|call| (call.id, call.name, call.arguments))
            .collect()
    }

    /// Returns a call in the form that [`assemble`] returns.
    fn call(id: &str, name: &str, arguments: &str) -> (String, String, String) {
        (id.to_owned(), name.to_owned(), arguments.to_owned())
    }

    // attack: F4
    #[test]
    fn pieces_are_joined_by_their_index() {
        let pieces = json!([
            {"index": 0, "id": "a", "name": "f", "arguments": ""},
            {"index": 2, "id": "b", "name": "g", "arguments": "{\"x\""},
            {"index": 0, "arguments": "{}"},
            {"index": 2, "arguments": ": 1}"},
            {"index": 2, "arguments": null},
            {"index": 7},
        ]);
        assert_eq!(assemble(&pieces), [call("a", "f", "{}"), call("b", "g", "{\"x\": 1}")]);
        let name_in_second_piece =
            json!([{"index": 1, "arguments": "{"}, {"index": 1, "name": "f", "arguments": "}", "id": "a"}]);
        assert_eq!(assemble(&name_in_second_piece), [call("a", "f", "{}")]);
    }

    // attack: F4
    #[test]
    fn a_reused_index_starts_a_new_call() {
        let different_ids = json!([
            {"index": 0, "id": "a", "name": "f", "arguments": "{\"n\": "},
            {"index": 0, "id": "a", "arguments": "1}"},
            {"index": 0, "id": "b", "name": "f", "arguments": "{"},
            {"index": 0, "arguments": "}"},
        ]);
        assert_eq!(
            assemble(&different_ids),
            [call("a", "f", "{\"n\": 1}"), call("b", "f", "{}")]
        );
        let without_ids = json!([
            {"index": 0, "id": "", "name": "f", "arguments": "{\"n\": \"}\"}"},
            {"index": 0, "id": "", "name": "f", "arguments": "{\"n\": 2}"},
        ]);
        assert_eq!(
            assemble(&without_ids),
            [call("call_1", "f", "{\"n\": \"}\"}"), call("call_2", "f", "{\"n\": 2}")]
        );
    }

    // attack: F4
    #[test]
    fn pieces_without_an_index_are_joined_by_their_id_or_their_order() {
        let ids = json!([
            {"id": "a", "name": "f", "arguments": "{"},
            {"id": "b", "name": "g", "arguments": "{"},
            {"id": "a", "arguments": "}"},
            {"id": "b", "arguments": "}"},
        ]);
        assert_eq!(assemble(&ids), [call("a", "f", "{}"), call("b", "g", "{}")]);
        let without_index_and_id = json!([
            {"name": "f", "arguments": "{\"a\":"},
            {"name": "f", "arguments": "1}"},
            {"name": "g", "arguments": {"b": 2}},
            {"name": "g"},
        ]);
        assert_eq!(
            assemble(&without_index_and_id),
            [
                call("call_1", "f", "{\"a\":1}"),
                call("call_2", "g", "{\"b\":2}"),
                call("call_3", "g", "{}")
            ]
        );
    }

    #[test]
    fn lone_surrogates_in_arguments_are_replaced() {
        let pieces =
            json!([{"id": "a", "name": "f", "arguments": "{\"x\":\"\\ud83d"}, {"id": "a", "arguments": "\"}"}]);
        assert_eq!(assemble(&pieces), [call("a", "f", "{\"x\":\"\\ufffd\"}")]);
    }

    #[test]
    fn a_name_in_pieces_is_joined_and_a_repeated_name_is_not() {
        let pieces = json!([
            {"index": 0, "id": "a", "name": "sea"},
            {"index": 0, "name": "rch", "arguments": "{"},
            {"index": 0, "name": "search", "arguments": "}"},
        ]);
        assert_eq!(assemble(&pieces), [call("a", "search", "{}")]);
    }

    // attack: F1
    #[test]
    fn blank_arguments_of_a_truncated_response_stay_blank() {
        let finish = |is_complete| {
            let mut calls = CallAssembly::default();
            let piece = CallPiece {
                name: "f",
                ..CallPiece::default()
            };
            calls.push(piece, "");
            calls.finish(is_complete, &[])[0].arguments.clone()
        };
        assert_eq!((finish(true), finish(false)), ("{}".to_owned(), String::new()));
    }
}
