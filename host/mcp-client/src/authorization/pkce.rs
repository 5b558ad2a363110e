//! The random values of a login, and the code challenge of PKCE, which binds the authorization code to the login (RFC
//! 7636).

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

/// The number of random bytes in a value.
const RANDOM_BYTES: usize = 32;

/// Returns 256 random bits as base64url text.
///
/// # Errors
/// If the system cannot generate random numbers.
pub(super) fn random_text() -> Result<Zeroizing<String>, String> {
    let mut bytes = Zeroizing::new([0; RANDOM_BYTES]);
    getrandom::fill(bytes.as_mut_slice())
        .map_err(|error| format!("the system cannot generate random numbers: {error}"))?;
    Ok(Zeroizing::new(BASE64_URL_SAFE_NO_PAD.encode(bytes.as_slice())))
}

/// Returns the code challenge of a verifier, by the method `S256`.
pub(super) fn code_challenge(verifier: &str) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn code_challenge_matches_the_specification_and_random_texts_differ() {
        // RFC 7636, appendix B.
        let challenge = code_challenge("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk");
        assert_eq!(challenge, "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
        assert_ne!(*random_text().unwrap(), *random_text().unwrap());
    }
}
