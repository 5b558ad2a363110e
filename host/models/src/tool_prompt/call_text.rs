//! Calls in the text of a response, in the forms that models were trained to write.
//!
//! | form | models |
//! |---|---|
//! | `<tool_call>{"name": …, "arguments": {…}}</tool_call>` | Hermes, Qwen 2.5 and 3 |
//! | `<\|python_tag\|>{"name": …, "parameters": {…}}`, or this object as the complete response | Llama 3.1 and later |
//! | `<function=NAME>{…}</function>` | Llama 3.1 |
//! | `[TOOL_CALLS][{"name": …, "arguments": {…}}]`, `[TOOL_CALLS]NAME[ARGS]{…}` | Mistral |
//!
//! A mark starts a call only at the start of a line outside of code fences and reasoning. Only further calls may follow a call:
//! other text after it makes the response invalid. So a call that may be a quotation is never executed.

use serde::de::IgnoredAny;
use serde_json::Value;

use super::json_reply::call_json;
use super::reply::{InvalidReply, ParsedCall, Reply};
use toolwit_core::ToolCall;
use toolwit_core::text::parse_json;

pub(super) const CALL_START: &str = "<tool_call>";
pub(super) const CALL_END: &str = "</tool_call>";
const PYTHON_TAG: &str = "<|python_tag|>";
const FUNCTION_START: &str = "<function=";
const FUNCTION_END: &str = "</function>";
const MISTRAL_CALLS: &str = "[TOOL_CALLS]";
const MISTRAL_ARGUMENTS: &str = "[ARGS]";

/// The marks with which a call starts.
const START_MARKS: [&str; 4] = [CALL_START, PYTHON_TAG, FUNCTION_START, MISTRAL_CALLS];

/// Marks at the end of a response, which some servers do not remove.
const RESPONSE_END_MARKS: [&str; 5] = ["<|eom_id|>", "<|eot_id|>", "<|im_end|>", "<|end|>", "</s>"];

/// The keys under which models write the arguments.
const ARGUMENT_KEYS: [&str; 2] = ["arguments", "parameters"];

/// Reads a complete response. `is_tool` returns whether a name is that of a visible tool.
///
/// # Errors
/// A call is incomplete or invalid, or text follows it.
pub(super) fn read(text: &str, is_tool: impl Fn(&str) -> bool) -> Result<Reply, InvalidReply> {
    let text = without_response_end_mark(text);
    let Some(start) = call_start(text) else {
        // JSON objects without marks may be an answer. They are calls only if their names are those of tools.
        let calls = unmarked_calls(text).filter(|calls| calls.iter().all(|call| is_tool(&call.name)));
        return Ok(match calls {
            Some(calls) => Reply {
                text: String::new(),
                calls,
            },
            None => Reply::text(text),
        });
    };
    Ok(Reply {
        text: text[..start].trim_end().to_owned(),
        calls: marked_calls(text[start..].trim())?,
    })
}

/// Writes an earlier response as text. Its calls have the form that [`instructions`](super::instructions) describes.
pub(super) fn reply_text(text: &str, calls: &[ToolCall]) -> String {
    let calls = calls
        .iter()
        .map(|call| format!("{CALL_START}{}{CALL_END}", call_json(call)));
    let text = Some(text.to_owned()).filter(|text| !text.is_empty());
    text.into_iter().chain(calls).collect::<Vec<_>>().join("\n")
}

/// Inserts a space into each start mark of a call, and into each `</tool_call>`. If the model repeats the text, its response then
/// does not contain a call.
pub(super) fn break_marks(text: &str) -> String {
    START_MARKS
        .iter()
        .chain([&CALL_END])
        .fold(text.to_owned(), |text, mark| {
            let (first_character, remainder) = mark.split_at(1);
            text.replace(mark, &format!("{first_character} {remainder}"))
        })
}

/// The state of a text that is read line by line: whether the current line is in a code fence or in reasoning.
#[derive(Debug, Default)]
pub(super) struct LineState {
    is_in_fence: bool,
    is_in_reasoning: bool,
}

/// The kind of a line, judged by its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineStart {
    /// The start is too short to decide between text and a call.
    Undecided,
    Text,
    Call,
}

impl LineState {
    /// Classifies a line, or the part of a line that has arrived.
    pub(super) fn classify_start(&self, line: &str) -> LineStart {
        let line = line.trim_start();
        if self.is_in_fence || self.is_in_reasoning {
            LineStart::Text
        } else if START_MARKS.iter().any(|mark| line.starts_with(mark)) {
            LineStart::Call
        } else if START_MARKS.iter().any(|mark| mark.starts_with(line)) {
            LineStart::Undecided
        } else {
            LineStart::Text
        }
    }

    /// Updates the state at the end of a line of text.
    pub(super) fn end_line(&mut self, line: &str) {
        if line.trim_start().starts_with("```") && !self.is_in_reasoning {
            self.is_in_fence = !self.is_in_fence;
        }
        // The last tag of a line decides.
        let (last_start, last_end) = (line.rfind("<think>"), line.rfind("</think>"));
        if last_start.is_some() || last_end.is_some() {
            self.is_in_reasoning = last_start > last_end;
        }
    }
}

