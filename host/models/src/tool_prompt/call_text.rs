//! Calls in text, in the forms that models were trained to write.
//!
//! | form | models |
//! |---|---|
//! | `<tool_call>{"name": …, "arguments": {…}}</tool_call>` | Hermes, Qwen 2.5 and 3 |
//! | `<\|python_tag\|>{"name": …, "parameters": {…}}`, or this object as the complete response | Llama 3.1 and later |
//! | `<function=NAME>{…}</function>` | Llama 3.1 |
//! | `[TOOL_CALLS][{"name": …, "arguments": {…}}]`, `[TOOL_CALLS]NAME[ARGS]{…}` | Mistral |
//!
//! A call must start a line outside of code fences and reasoning, and only further calls may follow it. Anything else is text,
//! or an invalid response: a call that may be a quotation is never executed.

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
const END_MARKS: [&str; 5] = ["<|eom_id|>", "<|eot_id|>", "<|im_end|>", "<|end|>", "</s>"];

/// The keys under which models write the arguments.
const ARGUMENT_KEYS: [&str; 2] = ["arguments", "parameters"];

/// Reads a complete response. `is_tool` returns whether a name is that of a visible tool.
///
/// # Errors
/// A call is incomplete or invalid, or text follows it.
pub(super) fn read(text: &str, is_tool: impl Fn(&str) -> bool) -> Result<Reply, InvalidReply> {
    let text = without_end_mark(text);
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

/// Returns an earlier response, with its calls in the form that the instructions describe.
pub(super) fn reply_text(text: &str, calls: &[ToolCall]) -> String {
    let calls = calls
        .iter()
        .map(|call| format!("{CALL_START}{}{CALL_END}", call_json(call)));
    let text = Some(text.to_owned()).filter(|text| !text.is_empty());
    text.into_iter().chain(calls).collect::<Vec<_>>().join("\n")
}

/// Returns a text with a space in each mark, so that the text is not a call if the model repeats it.
pub(super) fn without_marks(text: &str) -> String {
    START_MARKS
        .iter()
        .chain([&CALL_END])
        .fold(text.to_owned(), |text, mark| {
            let (first, rest) = mark.split_at(1);
            text.replace(mark, &format!("{first} {rest}"))
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
    /// Classifies the start of a line.
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

    /// Continues with the next line, after this line of text.
    pub(super) fn end_line(&mut self, line: &str) {
        if line.trim_start().starts_with("```") && !self.is_in_reasoning {
            self.is_in_fence = !self.is_in_fence;
        }
        let (opened, closed) = (line.rfind("<think>"), line.rfind("</think>"));
        self.is_in_reasoning = match (opened, closed) {
            (None, None) => self.is_in_reasoning,
            (opened, closed) => opened > closed,
        };
    }
}

/// Returns the position of the first mark that starts a line.
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

fn without_end_mark(text: &str) -> &str {
    let trimmed = text.trim_end();
    let without = END_MARKS.iter().find_map(|end| trimmed.strip_suffix(end));
    without.unwrap_or(text)
}

/// Reads calls to the end of the text. The first one starts with a mark.
fn marked_calls(text: &str) -> Result<Vec<ParsedCall>, InvalidReply> {
    let mut calls = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        rest = if let Some(after) = rest.strip_prefix(CALL_START) {
            let (call, after) = json_prefix(after)?;
            calls.push(ParsedCall::read(&call, &ARGUMENT_KEYS)?);
            after_end_mark(after, CALL_END)?
        } else if let Some(after) = rest.strip_prefix(FUNCTION_START) {
            let (name, after) = after.split_once('>').ok_or_else(incomplete)?;
            let (arguments, after) = json_prefix(after)?;
            calls.push(ParsedCall::new(name.trim(), Some(&arguments))?);
            after_end_mark(after, FUNCTION_END)?
        } else if let Some(after) = rest.strip_prefix(MISTRAL_CALLS) {
            mistral_calls(after, &mut calls)?
        } else if let Some(after) = rest.strip_prefix(PYTHON_TAG) {
            calls.extend(object_calls(after)?);
            ""
        } else {
            return Err(InvalidReply("text follows a call".to_owned()));
        }
        .trim_start();
    }
    Ok(calls)
}

/// Reads a list of calls, or one call with its name before its arguments, in Mistral's form. Returns the rest of the text.
fn mistral_calls<'t>(text: &'t str, calls: &mut Vec<ParsedCall>) -> Result<&'t str, InvalidReply> {
    let text = text.trim_start();
    if text.starts_with('[') {
        let (list, rest) = json_prefix(text)?;
        for call in list.as_array().into_iter().flatten() {
            // An id of the model is not unique in a conversation.
            calls.push(ParsedCall::read(&without_id(call), &ARGUMENT_KEYS)?);
        }
        return Ok(rest);
    }
    let (name, after) = text.split_once(MISTRAL_ARGUMENTS).ok_or_else(incomplete)?;
    let (arguments, rest) = json_prefix(after)?;
    // An id may follow the name.
    let name = name.split('[').next().unwrap_or_default().trim();
    calls.push(ParsedCall::new(name, Some(&arguments))?);
    Ok(rest)
}

fn without_id(call: &Value) -> Value {
    let mut call = call.clone();
    if let Some(fields) = call.as_object_mut() {
        fields.shift_remove("id");
    }
    call
}

/// Reads calls to the end of the text: JSON objects that are separated by `;`.
fn object_calls(text: &str) -> Result<Vec<ParsedCall>, InvalidReply> {
    let mut calls = Vec::new();
    let mut rest = text;
    loop {
        let (call, after) = json_prefix(rest)?;
        calls.push(ParsedCall::read(&call, &ARGUMENT_KEYS)?);
        let after = after.trim_start();
        match after.strip_prefix(';') {
            _ if after.is_empty() => return Ok(calls),
            Some(next) => rest = next,
            None => return Err(InvalidReply("text follows a call".to_owned())),
        }
    }
}

/// Reads calls without marks. Returns `None` unless they are the complete response, and it has a key for arguments.
fn unmarked_calls(text: &str) -> Option<Vec<ParsedCall>> {
    let text = text.trim();
    let has_arguments = ARGUMENT_KEYS.iter().any(|key| text.contains(&format!("\"{key}\"")));
    (text.starts_with('{') && has_arguments).then(|| object_calls(text).ok())?
}

/// Reads the JSON value at the start of a text. Returns the value and the rest of the text.
fn json_prefix(text: &str) -> Result<(Value, &str), InvalidReply> {
    let invalid = |error: serde_json::Error| InvalidReply(format!("a call is not valid JSON: {error}"));
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>();
    values.next().ok_or_else(incomplete)?.map_err(invalid)?;
    let (json, rest) = text.split_at(values.byte_offset());
    // Unlike the deserializer, `parse_json` refuses duplicate keys, which are ambiguous.
    Ok((parse_json(json).map_err(invalid)?, rest))
}

/// Returns the text after the mark that ends a call.
fn after_end_mark<'t>(text: &'t str, mark: &str) -> Result<&'t str, InvalidReply> {
    text.trim_start().strip_prefix(mark).ok_or_else(incomplete)
}

fn incomplete() -> InvalidReply {
    InvalidReply("a call is incomplete".to_owned())
}
