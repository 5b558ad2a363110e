//! The failure of one attempt to send a request, and whether a retry may help.

use std::error::Error as _;
use std::time::Duration;

use serde_json::Value;

use toolwit_agent::model::ModelError;

/// The longest provider message in an error, in characters.
const MESSAGE_CHARS_MAX: usize = 2_000;

/// Error codes of transient failures. They are needed for providers that send errors with HTTP status 200.
const TRANSIENT_CODES: [&str; 12] = [
    "DEADLINE_EXCEEDED",
    "INTERNAL",
    "RESOURCE_EXHAUSTED",
    "UNAVAILABLE",
    "api_error",
    "internal_server_error",
    "overloaded",
    "overloaded_error",
    "rate_limit_error",
    "rate_limit_exceeded",
    "server_error",
    "service_unavailable",
];

/// Error codes of permanent failures. They are needed for providers that send them with status 429, which otherwise stands for a
/// rate limit.
const PERMANENT_CODES: [&str; 2] = ["billing_hard_limit_reached", "insufficient_quota"];

/// Error codes for requests that do not fit into the context window of the model.
const CONTEXT_CODES: [&str; 3] = [
    "context_length_exceeded",
    "exceed_context_size_error",
    "model_max_prompt_tokens_exceeded",
];

/// Lower-case phrases in the messages of errors for requests that do not fit into the context window. They are needed for
/// providers that send the same code for all invalid requests. The phrases are, in this order, from Anthropic; from vLLM, Mistral,
/// DeepSeek and OpenRouter; from Anthropic with thinking; from Gemini; and from llama.cpp.
const CONTEXT_PHRASES: [&str; 5] = [
    "prompt is too long",
    "maximum context length",
    "exceed context limit",
    "exceeds the maximum number of tokens allowed",
    "exceeds the available context size",
];

/// The reason why one attempt of a request failed.
#[derive(Clone, Debug, PartialEq)]
pub enum AttemptFailure {
    /// A retry may help.
    Transient {
        status: Option<u16>,
        message: String,
        /// The wait that the provider requested.
        retry_after: Option<Duration>,
    },
    /// The response did not arrive in time. There is no retry: it would take as long, and the provider may bill both attempts.
    TimedOut { message: String },
    /// A retry would fail too.
    Permanent(ModelError),
}

impl AttemptFailure {
    /// Returns the failure for data that did not arrive within a time limit.
    pub(super) fn timed_out(expected: &str, limit: Duration) -> Self {
        Self::TimedOut {
            message: format!("no {expected} within {} ms", limit.as_millis()),
        }
    }

    /// Returns the failure for a response that ended before it was complete.
    pub(crate) fn interrupted() -> Self {
        Self::Transient {
            status: None,
            message: "the response ended before it was complete".to_owned(),
            retry_after: None,
        }
    }

    /// Returns the failure for a body that is not a valid response, or exceeds a limit.
    pub(crate) fn malformed(message: impl Into<String>) -> Self {
        Self::Permanent(ModelError::Malformed {
            message: message.into(),
        })
    }

    /// Returns the failure for a transport error. Its message does not contain the URL, which may contain a key.
    pub(super) fn from_transport_error(error: reqwest::Error) -> Self {
        let error = error.without_url();
        let mut message = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            message = format!("{message}: {cause}");
            source = cause.source();
        }
        Self::Transient {
            status: None,
            message,
            retry_after: None,
        }
    }

    /// Converts the failure of the last attempt to the error of the request.
    pub(super) fn into_error(self, attempts: u32) -> ModelError {
        match self {
            Self::Transient { status, message, .. } => ModelError::Unavailable {
                attempts,
                message,
                status,
            },
            Self::TimedOut { message } => ModelError::Unavailable {
                attempts,
                message,
                status: None,
            },
            Self::Permanent(error) => error,
        }
    }

    /// Cleans a message that can contain text of the provider: applies `redact`, replaces control characters and truncates the
    /// message.
    pub(crate) fn cleaned(mut self, redact: impl Fn(&str) -> String) -> Self {
        let text = match &mut self {
            Self::Transient { message, .. } | Self::TimedOut { message } => message,
            Self::Permanent(
                ModelError::Refused { message, .. }
                | ModelError::ContextExceeded { message, .. }
                | ModelError::Malformed { message },
            ) => message,
            Self::Permanent(_) => return self,
        };
        let printable = redact(text).replace(char::is_control, " ");
        *text = match printable.char_indices().nth(MESSAGE_CHARS_MAX) {
            Some((end, _)) => format!("{}…", &printable[..end]),
            None => printable,
        };
        self
    }
}

