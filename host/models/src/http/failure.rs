//! Why an attempt failed, and whether another one may help.

use std::error::Error as _;
use std::time::Duration;

use serde_json::Value;

use toolwit_agent::model::ModelError;

/// How much of a provider's words an error keeps, in characters.
const MESSAGE_CHARS_MAX: usize = 2_000;

/// What providers call errors that pass by themselves, where they send them with status 200.
const PASSING: [&str; 8] = [
    "api_error",
    "internal_server_error",
    "overloaded",
    "overloaded_error",
    "rate_limit_error",
    "rate_limit_exceeded",
    "server_error",
    "service_unavailable",
];

/// What providers send with status 429 and waiting does not mend.
const LASTING: [&str; 2] = ["billing_hard_limit_reached", "insufficient_quota"];

/// Why one attempt failed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum AttemptFailure {
    /// Another attempt may help.
    Passing {
        status: Option<u16>,
        message: String,
        retry_after: Option<Duration>,
    },
    /// The time is up; another attempt would take as long, and the provider may bill both.
    TimedOut { message: String },
    /// Another attempt would fail as well.
    Lasting(ModelError),
}

impl AttemptFailure {
    pub(crate) fn malformed(message: impl Into<String>) -> Self {
        Self::Lasting(ModelError::Malformed {
            message: message.into(),
        })
    }

    /// Tells apart what happened on the way. The URL is left out: it may carry a key.
    pub(super) fn in_transport(error: reqwest::Error, timeout: Duration) -> Self {
        if error.is_timeout() && !error.is_connect() {
            return Self::TimedOut {
                message: format!("no whole answer within {} ms", timeout.as_millis()),
            };
        }
        let error = error.without_url();
        let mut message = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            message = format!("{message}: {cause}");
            source = cause.source();
        }
        Self::Passing {
            status: None,
            message,
            retry_after: None,
        }
    }

    /// Ends the request with this failure of its last attempt.
    pub(super) fn after(self, attempts: u32) -> ModelError {
        match self {
            Self::Passing { status, message, .. } => ModelError::Unavailable {
                attempts,
                message,
                status,
            },
            Self::TimedOut { message } => ModelError::Unavailable {
                attempts,
                message,
                status: None,
            },
            Self::Lasting(error) => error,
        }
    }

    /// Makes the provider's words fit to be shown: without the key, without control characters, and not too long.
    pub(super) fn cleaned(mut self, redact: impl Fn(&str) -> String) -> Self {
        let text = match &mut self {
            Self::Passing { message, .. } | Self::TimedOut { message } => message,
            Self::Lasting(ModelError::Refused { message, .. } | ModelError::Malformed { message }) => message,
            Self::Lasting(_) => return self,
        };
        let printable = redact(text).replace(char::is_control, " ");
        *text = match printable.char_indices().nth(MESSAGE_CHARS_MAX) {
            Some((end, _)) => format!("{}…", &printable[..end]),
            None => printable,
        };
        self
    }
}

/// An error in a provider's own words.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ProviderError {
    message: String,
    /// What kind of error it is, in the words of `code` and `type`.
    words: Vec<String>,
    /// The status that the body tells, which some send with HTTP status 200.
    status: Option<u16>,
}

impl ProviderError {
    /// Reads the body of an answer that has an error's status: `{"error": …}`, `{"message"}`, `{"detail"}` or no JSON.
    pub(super) fn in_error_body(body: &[u8]) -> Self {
        let json = serde_json::from_slice::<Value>(body).ok();
        let error = json.as_ref().and_then(|json| match json.get("error") {
            Some(error) if !error.is_null() => Some(error),
            _ => ["message", "detail"]
                .iter()
                .any(|key| json.get(key).is_some())
                .then_some(json),
        });
        match (error, body.trim_ascii()) {
            (Some(error), _) => Self::of(error),
            (None, []) => Self::saying("it sent no explanation"),
            (None, text) => Self::saying(String::from_utf8_lossy(text)),
        }
    }

    /// Reads an error: `{"message", "type", "code"}` or a text.
    pub(crate) fn of(error: &Value) -> Self {
        if let Value::String(message) = error {
            return Self::saying(message);
        }
        let text = |key: &str| match error.get(key) {
            Some(Value::String(text)) => Some(text.clone()),
            _ => None,
        };
        let number = match error.get("code") {
            Some(Value::Number(code)) => code.as_u64(),
            Some(Value::String(code)) => code.parse().ok(),
            _ => None,
        };
        Self {
            message: text("message")
                .or_else(|| text("detail"))
                .unwrap_or_else(|| error.to_string()),
            words: ["code", "type"].into_iter().filter_map(text).collect(),
            status: number
                .and_then(|code| u16::try_from(code).ok())
                .filter(|status| (400..600).contains(status)),
        }
    }

