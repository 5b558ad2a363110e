//! Serves many clients over HTTP.

mod access_token;
mod body;
mod callers;
mod challenger;
mod connections;
mod http_sessions;
mod listener;
mod options;
mod origin;
mod rate_limit;
mod response;
mod router;
mod signed_callers;
mod token_rule;

pub use access_token::AccessToken;
pub use listener::HttpListener;
pub use options::{HttpOptions, ProtectedResource};
pub use token_rule::TokenRule;
