//! Token requests to an issuer, and the tokens in its responses.

use std::fmt;
use std::time::Duration;

use http::HeaderValue;
use serde::Deserialize;
use tokio::time::Instant;
use url::form_urlencoded::{self, Serializer};
use zeroize::Zeroizing;

use super::authorization_server::{ClientAuthentication, TokenEndpoint};
use super::http_request;
use crate::value::Redaction;

/// A token is renewed this long before it expires, so that it is still valid when it arrives at the server. A token that is
/// valid for less than a minute is renewed when half of its validity has passed.
const EXPIRY_MARGIN: Duration = Duration::from_secs(30);

/// The maximum time for which a token is used. A token that is valid for longer is renewed after this time.
const VALIDITY_MAX: Duration = Duration::from_hours(24);

/// The maximum length of an access token, in bytes.
const TOKEN_BYTES_MAX: usize = 16 << 10;

/// The response to a token request.
#[derive(Deserialize)]
struct TokenResponse {
    access_token: String,
    token_type: String,
    expires_in: Option<u64>,
    refresh_token: Option<String>,
    scope: Option<String>,
}

/// The response of an issuer that refuses a token request.
#[derive(Default, Deserialize)]
struct TokenRefusal {
    #[serde(default)]
    error: String,
}

/// The id of a client at an issuer, and its secret.
#[derive(Clone)]
pub(crate) struct ClientIdentity {
    pub(crate) id: String,
    pub(crate) secret: Option<Zeroizing<String>>,
}

/// The parameters of a form that is posted to an issuer.
#[derive(Default)]
pub(crate) struct Form(Vec<(&'static str, Zeroizing<String>)>);

impl Form {
    /// Creates the form of a token request with a grant type, such as `refresh_token`.
    pub(crate) fn grant(grant_type: &str) -> Self {
        Self::default().with("grant_type", grant_type)
    }

    /// Adds a parameter.
    pub(crate) fn with(mut self, name: &'static str, value: &str) -> Self {
        self.0.push((name, Zeroizing::new(value.to_owned())));
        self
    }

    fn encode(&self) -> String {
        let mut form = Serializer::new(String::new());
        form.extend_pairs(self.0.iter().map(|(name, value)| (name, value.as_str())));
        form.finish()
    }
}

/// The tokens in the response to a token request.
pub(crate) struct IssuedTokens {
    /// The access token, or the reason why it cannot be used.
    pub(crate) access_token: Result<Zeroizing<String>, String>,
    /// The time for which the access token is valid, if the issuer states it.
    pub(crate) validity: Option<Duration>,
    pub(crate) refresh_token: Option<Zeroizing<String>>,
    /// The granted scopes. `None` if the issuer does not state them: it granted the requested scopes.
    pub(crate) scopes: Option<Vec<String>>,
}

/// The reason why a token request returned no tokens.
#[derive(Debug)]
pub(crate) enum TokenRequestError {
    /// The issuer refused the request with this error code. The code is `no reason` if the response has no code.
    Refused(String),
    /// The request failed, or the response has no tokens.
    Failed(String),
}

impl fmt::Display for TokenRequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(code) => write!(f, "the issuer refused with `{code}`"),
            Self::Failed(why) => f.write_str(why),
        }
    }
}

/// An access token that is in use.
pub(super) struct AccessToken {
    pub(super) header: HeaderValue,
    /// The time from which on the token is renewed before it is used.
    renew_at: Instant,
}

impl AccessToken {
    /// Creates the header of a token that is valid for the time `validity`. Without `validity`, the token is renewed after
    /// a day.
    ///
    /// # Errors
    /// If the token has characters that are invalid in a header.
    pub(super) fn new(token: &str, validity: Option<Duration>) -> Result<Self, String> {
        let header = Zeroizing::new(format!("Bearer {token}"));
        let header = HeaderValue::from_str(&header);
        let mut header = header.map_err(|_| "the access token has invalid characters".to_owned())?;
        header.set_sensitive(true);
        let validity = validity.map_or(VALIDITY_MAX, |validity| validity.min(VALIDITY_MAX));
        let margin = EXPIRY_MARGIN.min(validity / 2);
        Ok(Self {
            header,
            renew_at: Instant::now() + validity - margin,
        })
    }