/// Returns the byte position of the first line that starts with a mark, outside of code fences and reasoning.
fn call_start(text: &str) -> Option<usize> {
    let mut line_state = LineState::default();
    let mut position = 0;
    for line in text.split_inclusive('\n') {
        if line_state.classify_start(line) == LineStart::Call {
            return Some(position);
        }
        line_state.end_line(line);
        position += line.len();
    }
    None
}

fn without_response_end_mark(text: &str) -> &str {
    let trimmed = text.trim_end();
    let stripped = RESPONSE_END_MARKS.iter().find_map(|end| trimmed.strip_suffix(end));
    stripped.unwrap_or(text)
}

/// Reads the calls of a text that starts with the mark of a call. Refuses a text with anything other than calls.
fn marked_calls(text: &str) -> Result<Vec<ParsedCall>, InvalidReply> {
    let mut calls = Vec::new();
    let mut unread = text;
    while !unread.is_empty() {
        unread = if let Some(body) = unread.strip_prefix(CALL_START) {
            let (call, unread) = json_prefix(body)?;
            calls.push(ParsedCall::read(&call, &ARGUMENT_KEYS)?);
            strip_closing_mark(unread, CALL_END)?
        } else if let Some(body) = unread.strip_prefix(FUNCTION_START) {
            let (name, body) = body.split_once('>').ok_or_else(incomplete_call)?;
            let (arguments, unread) = json_prefix(body)?;
            calls.push(ParsedCall::new(name.trim(), Some(&arguments))?);
            strip_closing_mark(unread, FUNCTION_END)?
        } else if let Some(body) = unread.strip_prefix(MISTRAL_CALLS) {
            read_mistral_calls(body, &mut calls)?
        } else if let Some(body) = unread.strip_prefix(PYTHON_TAG) {
            calls.extend(object_calls(body)?);
            ""
        } else {
            return Err(InvalidReply("text follows a call".to_owned()));
        }
        .trim_start();
    }
    Ok(calls)
}

/// Reads Mistral's form after its mark: a list of calls, or the name of one call and then its arguments. Appends the calls to
/// `calls` and returns the unread text.
fn read_mistral_calls<'t>(text: &'t str, calls: &mut Vec<ParsedCall>) -> Result<&'t str, InvalidReply> {
    let text = text.trim_start();
    if text.starts_with('[') {
        let (list, unread) = json_prefix(text)?;
        let list = list
            .as_array()
            .filter(|list| !list.is_empty())
            .ok_or_else(incomplete_call)?;
        for call in list {
            // The id is dropped, because an id from the model may not be unique in the conversation.
            calls.push(ParsedCall::read(&without_id(call), &ARGUMENT_KEYS)?);
        }
        return Ok(unread);
    }
    let (header, body) = text.split_once(MISTRAL_ARGUMENTS).ok_or_else(incomplete_call)?;
    let (arguments, unread) = json_prefix(body)?;
    // `[CALL_ID]` and an id may follow the name.
    let name = header.split('[').next().unwrap_or_default().trim();
    calls.push(ParsedCall::new(name, Some(&arguments))?);
    Ok(unread)
}

fn without_id(call: &Value) -> Value {
    let mut call = call.clone();
    if let Some(fields) = call.as_object_mut() {
        fields.shift_remove("id");
    }
    call
}

/// Reads the calls of a text that consists of JSON objects, separated by `;`.
fn object_calls(text: &str) -> Result<Vec<ParsedCall>, InvalidReply> {
    let mut calls = Vec::new();
    let mut unread = text;
    loop {
        let (call, after_call) = json_prefix(unread)?;
        calls.push(ParsedCall::read(&call, &ARGUMENT_KEYS)?);
        let after_call = after_call.trim_start();
        match after_call.strip_prefix(';') {
            _ if after_call.is_empty() => return Ok(calls),
            Some(after_separator) => unread = after_separator,
            None => return Err(InvalidReply("text follows a call".to_owned())),
        }
    }
}

/// Reads a response that consists only of calls without marks. Returns `None` for other responses, and for a response without any
/// of the [`ARGUMENT_KEYS`].
fn unmarked_calls(text: &str) -> Option<Vec<ParsedCall>> {
    let text = text.trim();
    let has_arguments = ARGUMENT_KEYS.iter().any(|key| text.contains(&format!("\"{key}\"")));
    (text.starts_with('{') && has_arguments).then(|| object_calls(text).ok())?
}

/// Reads the JSON value at the start of a text. Returns the value and the text after it.
fn json_prefix(text: &str) -> Result<(Value, &str), InvalidReply> {
    let invalid = |error: serde_json::Error| InvalidReply(format!("a call is not valid JSON: {error}"));
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>();
    values.next().ok_or_else(incomplete_call)?.map_err(invalid)?;
    let (json, after_value) = text.split_at(values.byte_offset());
    // Unlike the deserializer, `parse_json` refuses duplicate keys, which are ambiguous.
    Ok((parse_json(json).map_err(invalid)?, after_value))
}

/// Removes the closing mark of a call, such as `</tool_call>`, from the start of the text after the call. Returns the text after
/// the mark.
fn strip_closing_mark<'t>(text: &'t str, mark: &str) -> Result<&'t str, InvalidReply> {
    text.trim_start().strip_prefix(mark).ok_or_else(incomplete_call)
}

fn incomplete_call() -> InvalidReply {
    InvalidReply("a call is incomplete".to_owned())
}