    fn saying(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            words: Vec::new(),
            status: None,
        }
    }

    /// Decides what follows from an error that came with this HTTP status.
    pub(crate) fn failure(self, status: u16, retry_after: Option<Duration>) -> AttemptFailure {
        let is = |list: &[&str]| self.words.iter().any(|word| list.contains(&word.as_str()));
        let told = match status {
            200..300 => self.status.unwrap_or(status),
            status => status,
        };
        let passes = (passes(told) || (told < 300 && is(&PASSING))) && !is(&LASTING);
        match passes {
            true => AttemptFailure::Passing {
                status: Some(told),
                message: format!("status {told}: {}", self.message),
                retry_after,
            },
            false => AttemptFailure::Lasting(ModelError::Refused {
                status: told,
                message: self.message,
            }),
        }
    }
}

/// Whether an error with this status may pass by itself: a request that met another one, too many of them, or a failure
/// of the provider's that is not "never".
fn passes(status: u16) -> bool {
    matches!(status, 408 | 409 | 425 | 429 | 500 | 502..=504 | 506..=599)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn outcome(status: u16, body: &Value) -> (bool, Option<u16>, String) {
        let error = ProviderError::in_error_body(body.to_string().as_bytes());
        match error.failure(status, None) {
            AttemptFailure::Passing { status, message, .. } => (true, status, message),
            AttemptFailure::Lasting(ModelError::Refused { status, message }) => (false, Some(status), message),
            _ => (false, None, String::new()),
        }
    }

    // attack: F5
    #[test]
    fn only_what_may_pass_is_tried_again() {
        let body = json!({"error": {"message": "why"}});
        for status in [408, 409, 425, 429, 500, 502, 503, 504, 529] {
            assert_eq!(
                outcome(status, &body),
                (true, Some(status), format!("status {status}: why"))
            );
        }
        for status in [400, 401, 402, 403, 404, 413, 422, 501, 505] {
            assert_eq!(outcome(status, &body), (false, Some(status), "why".to_owned()));
        }
        let quota = json!({"error": {"message": "pay", "type": "insufficient_quota", "code": "insufficient_quota"}});
        assert_eq!(outcome(429, &quota), (false, Some(429), "pay".to_owned()));
    }

    // attack: F5
    #[test]
    fn an_error_with_status_200_is_judged_by_its_code() {
        let told = |code: Value| outcome(200, &json!({"error": {"message": "why", "code": code}}));
        assert!(told(json!(429)).0 && told(json!("503")).0 && told(json!("rate_limit_exceeded")).0);
        assert_eq!(told(json!(401)), (false, Some(401), "why".to_owned()));
        assert_eq!(told(json!("invalid_api_key")), (false, Some(200), "why".to_owned()));
        assert_eq!(told(json!(7)).1, Some(200));
    }

    #[test]
    fn errors_are_read_in_every_shape_that_servers_send() {
        let message = |body: &str| ProviderError::in_error_body(body.as_bytes()).message;
        assert_eq!(
            message(r#"{"error": {"message": "a", "type": "x", "param": null}}"#),
            "a"
        );
        assert_eq!(message(r#"{"error": "model not found"}"#), "model not found");
        assert_eq!(message(r#"{"object": "error", "message": "b", "code": 404}"#), "b");
        assert_eq!(message(r#"{"detail": "Not Found"}"#), "Not Found");
        assert_eq!(message("<html>Bad Gateway</html>\n"), "<html>Bad Gateway</html>");
        assert_eq!(message(""), "it sent no explanation");
        assert_eq!(
            message(r#"{"detail": [{"loc": ["body"]}]}"#),
            r#"{"detail":[{"loc":["body"]}]}"#
        );
    }

    #[test]
    fn words_are_cleaned_before_they_are_shown() {
        let long = format!("key sk-1 \u{1b}[31m{}", "x".repeat(3_000));
        let cleaned = AttemptFailure::malformed(long).cleaned(|text| text.replace("sk-1", "[redacted]"));
        let AttemptFailure::Lasting(ModelError::Malformed { message }) = cleaned else {
            unreachable!("the kind stays");
        };
        assert!(message.starts_with("key [redacted]  [31mxx") && message.ends_with("x…"));
        assert_eq!(message.chars().count(), MESSAGE_CHARS_MAX + 1);
    }
}
