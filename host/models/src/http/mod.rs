//! Asking a provider over HTTP: one POST, bounded in time and bytes, repeated where that may help.
//!
//! What every provider's adapter shares; the adapters add only what their bodies look like.

mod address;
mod endpoint;
mod failure;
mod retry;
mod secret;
mod tls;

pub(super) use address::Address;
pub use address::PlainHttp;
pub(super) use endpoint::{Bounds, Endpoint, Reply};
pub(super) use failure::{Failure, ProviderError};
pub use retry::RetryPolicy;
pub use secret::Secret;
