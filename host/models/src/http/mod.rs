//! Requests to a provider over HTTP: one POST, limited in time and bytes, with retries.
//!
//! All clients share this module; a client adds only the formats of its requests and responses.

mod address;
mod endpoint;
mod failure;
mod retry;
mod secret;
mod tls;

pub(super) use address::EndpointAddress;
pub use address::PlainHttp;
pub(super) use endpoint::{Endpoint, HttpReply, RequestLimits};
pub(super) use failure::{AttemptFailure, ProviderError};
pub use retry::RetryPolicy;
pub use secret::Secret;
