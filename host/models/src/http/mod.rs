//! Asking a provider over HTTP: one POST, bounded in time and bytes, repeated where that may help.
//!
//! What every provider's adapter shares; the adapters add only what their bodies look like.

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
