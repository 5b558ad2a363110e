//! The response of an issuer (an OAuth authorization server) to a login: the query parameters of the address to which
//! the browser returns.

use url::form_urlencoded;
use zeroize::Zeroizing;

use crate::value::Redaction;

/// The values with which the response to a login is checked.
pub(super) struct ExpectedResponse {
    /// The random value of the login, which the response must repeat.
    pub(super) state: Zeroizing<String>,
    /// The identifier of the issuer, as its metadata states it.
    pub(super) issuer: String,
    /// Whether the response must name the issuer (RFC 9207), because the metadata of the issuer promises it.
    pub(super) is_issuer_required: bool,
    /// The secrets that must not appear in an error.
    pub(super) redaction: Redaction,
}

/// The parameters of a response.
#[derive(Default)]
pub(super) struct AuthorizationResponse {
    state: Option<Zeroizing<String>>,
    code: Option<Zeroizing<String>>,
    issuer: Option<String>,
    error: Option<String>,
    /// Whether one of these parameters occurs more than once.
    has_repeated_parameter: bool,
}

impl AuthorizationResponse {
    pub(super) fn parse(query: &str) -> Self {
        let mut response = Self::default();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let value = value.into_owned();
            let is_repeated = match name.as_ref() {
                "state" => response.state.replace(Zeroizing::new(value)).is_some(),
                "code" => response.code.replace(Zeroizing::new(value)).is_some(),
                "iss" => response.issuer.replace(value).is_some(),
                "error" => response.error.replace(value).is_some(),
                _ => false,
            };
            response.has_repeated_parameter |= is_repeated;
        }
        response
    }

    /// Returns whether the response belongs to this login: it has the random value of the login, and no parameter occurs
    /// more than once. Another party can begin a login, too, but does not know this value.
    pub(super) fn belongs_to(&self, expected: &ExpectedResponse) -> bool {
        !self.has_repeated_parameter && self.state.as_ref() == Some(&expected.state)
    }

    /// Returns the authorization code, and adds it to the redaction.
    ///
    /// # Errors
    /// If the response names another issuer, does not name its issuer although it must, reports an error, or has no code.
    pub(super) fn into_code(self, expected: &ExpectedResponse) -> Result<Zeroizing<String>, String> {
        let redaction = &expected.redaction;
        if let Some(code) = &self.code {
            redaction.add_token(code);
        }
        match &self.issuer {
            // The issuer is checked first, so that no error of another issuer is reported. Issuers are compared as strings
            // (RFC 9207, section 2.4).
            Some(issuer) if *issuer != expected.issuer => {
                let issuer = redaction.quoted(issuer);
                return Err(format!("the response comes from another issuer, `{issuer}`"));
            }
            None if expected.is_issuer_required => {
                return Err(
                    "the response does not name its issuer, although the metadata of the issuer promises it".to_owned(),
                );
            }
            _ => {}
        }
        if let Some(error) = &self.error {
            return Err(match error.as_str() {
                "access_denied" => "the login was refused (`access_denied`)".to_owned(),
                error => format!("the issuer refused with `{}`", redaction.quoted(error)),
            });
        }
        let code = self.code.filter(|code| !code.is_empty());
        code.ok_or_else(|| "the response has no code".to_owned())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn expected_response(is_issuer_required: bool) -> ExpectedResponse {
        ExpectedResponse {
            state: Zeroizing::new("s".to_owned()),
            issuer: "https://i.example".to_owned(),
            is_issuer_required,
            redaction: Redaction::default(),
        }
    }

    #[test]
    fn a_response_belongs_to_the_login_only_with_its_state_and_without_repeated_parameters() {
        let belongs = |query: &str| AuthorizationResponse::parse(query).belongs_to(&expected_response(false));
        assert!(belongs("code=c&state=s"));
        for query in [
            "",
            "code=c",
            "code=c&state=",
            "code=c&state=t",
            "state=s&state=t",
            "state=s&code=a&code=b",
        ] {
            assert!(!belongs(query), "{query}");
        }
    }

    #[test]
    fn only_a_valid_response_has_a_code() {
        let code = |query: &str, is_issuer_required| {
            AuthorizationResponse::parse(query).into_code(&expected_response(is_issuer_required))
        };
        assert_eq!(*code("code=c&state=s", false).unwrap(), "c");
        assert_eq!(*code("code=c&iss=https%3A%2F%2Fi.example", true).unwrap(), "c");
        assert!(code("code=c", true).unwrap_err().contains("does not name its issuer"));
        for issuer in ["https://evil.example", "https://i.example/", "HTTPS://i.example", ""] {
            for is_issuer_required in [true, false] {
                let query = format!("code=c&error=access_denied&iss={issuer}");
                assert!(
                    code(&query, is_issuer_required).unwrap_err().contains("another issuer"),
                    "{issuer}"
                );
            }
        }
        assert!(
            code("error=access_denied&code=c", false)
                .unwrap_err()
                .contains("refused")
        );
        assert!(
            code("error=%1b%5B2J", false)
                .unwrap_err()
                .chars()
                .all(|c| !c.is_control())
        );
        assert!(code("code=", false).is_err());
    }
}
