//! Access tokens of OAuth 2.1 for servers over HTTP: discovery, token requests, and challenges of servers.
//!
//! The operator configures the issuer. A server can require another scope and nothing else: credentials and refresh tokens are sent to the
//! configured issuer only, and access tokens to the server only.

mod challenge;
mod discovery;
mod exchange;
mod token_source;

pub(super) use challenge::Challenge;
pub(crate) use token_source::{OauthCredentials, TokenSource};
