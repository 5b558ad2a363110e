//! Access tokens of OAuth 2.1 for servers over HTTP: discovery, token requests, and challenges of servers.
//!
//! For `ClientTokens`, the issuer is configured: the server can require further scopes, but not another issuer. For
//! `LoginTokens`, the issuer is the one at which the user logged in. Credentials and refresh tokens are sent to this
//! issuer only, and access tokens to the server only.

mod authorization_server;
mod challenge;
mod client_tokens;
mod http_request;
mod login_tokens;
mod resource;
mod token_request;
mod token_source;

pub use authorization_server::AuthorizationServer;
pub(crate) use authorization_server::{ClientAuthentication, TokenEndpoint};
pub(crate) use challenge::Challenge;
pub(crate) use client_tokens::{ClientTokens, OauthCredentials};
pub(crate) use http_request::{post_json, request_challenge};
pub(crate) use login_tokens::{LoginSettings, LoginTokens};
pub(crate) use resource::{ProtectedResource, default_identifier};
pub(crate) use token_request::{ClientIdentity, Form};
pub(crate) use token_source::{TokenFailure, TokenSource};