    /// Returns whether the token can be used without a renewal.
    pub(super) fn is_fresh(&self) -> bool {
        self.renew_at > Instant::now()
    }
}

impl ClientIdentity {
    /// Posts a form with the authentication of the client. Returns whether the status is a success, and the body of the
    /// response.
    ///
    /// # Errors
    /// The reason why there is no response.
    pub(crate) async fn post(
        &self,
        endpoint: &TokenEndpoint,
        mut form: Form,
        redaction: &Redaction,
    ) -> Result<(bool, Zeroizing<Vec<u8>>), String> {
        let mut basic_credentials = None;
        match &self.secret {
            Some(secret) if endpoint.authentication == ClientAuthentication::Basic => {
                basic_credentials = Some((form_encoded(&self.id), form_encoded(secret)));
            }
            secret => {
                form = form.with("client_id", &self.id);
                let secret = secret
                    .as_ref()
                    .filter(|_| endpoint.authentication == ClientAuthentication::Post);
                if let Some(secret) = secret {
                    form = form.with("client_secret", secret);
                }
            }
        }
        let (is_success, body) =
            http_request::post_form(&endpoint.url, form.encode(), basic_credentials, redaction).await?;
        Ok((is_success, Zeroizing::new(body)))
    }

    /// Requests tokens, and adds the issued tokens to the redaction.
    ///
    /// # Errors
    /// The reason why there are no tokens.
    pub(crate) async fn request_tokens(
        &self,
        endpoint: &TokenEndpoint,
        form: Form,
        redaction: &Redaction,
    ) -> Result<IssuedTokens, TokenRequestError> {
        let response = self.post(endpoint, form, redaction).await;
        let (is_success, body) = response.map_err(TokenRequestError::Failed)?;
        if !is_success {
            let refusal: TokenRefusal = serde_json::from_slice(&body).unwrap_or_default();
            let code = if refusal.error.is_empty() {
                "no reason"
            } else {
                &refusal.error
            };
            return Err(TokenRequestError::Refused(redaction.quoted(code)));
        }
        let response: TokenResponse = serde_json::from_slice(&body)
            .map_err(|_| TokenRequestError::Failed("the issuer's response is not a token".to_owned()))?;
        let access_token = Zeroizing::new(response.access_token);
        redaction.add_token(&access_token);
        let refresh_token = response
            .refresh_token
            .map(Zeroizing::new)
            .filter(|token| !token.is_empty());
        if let Some(token) = &refresh_token {
            redaction.add_token(token);
        }
        let scopes = response.scope.as_deref().map(split_scopes);
        Ok(IssuedTokens {
            access_token: check_access_token(access_token, &response.token_type, redaction),
            validity: response.expires_in.map(Duration::from_secs),
            refresh_token,
            scopes,
        })
    }
}

/// Returns the token if it can be used as a bearer token.
fn check_access_token(
    token: Zeroizing<String>,
    token_type: &str,
    redaction: &Redaction,
) -> Result<Zeroizing<String>, String> {
    if !token_type.eq_ignore_ascii_case("bearer") {
        let token_type = redaction.quoted(token_type);
        return Err(format!(
            "the issuer issues tokens of the type `{token_type}`, not `Bearer`"
        ));
    }
    let is_usable =
        !token.is_empty() && token.len() <= TOKEN_BYTES_MAX && token.bytes().all(|byte| byte.is_ascii_graphic());
    if !is_usable {
        return Err("the issuer's token is empty or too long, or has invalid characters".to_owned());
    }
    Ok(token)
}

/// Splits a list of scopes that are separated by spaces.
pub(crate) fn split_scopes(text: &str) -> Vec<String> {
    text.split_ascii_whitespace().map(str::to_owned).collect()
}

fn form_encoded(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}
