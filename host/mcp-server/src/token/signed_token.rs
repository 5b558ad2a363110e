//! The compact form of a signed token (RFC 7515).

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde_json::Value;

use super::claims::Claims;
use super::signing_key::{SignatureAlgorithm, SigningKey};

/// The maximum length of a token, in bytes.
const TOKEN_BYTES_MAX: usize = 16 << 10;

/// The accepted types of a token. A token without a type is also accepted. Some issuers state `jwt`, the general type of
/// signed tokens. Other types, such as the type of a logout token, are refused.
const ACCEPTED_TYPES: [&str; 3] = ["at+jwt", "application/at+jwt", "jwt"];

/// The header of a token. Keys and key URLs in the header are ignored, because an attacker could have set them.
#[derive(Deserialize)]
struct Header {
    alg: Value,
    typ: Option<String>,
    kid: Option<String>,
    /// The names of extensions that the receiver must support.
    crit: Option<Value>,
}

/// A parsed token with an unchecked signature.
pub(super) struct SignedToken<'t> {
    /// The algorithm that the token states.
    pub(super) algorithm: SignatureAlgorithm,
    /// The id that the token states for its key.
    pub(super) key_id: Option<String>,
    /// The signed text: the encoded header and the encoded claims.
    message: &'t str,
    signature: Vec<u8>,
    /// The claims as JSON.
    claims: Vec<u8>,
}

/// The issuer that a token states.
#[derive(Deserialize)]
struct StatedIssuer {
    iss: String,
}

impl<'t> SignedToken<'t> {
    /// Parses a token.
    ///
    /// # Errors
    /// The reason why the token is refused.
    pub(super) fn parse(text: &'t str) -> Result<Self, &'static str> {
        if text.len() > TOKEN_BYTES_MAX {
            return Err("it is too long");
        }
        let parts: Vec<&str> = text.split('.').collect();
        let [header, claims, signature] = parts[..] else {
            return Err("it is not a signed token");
        };
        let decoded = |part: &str| URL_SAFE_NO_PAD.decode(part).map_err(|_| "it is not a signed token");
        let header: Header = serde_json::from_slice(&decoded(header)?).map_err(|_| "its header is invalid")?;
        let algorithm = SignatureAlgorithm::deserialize(header.alg).map_err(|_| "its algorithm is not accepted")?;
        if header.crit.is_some() {
            return Err("it has extensions that are not supported");
        }
        let is_accepted_type = |typ: &String| ACCEPTED_TYPES.iter().any(|accepted| accepted.eq_ignore_ascii_case(typ));
        if !header.typ.as_ref().is_none_or(is_accepted_type) {
            return Err("it is not an access token");
        }
        Ok(Self {
            algorithm,
            key_id: header.kid,
            message: &text[..text.len() - signature.len() - 1],
            signature: decoded(signature)?,
            claims: decoded(claims)?,
        })
    }

    /// Returns the issuer that the token states, or `None` if the claims have no valid issuer.
    pub(super) fn stated_issuer(&self) -> Option<String> {
        serde_json::from_slice::<StatedIssuer>(&self.claims)
            .ok()
            .map(|stated| stated.iss)
    }

    /// Returns the claims, if `key` has signed them and the token states the algorithm of the key.
    ///
    /// # Errors
    /// The reason why the token is refused.
    pub(super) fn verified_claims(&self, key: &SigningKey) -> Result<Claims, &'static str> {
        if key.algorithm() != self.algorithm || !key.has_signed(self.message.as_bytes(), &self.signature) {
            return Err("its signature is invalid");
        }
        serde_json::from_slice(&self.claims).map_err(|_| "its claims are invalid")
    }
}
