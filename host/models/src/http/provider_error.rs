//! An error as a provider describes it, and whether it may be temporary.

use std::time::Duration;

use serde_json::Value;

use super::error_codes::{CONTEXT_CODES, CONTEXT_PHRASES, PERMANENT_CODES, TRANSIENT_CODES, TRANSIENT_PHRASES};
use super::failure::AttemptFailure;
use toolwit_agent::model::ModelError;

/// The fields of an error that explain it further than its message. `raw` is the answer of the server behind a gateway,
/// `failed_generation` the text that a model wrote instead of a call.
const DETAIL_POINTERS: [&str; 8] = [
    "/detail",
    "/details",
    "/errors",
    "/metadata/provider_name",
    "/metadata/raw",
    "/metadata/reasons",
    "/innererror",
    "/failed_generation",
];

/// An error as the provider describes it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ProviderError {
    message: String,
    /// The values of the fields `code`, `type` and `status` that are texts.
    codes: Vec<String>,
    /// The HTTP status in the field `code`. Some providers send an error with HTTP status 200 and the actual status here.
    status: Option<u16>,
    /// The wait that the error itself requests.
    retry_after: Option<Duration>,
}

/// The fields of which a JSON error has at least one.
const MESSAGE_FIELDS: [&str; 4] = ["error", "message", "detail", "msg"];

/// Returns the explanations of an error in addition to its message.
fn details(error: &Value) -> impl Iterator<Item = String> + '_ {
    DETAIL_POINTERS
        .iter()
        .filter_map(|pointer| match error.pointer(pointer)? {
            Value::Null => None,
            Value::String(text) => Some(text.trim().to_owned()),
            Value::Array(items) if items.is_empty() => None,
            other => Some(other.to_string()),
        })
}

/// Returns the wait in an entry `RetryInfo` of `details`, such as `"34.5s"`, which Gemini sends instead of a header.
fn retry_delay(error: &Value) -> Option<Duration> {
    let details = error.get("details")?.as_array()?;
    let delay = details.iter().find_map(|detail| detail.get("retryDelay")?.as_str())?;
    Duration::try_from_secs_f64(delay.strip_suffix('s')?.parse().ok()?).ok()
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
        let is_error = |json: &&Value| MESSAGE_FIELDS.iter().any(|key| json.get(key).is_some());
        match (json.as_ref().filter(is_error), body.trim_ascii()) {
            (Some(json), _) => Self::from_envelope(json),
            (None, []) => Self::from_text("it sent no explanation"),
            (None, text) => Self::from_text(String::from_utf8_lossy(text)),
        }
    }

    /// Parses an object that contains an error in the field `error`, or is an error itself. Explanations next to the field
    /// `error` are added to the message.
    pub(crate) fn from_envelope(envelope: &Value) -> Self {
        match envelope.get("error") {
            Some(error @ (Value::Object(_) | Value::String(_))) => {
                let mut error = Self::from_json(error);
                let outer_message = envelope.get("message").and_then(Value::as_str);
                error.add_details(outer_message.into_iter().map(str::to_owned));
                error.add_details(details(envelope));
                error
            }
            _ => Self::from_json(envelope),
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
        let number = |key: &str| match error.get(key) {
            Some(Value::Number(code)) => code.as_u64(),
            Some(Value::String(code)) => code.parse().ok(),
            _ => None,
        };
        // FastAPI, and with it many local servers, send the message in `detail`.
        let message = ["message", "detail", "msg", "error"].into_iter().find_map(text);
        let has_message = message.is_some();
        let status = ["code", "status", "status_code"].into_iter().find_map(number);
        let mut parsed = Self {
            message: message.unwrap_or_else(|| error.to_string()),
            codes: ["code", "type", "status"].into_iter().filter_map(text).collect(),
            status: status
                .and_then(|code| u16::try_from(code).ok())
                .filter(|status| (400..600).contains(status)),
            retry_after: retry_delay(error),
        };
        if has_message {
            parsed.add_details(details(error));
        }
        parsed
    }

    /// Adds explanations to the message, unless the message contains them.
    fn add_details(&mut self, details: impl IntoIterator<Item = String>) {
        for detail in details {
            if !detail.is_empty() && !self.message.contains(&detail) {
                self.message = format!("{}: {detail}", self.message);
            }
        }
    }

    fn from_text(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            codes: Vec::new(),
            status: None,
            retry_after: None,
        }
    }

    /// Converts the error to the failure of an attempt. `status` is the HTTP status of the response, and `retry_after` the
    /// wait that the provider requested.
    pub(crate) fn into_failure(self, status: u16, retry_after: Option<Duration>) -> AttemptFailure {
        let normalized = |code: &str| code.to_lowercase().replace(['_', '-', ' '], "");
        let has_code = |list: &[&str]| {
            let mut codes = self.codes.iter();
            codes.any(|code| list.contains(&normalized(code).as_str()))
        };
        let status = match status {
            200..300 => self.status.unwrap_or(status),
            status => status,
        };
        let retry_after = retry_after.or(self.retry_after);
        let is_unclassified = self.codes.is_empty() && self.status.is_none();
        let has_transient_code =
            status < 300 && (has_code(&TRANSIENT_CODES) || is_unclassified && self.has_transient_phrase());
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

    /// Returns whether the message of the error names a reason that may be temporary.
    fn has_transient_phrase(&self) -> bool {
        let message = self.message.to_lowercase();
        TRANSIENT_PHRASES.iter().any(|phrase| message.contains(phrase))
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
    fn an_error_without_a_code_is_classified_by_its_message() {
        assert!(
            classify(
                200,
                &json!({"error": {"message": "Provider disconnected unexpectedly"}})
            )
            .0
        );
        assert!(classify(200, &json!({"error": "Overloaded"})).0);
        assert!(
            classify(
                200,
                &json!({"error": {"message": "x", "type": "InternalServerError", "code": null}})
            )
            .0
        );
        assert!(!classify(200, &json!({"error": {"message": "no such tool"}})).0);
        assert!(!classify(400, &json!({"error": {"message": "overloaded"}})).0);
    }

    #[test]
    fn the_explanations_of_a_gateway_are_part_of_the_message() {
        let message = |body: Value| classify(400, &body).2;
        let raw = json!({"error": {"message": "Provider returned error", "code": 400,
            "metadata": {"provider_name": "Acme", "raw": "{\"error\": \"tools are not supported\"}"}}});
        assert_eq!(
            message(raw),
            "Provider returned error: Acme: {\"error\": \"tools are not supported\"}"
        );
        assert_eq!(
            message(json!({"error": "bad", "detail": "the field x"})),
            "bad: the field x"
        );
        assert_eq!(message(json!({"error": true, "message": "why"})), "why");
        assert_eq!(message(json!({"message": "why", "detail": "why"})), "why");
        let details = json!({"error": {"message": "invalid", "details": [{"field": "x"}]}});
        assert_eq!(message(details), r#"invalid: [{"field":"x"}]"#);
    }

    #[test]
    fn a_wait_in_the_body_of_an_error_is_respected() {
        let body = json!({"error": {"code": 429, "message": "quota", "status": "RESOURCE_EXHAUSTED",
            "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"}]}});
        let failure = |header| ProviderError::from_error_body(body.to_string().as_bytes()).into_failure(429, header);
        let wait = |failure| match failure {
            AttemptFailure::Transient { retry_after, .. } => retry_after,
            _ => None,
        };
        assert_eq!(wait(failure(None)), Some(Duration::from_millis(34_500)));
        let header = Some(Duration::from_secs(1));
        assert_eq!(wait(failure(header)), header);
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
}