/// An error as the provider describes it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ProviderError {
    message: String,
    /// The values of the fields `code`, `type` and `status` that are texts.
    codes: Vec<String>,
    /// The HTTP status in the field `code`. Some providers send an error with HTTP status 200 and the actual status here.
    status: Option<u16>,
}

impl ProviderError {
    /// Parses the body of an error response: an object with `error`, `message` or `detail`, an array that starts with such an
    /// object, or any other text.
    pub(super) fn from_error_body(body: &[u8]) -> Self {
        let json = serde_json::from_slice::<Value>(body).ok();
        // Gemini answers a request for a stream with an array that contains the error.
        let json = match json {
            Some(Value::Array(items)) => items.into_iter().next(),
            json => json,
        };
        let error = json.as_ref().and_then(|json| match json.get("error") {
            Some(error) if !error.is_null() => Some(error),
            _ => ["message", "detail"]
                .iter()
                .any(|key| json.get(key).is_some())
                .then_some(json),
        });
        match (error, body.trim_ascii()) {
            (Some(error), _) => Self::from_json(error),
            (None, []) => Self::from_text("it sent no explanation"),
            (None, text) => Self::from_text(String::from_utf8_lossy(text)),
        }
    }

    /// Parses an error: an object with some of the fields `message`, `detail`, `code`, `type` and `status`, or a text.
    pub(crate) fn from_json(error: &Value) -> Self {
        if let Value::String(message) = error {
            return Self::from_text(message);
        }
        let text = |key: &str| match error.get(key) {
            Some(Value::String(text)) => Some(text.clone()),
            _ => None,
        };
        let numeric_code = match error.get("code") {
            Some(Value::Number(code)) => code.as_u64(),
            Some(Value::String(code)) => code.parse().ok(),
            _ => None,
        };
        Self {
            message: text("message")
                .or_else(|| text("detail"))
                .unwrap_or_else(|| error.to_string()),
            codes: ["code", "type", "status"].into_iter().filter_map(text).collect(),
            status: numeric_code
                .and_then(|code| u16::try_from(code).ok())
                .filter(|status| (400..600).contains(status)),
        }
    }

    fn from_text(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            codes: Vec::new(),
            status: None,
        }
    }

    /// Converts the error to the failure of an attempt. `status` is the HTTP status of the response, and `retry_after` the
    /// wait that the provider requested.
    pub(crate) fn into_failure(self, status: u16, retry_after: Option<Duration>) -> AttemptFailure {
        let has_code = |list: &[&str]| self.codes.iter().any(|code| list.contains(&code.as_str()));
        let status = match status {
            200..300 => self.status.unwrap_or(status),
            status => status,
        };
        let has_transient_code = status < 300 && has_code(&TRANSIENT_CODES);
        if (is_transient(status) || has_transient_code) && !has_code(&PERMANENT_CODES) {
            AttemptFailure::Transient {
                status: Some(status),
                message: format!("status {status}: {}", self.message),
                retry_after,
            }
        } else if self.exceeds_context(status) {
            AttemptFailure::Permanent(ModelError::ContextExceeded {
                status,
                message: self.message,
            })
        } else {
            AttemptFailure::Permanent(ModelError::Refused {
                status,
                message: self.message,
            })
        }
    }

    /// Returns whether the request did not fit into the context window of the model.
    fn exceeds_context(&self, status: u16) -> bool {
        if self.codes.iter().any(|code| CONTEXT_CODES.contains(&code.as_str())) {
            return true;
        }
        let message = self.message.to_lowercase();
        matches!(status, 200 | 400 | 413 | 422) && CONTEXT_PHRASES.iter().any(|phrase| message.contains(phrase))
    }
}

