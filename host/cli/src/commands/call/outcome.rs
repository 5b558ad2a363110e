//! The outcome of a call, and its text and JSON forms.

use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};

use crate::exit::Exit;
use crate::failure::Failure;
use crate::hint::with_fixing_hint;
use crate::output::conversation;
use crate::output::page::{FAINT, Page, size};
use crate::output::printer::{Format, Printer};
use toolwit::tool::{CallUsage, DeniedAccess, ToolError, ToolId, ToolResult};
use toolwit::{Error, ErrorKind, Phase};

/// Maximum length of the message of a tool's error, in characters. If the result has a value, the details of the error
/// contain the full value.
const MESSAGE_CHARS_MAX: usize = 500;

/// The outcome of a call: a result, or an error of the tool or of the host.
pub(super) enum CallOutcome {
    Result(ToolResult),
    /// An error of the tool, with its result; or an error of the host, without a result.
    Error(Error, Option<ToolResult>),
}

/// The resource usage of a call, in the form that is printed.
#[derive(Serialize)]
pub(super) struct UsageDocument {
    fuel: u64,
    wall_ms: f64,
    memory_bytes: u64,
}

impl CallOutcome {
    pub(super) fn of(id: &ToolId, result: Result<ToolResult, ToolError>) -> Self {
        match result {
            Ok(result) if result.is_error() => Self::Error(tool_error(id, &result), Some(result)),
            Ok(result) => Self::Result(result),
            Err(error) => Self::Error(error.into(), None),
        }
    }

    /// Creates the outcome of a call that was not made.
    pub(super) fn not_called(error: Error) -> Self {
        Self::Error(error, None)
    }

    pub(super) fn exit(&self) -> Exit {
        match self {
            Self::Result(_) => Exit::Success,
            Self::Error(error, _) => Exit::of(error),
        }
    }

    fn error(&self) -> Option<&Error> {
        match self {
            Self::Result(_) => None,
            Self::Error(error, _) => Some(error),
        }
    }

    fn tool_result(&self) -> Option<&ToolResult> {
        match self {
            Self::Result(result) => Some(result),
            Self::Error(_, result) => result.as_ref(),
        }
    }

    /// Returns the accesses that the host denied during the call.
    fn denied_accesses(&self) -> &[DeniedAccess] {
        match self {
            Self::Result(result) | Self::Error(_, Some(result)) => &result.denied,
            Self::Error(error, None) => &error.denied,
        }
    }

    /// Returns the JSON document: `{"ok": true, "result", "text"?, "artifacts", "usage"}` or `{"ok": false, "error"}`. An error of
    /// the tool also has `usage`. If the host denied an access, the document also has `denied`.
    pub(super) fn document(&self) -> Value {
        let usage = self
            .tool_result()
            .and_then(|result| result.usage)
            .map(UsageDocument::from);
        let mut document = match self {
            Self::Result(result) => json!({
                "ok": true,
                "result": value_or_text(result),
                "text": result.value.as_ref().map(|value| text_beside(result, value)).filter(|text| !text.is_empty()),
                "artifacts": result.artifacts,
                "usage": usage,
            }),
            Self::Error(error, None) => json!({ "ok": false, "error": with_fixing_hint(error).as_ref() }),
            Self::Error(error, Some(_)) => json!({ "ok": false, "error": error, "usage": usage }),
        };
        if !self.denied_accesses().is_empty() {
            document["denied"] = json!(self.denied_accesses());
        }
        document
    }

    /// Prints the outcome. A result goes to standard output, and so does an error with `--json`. Other errors, messages to
    /// the user, denied accesses, guest output and resource usage go to standard error.
    pub(super) fn print(&self, printer: Printer) -> Result<(), Failure> {
        self.print_diagnostics(printer);
        printer.print_denied_accesses(self.denied_accesses());
        if printer.format() == Format::Json {
            return printer.document(&self.document());
        }
        match self {
            Self::Result(result) => match value_or_text(result) {
                value if has_text_beside(result, &value) => {
                    printer.untrusted_text(text_beside(result, &value))?;
                    printer.value(&value)
                }
                Value::String(text) => printer.untrusted_text(text.strip_suffix('\n').unwrap_or(&text)),
                other => printer.value(&other),
            },
            Self::Error(error, _) => {
                printer.print_error(error);
                Ok(())
            }
        }
    }

    fn print_diagnostics(&self, printer: Printer) {
        let result = self.tool_result();
        if let Some(text) = result.and_then(ToolResult::user_text) {
            let mut page = Page::new();
            conversation::write_message(&mut page, text);
            printer.message(&page);
        }
        let mut page = Page::new();
        let log = result.and_then(|result| result.log.as_ref());
        if let Some(log) = log.or(self.error().and_then(|error| error.log.as_ref())) {
            page.styled(FAINT, "guest output:").end().block(2, FAINT, log);
        }
        if let Some(usage) = result.and_then(|result| result.usage).map(UsageDocument::from) {
            page.styled(FAINT, usage.to_string()).end();
        }
        printer.detail(&page);
    }
}

/// Converts a result that is an error of the tool. A long message is shortened.
fn tool_error(id: &ToolId, result: &ToolResult) -> Error {
    let content = result.content();
    let message = match content.char_indices().nth(MESSAGE_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &content[..end]),
        None => content,
    };
    let mut error = Error::new(ErrorKind::Tool, Phase::Execute, message)
        .with_plugin(id.owner())
        .with_tool(id.as_str());
    if let Some(details) = &result.value {
        error = error.with_details(details.clone());
    }
    error
}

/// Returns whether the text of a result says more than its value, as that of an MCP server can.
fn has_text_beside(result: &ToolResult, value: &Value) -> bool {
    !value.is_string() && !text_beside(result, value).is_empty()
}

/// Returns the text of a result before the value, which follows the text after an empty line.
fn text_beside<'r>(result: &'r ToolResult, value: &Value) -> &'r str {
    let text = result.for_llm.strip_suffix(&value.to_string());
    text.and_then(|text| text.strip_suffix("\n\n")).unwrap_or_default()
}

/// Returns the value of a result, or its text if it has no value.
fn value_or_text(result: &ToolResult) -> Value {
    result
        .value
        .clone()
        .unwrap_or_else(|| Value::String(result.for_llm.clone()))
}

impl From<CallUsage> for UsageDocument {
    fn from(usage: CallUsage) -> Self {
        Self {
            fuel: usage.fuel,
            wall_ms: milliseconds(usage.wall),
            memory_bytes: usage.memory_bytes,
        }
    }
}

/// Returns milliseconds with microsecond precision, because many calls take less than one millisecond.
fn milliseconds(wall: Duration) -> f64 {
    (wall.as_secs_f64() * 1e6).round() / 1e3
}

impl std::fmt::Display for UsageDocument {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let memory = size(self.memory_bytes);
        write!(f, "{} fuel, {} ms, {memory} of memory", self.fuel, self.wall_ms)
    }
}
