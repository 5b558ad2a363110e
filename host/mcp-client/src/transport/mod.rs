//! Connections to servers: child processes and HTTP, with limits on the data that servers send.

mod child_process;
mod diagnostics;
mod http_client;
mod http_failure;
mod http_sender;
mod large_fields;
mod line_reader;
mod message;
mod oauth;
mod program;
mod request_limit;
mod sse;

pub(crate) use child_process::{ChildTransport, ProcessCommand};
pub(crate) use diagnostics::Diagnostics;
pub(crate) use http_sender::{AUTHORIZATION_REQUIRED, HttpSender, NOT_PROCESSED, SESSION_LOST, TRANSPORT_FAILED};
pub use oauth::AuthorizationServer;
pub(crate) use oauth::{
    Challenge, ClientAuthentication, ClientIdentity, ClientTokens, Form, LoginSettings, LoginTokens, OauthCredentials,
    ProtectedResource, TokenEndpoint, TokenFailure, TokenSource, default_identifier, post_json, request_challenge,
};
