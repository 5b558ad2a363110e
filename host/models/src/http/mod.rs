//! Requests to a provider over HTTP: one POST, limited in time and bytes, with retries.
//!
//! All clients share this module. A client adds only the format of its requests and responses.

mod address;
mod endpoint;
mod error_codes;
mod extra_header;
mod failure;
mod http_response;
mod key;
mod provider_error;
mod proxy;
mod retry;
mod secret;

pub(super) use address::EndpointAddress;
pub use address::PlainHttp;
pub use endpoint::ResponseMode;
pub(super) use endpoint::{Authentication, Endpoint, EndpointOptions, RequestLimits};
pub(super) use extra_header::ExtraHeader;
pub(super) use failure::AttemptFailure;
pub(super) use http_response::HttpResponse;
pub use key::KeyHeader;
pub(super) use key::KeySource;
pub(super) use provider_error::ProviderError;
pub use proxy::ModelProxy;
pub use retry::RetryPolicy;
pub use secret::Secret;
