//! Requests to a provider over HTTP: one POST, limited in time and bytes, with retries.
//!
//! All clients share this module. A client adds only the format of its requests and responses.

mod address;
mod endpoint;
mod failure;
mod http_response;
mod key;
mod retry;
mod secret;

pub(super) use address::EndpointAddress;
pub use address::PlainHttp;
pub use endpoint::ResponseMode;
pub(super) use endpoint::{Authentication, Endpoint, RequestLimits};
pub(super) use failure::{AttemptFailure, ProviderError};
pub(super) use http_response::HttpResponse;
pub use key::KeyHeader;
pub(super) use key::KeySource;
pub use retry::RetryPolicy;
pub use secret::Secret;
