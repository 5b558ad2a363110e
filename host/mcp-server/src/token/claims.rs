//! The claims of an access token (RFC 9068).

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Deserialize;

/// The tolerated difference between the clocks of the issuer and of this server.
const LEEWAY: Duration = Duration::from_secs(30);

/// The maximum length of the subject, in bytes.
const SUBJECT_BYTES_MAX: usize = 1 << 10;

/// The claims of an access token, under the names of RFC 9068.
#[derive(Deserialize)]
pub(crate) struct Claims {
    pub(crate) iss: String,
    pub(crate) sub: String,
    aud: StringOrList,
    exp: f64,
    nbf: Option<f64>,
    scope: Option<StringOrList>,
    /// The scopes, under another name that some issuers use.
    scp: Option<StringOrList>,
    client_id: Option<String>,
    /// The id of the client, under its name in OpenID Connect.
    azp: Option<String>,
}

/// The value of a claim: a string, or a list of strings.
#[derive(Deserialize)]
#[serde(untagged)]
enum StringOrList {
    String(String),
    List(Vec<String>),
}

impl StringOrList {
    fn as_slice(&self) -> &[String] {
        match self {
            Self::String(text) => std::slice::from_ref(text),
            Self::List(texts) => texts,
        }
    }
}

impl Claims {
    /// Checks that `issuer` issued the token for `resource`, and that the token is valid at the current time.
    ///
    /// # Errors
    /// The reason why the token is refused.
    pub(super) fn check(&self, issuer: &str, resource: &str) -> Result<(), &'static str> {
        if self.iss != issuer {
            return Err("it is from another issuer");
        }
        if !self.aud.as_slice().iter().any(|audience| audience == resource) {
            return Err("it is not for this server");
        }
        if self.sub.is_empty() || self.sub.len() > SUBJECT_BYTES_MAX {
            return Err("its subject is empty or too long");
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let (now, leeway) = (now.as_secs_f64(), LEEWAY.as_secs_f64());
        if self.exp <= now - leeway {
            return Err("it has expired");
        }
        if self.nbf.is_some_and(|not_before| not_before > now + leeway) {
            return Err("it is not valid yet");
        }
        Ok(())
    }

    /// Returns the scopes.
    pub(crate) fn scopes(&self) -> BTreeSet<&str> {
        let texts = self.scope.iter().chain(&self.scp).flat_map(StringOrList::as_slice);
        texts.flat_map(|text| text.split_ascii_whitespace()).collect()
    }

    /// Returns the id of the client to which the token was issued.
    pub(crate) fn client_id(&self) -> Option<&str> {
        self.client_id.as_deref().or(self.azp.as_deref())
    }
}
