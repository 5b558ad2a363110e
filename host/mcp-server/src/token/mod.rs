//! Access tokens that an authorization server signs (RFC 9068): their signatures, claims and keys.

mod claims;
mod key_cache;
mod signed_token;
mod signing_key;
mod token_verifier;

pub(crate) use claims::Claims;
pub(crate) use token_verifier::{TokenRefusal, TokenVerifier};
