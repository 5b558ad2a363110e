//! Connections to servers: child processes and HTTP, with limits on the data that servers send.

mod child_process;
mod diagnostics;
mod failure_code;
mod http_client;
mod http_failure;
mod http_response;
mod http_sender;
mod large_fields;
mod line_reader;
mod message;
mod message_repair;
mod nesting;
mod oauth;
mod program;
mod redirect;
mod rehearsed_answer;
mod request_limit;
mod sse;
mod unusable_answer;

pub(crate) use child_process::{ChildTransport, ProcessCommand};
pub(crate) use diagnostics::Diagnostics;
pub(crate) use failure_code::{AUTHORIZATION_REQUIRED, NOT_PROCESSED, SESSION_LOST, TRANSPORT_FAILED};
pub(crate) use http_sender::HttpSender;
pub(crate) use message_repair::REQUIRES_TASK;
pub use oauth::AuthorizationServer;
pub(crate) use oauth::{
    Challenge, ClientAuthentication, ClientIdentity, ClientTokens, Form, LoginSettings, LoginTokens, OauthCredentials,
    ProtectedResource, TokenEndpoint, TokenFailure, TokenSource, default_identifier, post_json, request_challenge,
};
pub(crate) use rehearsed_answer::RehearsedAnswer;
