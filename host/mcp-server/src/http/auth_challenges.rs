//! The responses to requests that have no caller, because their token is missing or refused.

use http::StatusCode;
use http::header::{RETRY_AFTER, WWW_AUTHENTICATE};

use super::callers::Refusal;
use super::options::ProtectedResource;
use super::router::{MCP_PATH, PROTECTED_RESOURCE_PATH, Rejection, rejected};

/// Creates the responses to requests that have no caller. A challenge is the header `WWW-Authenticate` of such a response, which
/// describes how the client can be authorised (RFC 6750, RFC 9728).
pub(super) struct AuthChallenges {
    /// The URL of the server's protected resource metadata.
    metadata_url: Option<String>,
    /// The scopes that every access token of an authorization server needs.
    scopes: Vec<String>,
}

impl AuthChallenges {
    pub(super) fn new(resource: Option<&ProtectedResource>, scopes: Vec<String>) -> Self {
        let metadata_url = resource.map(|resource| {
            let base_url = resource.resource.trim_end_matches('/').trim_end_matches(MCP_PATH);
            format!("{base_url}{PROTECTED_RESOURCE_PATH}{MCP_PATH}")
        });
        Self { metadata_url, scopes }
    }

    /// Returns the response to a request that has no caller.
    pub(super) fn rejection(&self, refusal: &Refusal) -> Rejection {
        let unauthorized = |message: &str| rejected("token", StatusCode::UNAUTHORIZED, message);
        match refusal {
            Refusal::NoToken => {
                self.with_challenge(unauthorized("a valid bearer token is required"), None, &self.scopes)
            }
            Refusal::InvalidToken(why) => {
                let rejection = unauthorized(&format!("a valid bearer token is required: {why}"));
                self.with_challenge(rejection, Some("invalid_token"), &self.scopes)
            }
            Refusal::InsufficientScopes(scopes) => {
                let rejection = rejected(
                    "scope",
                    StatusCode::FORBIDDEN,
                    "the token does not have the required scopes",
                );
                self.with_challenge(rejection, Some("insufficient_scope"), scopes)
            }
            Refusal::NoRule => rejected("rule", StatusCode::FORBIDDEN, "no rule permits anything to this token"),
            Refusal::Unavailable => {
                let message = "the token cannot be checked: its issuer cannot be reached";
                rejected("issuer", StatusCode::SERVICE_UNAVAILABLE, message).with_header(RETRY_AFTER, "30")
            }
        }
    }

    fn with_challenge(&self, rejection: Rejection, error: Option<&str>, scopes: &[String]) -> Rejection {
        let mut parameters = Vec::new();
        parameters.extend(error.map(|error| format!("error=\"{error}\"")));
        if !scopes.is_empty() {
            parameters.push(format!("scope=\"{}\"", scopes.join(" ")));
        }
        let metadata_url = self.metadata_url.as_ref();
        parameters.extend(metadata_url.map(|url| format!("resource_metadata=\"{url}\"")));
        let challenge = if parameters.is_empty() {
            "Bearer".to_owned()
        } else {
            format!("Bearer {}", parameters.join(", "))
        };
        rejection.with_header(WWW_AUTHENTICATE, &challenge)
    }
}
