//! The tokens of a user who has logged in.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use zeroize::{Zeroize, Zeroizing};

/// The tokens of a user, with the server, the resource and the issuer to which they are bound.
///
/// The tokens and the secret of the client are wiped from memory when the login is dropped.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StoredLogin {
    /// The URL of the server.
    pub(crate) server: String,
    /// The resource identifier of the server, for which the tokens were requested (RFC 8707).
    pub(crate) resource: String,
    /// The identifier of the issuer, as its metadata states it.
    pub(crate) issuer: String,
    /// The id of the client at this issuer.
    pub(crate) client_id: String,
    /// The secret that the issuer assigned when it registered the client for this login.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) client_secret: Option<String>,
    /// The name of the method by which the client authenticates itself, if the issuer registered the client for this login.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) client_authentication: Option<String>,
    /// The granted scopes.
    #[serde(default)]
    pub(crate) scopes: Vec<String>,
    pub(crate) access_token: String,
    /// When the access token expires, in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) expires_at: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) refresh_token: Option<String>,
}

impl StoredLogin {
    /// Parses a stored login.
    ///
    /// # Errors
    /// A message that does not quote the text, because the text contains secrets.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|_| "the stored login is invalid".to_owned())
    }

    pub(super) fn to_text(&self) -> Result<Zeroizing<String>, String> {
        let text = serde_json::to_string(self).map_err(|_| "the login cannot be serialised".to_owned())?;
        Ok(Zeroizing::new(text))
    }

    /// Returns the tokens, and the secret of the client.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &str> {
        let optional_secrets = self.refresh_token.iter().chain(&self.client_secret);
        [&self.access_token]
            .into_iter()
            .chain(optional_secrets)
            .map(String::as_str)
    }

    /// Sets the time for which the access token is valid from now on. `None` if this time is unknown.
    pub(crate) fn set_validity(&mut self, validity: Option<Duration>) {
        self.expires_at = validity.map(|validity| seconds_since_1970().saturating_add(validity.as_secs()));
    }

    /// Returns the time for which the access token is still valid: zero after it has expired, and `None` if the time is
    /// unknown.
    pub(crate) fn validity(&self) -> Option<Duration> {
        let expires_at = self.expires_at?;
        Some(Duration::from_secs(expires_at.saturating_sub(seconds_since_1970())))
    }
}

fn seconds_since_1970() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |duration| duration.as_secs())
}

impl Drop for StoredLogin {
    fn drop(&mut self) {
        self.access_token.zeroize();
        self.refresh_token.zeroize();
        self.client_secret.zeroize();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_login_is_parsed_again_and_the_error_of_an_invalid_one_has_no_secrets() {
        let mut login = StoredLogin {
            server: "https://h/mcp".to_owned(),
            resource: "https://h/mcp".to_owned(),
            issuer: "https://i".to_owned(),
            client_id: "c".to_owned(),
            client_secret: None,
            client_authentication: None,
            scopes: vec!["read".to_owned()],
            access_token: "access-token".to_owned(),
            expires_at: None,
            refresh_token: Some("refresh-token".to_owned()),
        };
        assert_eq!(login.validity(), None);
        login.set_validity(Some(Duration::from_secs(100)));
        let parsed = StoredLogin::parse(&login.to_text().unwrap()).unwrap();
        assert_eq!(parsed.refresh_token.as_deref(), Some("refresh-token"));
        assert!(parsed.validity().unwrap() > Duration::from_secs(90));
        let error = StoredLogin::parse("{\"access_token\": \"hunter22\"").err().unwrap();
        assert!(!error.contains("hunter22"));
    }
}
