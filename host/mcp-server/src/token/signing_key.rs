//! The public keys of an issuer (RFC 7517, RFC 7518).

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde::Deserialize;
use serde_json::Value;

/// The number of bytes of a P-256 coordinate, and of an Ed25519 key.
const COORDINATE_BYTES: usize = 32;

/// The first byte of the encoding of an elliptic-curve point with both coordinates (SEC 1).
const UNCOMPRESSED_POINT: u8 = 4;

/// The accepted signature algorithms. `none` and algorithms with a shared secret are not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(super) enum SignatureAlgorithm {
    RS256,
    ES256,
    EdDSA,
}

/// A public key. It has one algorithm, which a token cannot change.
pub(super) struct SigningKey {
    /// The id by which tokens name the key.
    pub(super) id: Option<String>,
    material: KeyMaterial,
}

enum KeyMaterial {
    Rsa { modulus: Vec<u8>, exponent: Vec<u8> },
    P256(Vec<u8>),
    Ed25519(Vec<u8>),
}

/// A key in a JSON Web Key set, under the field names of RFC 7517 and RFC 7518.
#[derive(Deserialize)]
struct JsonWebKey {
    kty: String,
    kid: Option<String>,
    #[serde(rename = "use")]
    purpose: Option<String>,
    key_ops: Option<Vec<String>>,
    alg: Option<Value>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

impl SigningKey {
    /// Parses a key of a key set. Returns `None` if the key is malformed, is not for signatures, or has an algorithm
    /// that is not accepted.
    pub(super) fn parse(key: &Value) -> Option<Self> {
        let key = JsonWebKey::deserialize(key).ok()?;
        let is_for_signatures = key.purpose.as_deref().is_none_or(|purpose| purpose == "sig");
        let can_verify = key
            .key_ops
            .as_ref()
            .is_none_or(|operations| operations.iter().any(|operation| operation == "verify"));
        if !is_for_signatures || !can_verify {
            return None;
        }
        let decode = |text: &Option<String>| URL_SAFE_NO_PAD.decode(text.as_deref()?).ok();
        let coordinate = |text: &Option<String>| decode(text).filter(|bytes| bytes.len() == COORDINATE_BYTES);
        let material = match (key.kty.as_str(), key.crv.as_deref()) {
            ("RSA", _) => KeyMaterial::Rsa {
                modulus: decode(&key.n)?,
                exponent: decode(&key.e)?,
            },
            ("EC", Some("P-256")) => {
                KeyMaterial::P256([vec![UNCOMPRESSED_POINT], coordinate(&key.x)?, coordinate(&key.y)?].concat())
            }
            ("OKP", Some("Ed25519")) => KeyMaterial::Ed25519(coordinate(&key.x)?),
            _ => return None,
        };
        let signing_key = Self { id: key.kid, material };
        let is_algorithm_of_key = |stated: Value| {
            SignatureAlgorithm::deserialize(stated).is_ok_and(|algorithm| algorithm == signing_key.algorithm())
        };
        key.alg.is_none_or(is_algorithm_of_key).then_some(signing_key)
    }

    /// Returns the algorithm of the key.
    pub(super) fn algorithm(&self) -> SignatureAlgorithm {
        match self.material {
            KeyMaterial::Rsa { .. } => SignatureAlgorithm::RS256,
            KeyMaterial::P256(_) => SignatureAlgorithm::ES256,
            KeyMaterial::Ed25519(_) => SignatureAlgorithm::EdDSA,
        }
    }

    /// Returns whether this key made the signature of a message.
    pub(super) fn has_signed(&self, message: &[u8], signature: &[u8]) -> bool {
        let result = match &self.material {
            KeyMaterial::Rsa { modulus, exponent } => {
                let key = RsaPublicKeyComponents {
                    n: modulus,
                    e: exponent,
                };
                key.verify(&RSA_PKCS1_2048_8192_SHA256, message, signature)
            }
            KeyMaterial::P256(point) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(message, signature)
            }
            KeyMaterial::Ed25519(key) => UnparsedPublicKey::new(&ED25519, key).verify(message, signature),
        };
        result.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_keys_that_verify_with_accepted_algorithms_are_parsed() {
        let coordinate = URL_SAFE_NO_PAD.encode([1; COORDINATE_BYTES]);
        let ed25519 = json!({"kty": "OKP", "crv": "Ed25519", "x": coordinate, "kid": "a"});
        assert!(SigningKey::parse(&ed25519).is_some());
        for (field, value) in [
            ("use", json!("enc")),
            ("key_ops", json!(["sign"])),
            ("alg", json!("ES256")),
            ("alg", json!("none")),
            ("crv", json!("Ed448")),
            ("x", json!("AQ")),
            ("kty", json!("oct")),
        ] {
            let mut key = ed25519.clone();
            key[field] = value;
            assert!(SigningKey::parse(&key).is_none(), "{key}");
        }
        assert!(SigningKey::parse(&json!({"kty": "oct", "k": "c2VjcmV0"})).is_none());
        assert!(
            SigningKey::parse(&json!({"kty": "EC", "crv": "secp256k1", "x": coordinate, "y": coordinate})).is_none()
        );
        assert!(SigningKey::parse(&json!("text")).is_none());
    }
}