/// Returns whether an error with this status may be temporary: a timeout (408), a conflict (409), an early request (425), a
/// rate limit (429), or a server error other than 501 and 505.
fn is_transient(status: u16) -> bool {
    matches!(status, 408 | 409 | 425 | 429 | 500 | 502..=504 | 506..=599)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns whether the failure for an error response is transient, with its status and message.
    fn classify(status: u16, body: &Value) -> (bool, Option<u16>, String) {
        let error = ProviderError::from_error_body(body.to_string().as_bytes());
        match error.into_failure(status, None) {
            AttemptFailure::Transient { status, message, .. } => (true, status, message),
            AttemptFailure::Permanent(ModelError::Refused { status, message }) => (false, Some(status), message),
            _ => (false, None, String::new()),
        }
    }

    // attack: F5
    #[test]
    fn statuses_and_codes_are_classified_as_transient_or_permanent() {
        let body = json!({"error": {"message": "why"}});
        for status in [408, 409, 425, 429, 500, 502, 503, 504, 529] {
            assert_eq!(
                classify(status, &body),
                (true, Some(status), format!("status {status}: why"))
            );
        }
        for status in [400, 401, 402, 403, 404, 413, 422, 501, 505] {
            assert_eq!(classify(status, &body), (false, Some(status), "why".to_owned()));
        }
        let quota = json!({"error": {"message": "pay", "type": "insufficient_quota", "code": "insufficient_quota"}});
        assert_eq!(classify(429, &quota), (false, Some(429), "pay".to_owned()));
    }

    #[test]
    fn requests_that_exceed_the_context_are_recognized() {
        let failure_for = |status: u16, error: Value| {
            let body = json!({"error": error}).to_string();
            ProviderError::from_error_body(body.as_bytes()).into_failure(status, None)
        };
        let context_errors = [
            (
                400,
                json!({"message": "why", "type": "invalid_request_error", "code": "context_length_exceeded"}),
            ),
            (
                200,
                json!({"message": "Your input exceeds the context window.", "code": "context_length_exceeded"}),
            ),
            (
                400,
                json!({"type": "invalid_request_error", "message": "prompt is too long: 213462 tokens > 200000 maximum"}),
            ),
            (
                400,
                json!({"code": 400, "status": "INVALID_ARGUMENT",
                "message": "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."}),
            ),
            (
                400,
                json!({"code": 400, "type": "exceed_context_size_error", "message": "too large", "n_ctx": 4096}),
            ),
            (
                400,
                json!({"message": "This model's maximum context length is 8192 tokens."}),
            ),
        ];
        for (status, error) in context_errors {
            let failure = failure_for(status, error.clone());
            let exceeds_context = matches!(failure, AttemptFailure::Permanent(ModelError::ContextExceeded { .. }));
            assert!(exceeds_context, "{error}");
        }
        let other_errors = [
            (400, json!({"message": "the name of a tool is too long"})),
            (401, json!({"message": "maximum context length"})),
        ];
        for (status, error) in other_errors {
            let failure = failure_for(status, error);
            assert!(
                matches!(failure, AttemptFailure::Permanent(ModelError::Refused { .. })),
                "{failure:?}"
            );
        }
    }

    // attack: F5
    #[test]
    fn an_error_with_status_200_is_classified_by_its_code() {
        let with_code = |code: Value| classify(200, &json!({"error": {"message": "why", "code": code}}));
        assert!(with_code(json!(429)).0 && with_code(json!("503")).0 && with_code(json!("rate_limit_exceeded")).0);
        assert_eq!(with_code(json!(401)), (false, Some(401), "why".to_owned()));
        assert_eq!(
            with_code(json!("invalid_api_key")),
            (false, Some(200), "why".to_owned())
        );
        assert_eq!(with_code(json!(7)).1, Some(200));
    }

    #[test]
    fn errors_are_parsed_in_every_format_that_servers_send() {
        let message = |body: &str| ProviderError::from_error_body(body.as_bytes()).message;
        assert_eq!(
            message(r#"{"error": {"message": "a", "type": "x", "param": null}}"#),
            "a"
        );
        assert_eq!(message(r#"{"error": "model not found"}"#), "model not found");
        assert_eq!(message(r#"{"object": "error", "message": "b", "code": 404}"#), "b");
        assert_eq!(message(r#"{"detail": "Not Found"}"#), "Not Found");
        assert_eq!(message(r#"[{"error": {"code": 400, "message": "c"}}]"#), "c");
        assert_eq!(message("<html>Bad Gateway</html>\n"), "<html>Bad Gateway</html>");
        assert_eq!(message(""), "it sent no explanation");
        assert_eq!(
            message(r#"{"detail": [{"loc": ["body"]}]}"#),
            r#"{"detail":[{"loc":["body"]}]}"#
        );
    }

    #[test]
    fn provider_messages_are_redacted_and_truncated() {
        let long = format!("key sk-1 \u{1b}[31m{}", "x".repeat(3_000));
        let cleaned = AttemptFailure::malformed(long).cleaned(|text| text.replace("sk-1", "[redacted]"));
        let AttemptFailure::Permanent(ModelError::Malformed { message }) = cleaned else {
            unreachable!("`cleaned` changes only the message");
        };
        assert!(message.starts_with("key [redacted]  [31mxx") && message.ends_with("x…"));
        assert_eq!(message.chars().count(), MESSAGE_CHARS_MAX + 1);
    }
}
