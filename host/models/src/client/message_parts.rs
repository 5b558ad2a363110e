//! The parts of an assistant message, in the order in which the provider sent them.

use serde_json::Value;

use toolwit_core::{ProviderBlock, ToolCall};

/// A part of an assistant message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum MessagePart<'m> {
    /// A piece of the text. Never empty.
    Text(&'m str),
    /// A tool call.
    Call(&'m ToolCall),
    /// The data of a provider block that this provider issued.
    Block(&'m Value),
}

/// Returns the parts of an assistant message: its text, its calls, and the provider blocks that `block_issuer` issued. A block is at
/// the position at which the provider sent it.
pub(crate) fn message_parts<'m>(
    content: &'m str,
    calls: &'m [ToolCall],
    blocks: &'m [ProviderBlock],
    block_issuer: &str,
) -> Vec<MessagePart<'m>> {
    let mut parts = Vec::new();
    let (mut text_start, mut calls_start) = (0, 0);
    for block in blocks.iter().filter(|block| block.issuer == block_issuer) {
        // The text or the calls may have changed since the response arrived. Then the position of a block can be beyond their
        // end, or within a character.
        let text_end = block.text_bytes_before.min(content.len());
        if text_end > text_start && content.is_char_boundary(text_end) {
            parts.push(MessagePart::Text(&content[text_start..text_end]));
            text_start = text_end;
        }
        let calls_end = block.calls_before.clamp(calls_start, calls.len().max(calls_start));
        parts.extend(calls[calls_start..calls_end].iter().map(MessagePart::Call));
        calls_start = calls_end;
        parts.push(MessagePart::Block(&block.data));
    }
    if text_start < content.len() {
        parts.push(MessagePart::Text(&content[text_start..]));
    }
    parts.extend(calls[calls_start..].iter().map(MessagePart::Call));
    parts
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn provider_blocks_are_at_their_positions_and_go_to_their_issuer_only() {
        let call = |id: &str| ToolCall {
            id: id.to_owned(),
            name: "f".to_owned(),
            arguments: "{}".to_owned(),
        };
        let block = |issuer: &str, data: i32, text_bytes_before, calls_before| ProviderBlock {
            issuer: issuer.to_owned(),
            data: json!(data),
            text_bytes_before,
            calls_before,
        };
        let calls = [call("a"), call("b")];
        let blocks = [
            block("x", 1, 0, 0),
            block("y", 2, 0, 0),
            block("x", 3, 2, 0),
            block("x", 4, 5, 1),
            block("x", 5, 900, 900),
        ];
        let (one, three, four, five) = (json!(1), json!(3), json!(4), json!(5));
        assert_eq!(
            message_parts("hié you", &calls, &blocks, "x"),
            [
                MessagePart::Block(&one),
                MessagePart::Text("hi"),
                MessagePart::Block(&three),
                MessagePart::Text("é "),
                MessagePart::Call(&calls[0]),
                MessagePart::Block(&four),
                MessagePart::Text("you"),
                MessagePart::Call(&calls[1]),
                MessagePart::Block(&five),
            ]
        );
        let parts_for_other_issuer = message_parts("hi", &calls[..1], &blocks, "z");
        assert_eq!(
            parts_for_other_issuer,
            [MessagePart::Text("hi"), MessagePart::Call(&calls[0])]
        );
        let block_within_character = [block("x", 1, 3, 0)];
        let parts = message_parts("hié", &[], &block_within_character, "x");
        assert_eq!(parts, [MessagePart::Block(&one), MessagePart::Text("hié")]);
    }
}
