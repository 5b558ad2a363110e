//! Serves many clients over HTTP.

mod access_token;
mod auth_challenges;
mod body;
mod callers;
mod connections;
mod http_sessions;
mod listener;
mod oauth_callers;
mod options;
mod origin;
mod rate_limit;
mod response;
mod router;
mod token_rule;

pub use access_token::AccessToken;
pub use listener::HttpListener;
pub use options::{HttpOptions, ProtectedResource};
pub use token_rule::TokenRule;
