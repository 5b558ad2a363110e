//! The header `WWW-Authenticate`, in which a server states which token it requires. It is part of the response to a request
//! that the server refused, because the request had no token or the server did not accept its token.

use http::header::{HeaderMap, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};

/// The maximum length of a header, in bytes. A longer header is ignored.
const CHALLENGE_BYTES_MAX: usize = 8 << 10;

/// The requirements of a server that refused a request, because the request had no token or the server did not
/// accept its token.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Challenge {
    /// The scopes that the server requires for the request.
    pub(crate) scopes: Vec<String>,
    /// The address of the server's protected resource metadata (RFC 9728).
    pub(crate) resource_metadata: Option<String>,
    /// Whether the token is valid, but has too few scopes.
    pub(super) has_insufficient_scope: bool,
}

impl Challenge {
    /// Returns the challenge of a response with the status 401, or with the status 403 if its header states that the
    /// token has too few scopes. Returns `None` for all other responses. The challenge is empty if no header states
    /// requirements.
    pub(crate) fn from_response(status: StatusCode, headers: &HeaderMap) -> Option<Self> {
        if !matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            return None;
        }
        let values = headers.get_all(WWW_AUTHENTICATE).into_iter();
        let texts = values.filter_map(|value: &HeaderValue| value.to_str().ok());
        let texts = texts.filter(|text| text.len() <= CHALLENGE_BYTES_MAX);
        let challenge = texts.map(parse).find(|challenge| *challenge != Self::default());
        let challenge = challenge.unwrap_or_default();
        (status == StatusCode::UNAUTHORIZED || challenge.has_insufficient_scope).then_some(challenge)
    }
}

/// Parses the parameters of the scheme `Bearer`. The parameters of other schemes are ignored.
fn parse(text: &str) -> Challenge {
    let mut challenge = Challenge::default();
    let mut is_bearer = false;
    let mut unparsed = text;
    loop {
        unparsed = unparsed.trim_start_matches([' ', '\t', ',']);
        let end = unparsed.find([' ', '\t', ',', '=']).unwrap_or(unparsed.len());
        let (name, after) = unparsed.split_at(end);
        if name.is_empty() {
            return challenge;
        }
        let after = after.trim_start_matches([' ', '\t']);
        let Some(value) = after.strip_prefix('=') else {
            is_bearer = name.eq_ignore_ascii_case("bearer");
            unparsed = after;
            continue;
        };
        let (value, after) = parameter_value(value.trim_start_matches([' ', '\t']));
        unparsed = after;
        if !is_bearer {
            continue;
        }
        match name.to_ascii_lowercase().as_str() {
            "scope" => challenge.scopes = value.split_ascii_whitespace().map(str::to_owned).collect(),
            "resource_metadata" => challenge.resource_metadata = Some(value),
            "error" => challenge.has_insufficient_scope = value == "insufficient_scope",
            _ => {}
        }
    }
}

/// Returns the value at the start of a text, without quotes and escapes, and the text after the value.
fn parameter_value(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([' ', '\t', ',']).unwrap_or(text.len());
        let (value, after) = text.split_at(end);
        return (value.to_owned(), after);
    };
    let mut value = String::new();
    let mut chars = quoted.char_indices();
    while let Some((index, c)) = chars.next() {
        match c {
            '"' => return (value, &quoted[index + 1..]),
            '\\' => value.extend(chars.next().map(|(_, escaped)| escaped)),
            c => value.push(c),
        }
    }
    (value, "")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn only_parameters_of_bearer_are_read() {
        let challenge = parse(
            r#"Basic realm="scope=\"x\"", scope="basic", Bearer realm=a, error = "insufficient_scope",scope="read  write", resource_metadata="https://h/m?a=b,c""#,
        );
        assert_eq!(challenge.scopes, ["read", "write"]);
        assert_eq!(challenge.resource_metadata.as_deref(), Some("https://h/m?a=b,c"));
        assert!(challenge.has_insufficient_scope);
    }

    #[test]
    fn parsing_malformed_headers_terminates() {
        for text in [
            "",
            "=",
            "==,=",
            "Bearer",
            "Bearer =",
            "Bearer scope=\"",
            "Bearer scope=\"\\",
            ",,,",
            "\u{e9}",
        ] {
            assert!(!parse(text).has_insufficient_scope, "{text}");
        }
    }

    #[test]
    fn a_response_403_is_a_challenge_only_with_an_insufficient_scope() {
        let mut headers = HeaderMap::new();
        assert!(Challenge::from_response(StatusCode::UNAUTHORIZED, &headers).is_some());
        assert!(Challenge::from_response(StatusCode::FORBIDDEN, &headers).is_none());
        headers.insert(
            WWW_AUTHENTICATE,
            HeaderValue::from_static("Bearer error=insufficient_scope, scope=a"),
        );
        assert_eq!(
            Challenge::from_response(StatusCode::FORBIDDEN, &headers)
                .unwrap()
                .scopes,
            ["a"]
        );
        assert!(Challenge::from_response(StatusCode::OK, &headers).is_none());
    }
}
