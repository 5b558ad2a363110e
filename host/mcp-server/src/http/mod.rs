//! Many clients over HTTP.

mod access_token;
mod body;
mod callers;
mod challenge;
mod connections;
mod listener;
mod options;
mod origin;
mod rate_limit;
mod response;
mod router;
mod session_limits;
mod signed_callers;
mod token_rule;

pub use access_token::AccessToken;
pub use listener::HttpListener;
pub use options::{HttpOptions, ProtectedResource};
pub use token_rule::TokenRule;
