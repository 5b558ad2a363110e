//! Serves many clients over HTTP.

mod access_token;
mod auth_challenges;
mod batch;
mod body;
mod callers;
mod connections;
mod cors;
mod http_sessions;
mod listener;
mod mcp_endpoint;
mod oauth_callers;
mod options;
mod origin;
mod rate_limit;
mod response;
mod router;
mod rpc_error;
mod token_rule;

pub use access_token::AccessToken;
pub use listener::HttpListener;
pub use options::{HttpOptions, ProtectedResource};
pub use token_rule::TokenRule;
