//! The response of an issuer, in the address to which the browser returned.

use url::form_urlencoded;
use zeroize::Zeroizing;

use crate::value::Redaction;

/// The required content of the response to a login.
pub(super) struct ExpectedResponse {
    /// The random value of the login.
    pub(super) state: Zeroizing<String>,
    /// The issuer, as its metadata names it.
    pub(super) issuer: String,
    /// Whether the issuer names itself in every response (RFC 9207).
    pub(super) is_issuer_named: bool,
    /// The secrets that must not appear in an error.
    pub(super) redaction: Redaction,
}

/// The parameters of a response. A response in which one of these parameters occurs twice belongs to no login.
#[derive(Default)]
pub(super) struct AuthorizationResponse {
    state: Option<Zeroizing<String>>,
    code: Option<Zeroizing<String>>,
    issuer: Option<String>,
    error: Option<String>,
    is_ambiguous: bool,
}

impl AuthorizationResponse {
    pub(super) fn parse(query: &str) -> Self {
        let mut response = Self::default();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let value = value.into_owned();
            let is_second = match name.as_ref() {
                "state" => response.state.replace(Zeroizing::new(value)).is_some(),
                "code" => response.code.replace(Zeroizing::new(value)).is_some(),
                "iss" => response.issuer.replace(value).is_some(),
                "error" => response.error.replace(value).is_some(),
                _ => false,
            };
            response.is_ambiguous |= is_second;
        }
        response
    }

    /// Returns whether the response belongs to this login, and not to a login that another party began.
    pub(super) fn belongs_to(&self, expected: &ExpectedResponse) -> bool {
        !self.is_ambiguous && self.state.as_ref() == Some(&expected.state)
    }

    /// Returns the code, and adds it to the redaction.
    ///
    /// # Errors
    /// If the response is that of another issuer, does not name its issuer although it must, reports a refusal, or has
    /// no code.
    pub(super) fn into_code(self, expected: &ExpectedResponse) -> Result<Zeroizing<String>, String> {
        let redaction = &expected.redaction;
        if let Some(code) = &self.code {
            redaction.add_token(code);
        }
        match &self.issuer {
            // The issuer is checked first, so that no error of another issuer is reported. Addresses are compared as
            // texts (RFC 9207, section 2.4).
            Some(issuer) if *issuer != expected.issuer => {
                let issuer = redaction.quoted(issuer);
                return Err(format!("the response is that of another issuer, `{issuer}`"));
            }
            None if expected.is_issuer_named => {
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

    fn expected(is_issuer_named: bool) -> ExpectedResponse {
        ExpectedResponse {
            state: Zeroizing::new("s".to_owned()),
            issuer: "https://i.example".to_owned(),
            is_issuer_named,
            redaction: Redaction::default(),
        }
    }

    #[test]
    fn only_a_response_with_the_state_belongs_to_the_login() {
        let belongs = |query: &str| AuthorizationResponse::parse(query).belongs_to(&expected(false));
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
    fn code_is_returned_only_from_a_valid_response() {
        let code = |query: &str, is_named| AuthorizationResponse::parse(query).into_code(&expected(is_named));
        assert_eq!(*code("code=c&state=s", false).unwrap(), "c");
        assert_eq!(*code("code=c&iss=https%3A%2F%2Fi.example", true).unwrap(), "c");
        assert!(code("code=c", true).unwrap_err().contains("does not name its issuer"));
        for issuer in ["https://evil.example", "https://i.example/", "HTTPS://i.example", ""] {
            for is_named in [true, false] {
                let query = format!("code=c&error=access_denied&iss={issuer}");
                assert!(
                    code(&query, is_named).unwrap_err().contains("another issuer"),
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
