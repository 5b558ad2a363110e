//! DNS resolution of host names.

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;

/// The future of a name lookup.
pub type ResolveFuture = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// Resolves host names for HTTP requests. The host does not trust the returned addresses: it checks all of them before it connects
/// to one.
pub trait Resolve: fmt::Debug + Send + Sync {
    /// Resolves a DNS name in ASCII form.
    fn resolve(&self, name: &str) -> ResolveFuture;
}

/// The resolver of the operating system.
#[derive(Debug)]
pub(crate) struct SystemResolver;

impl Resolve for SystemResolver {
    #[cfg(feature = "network")]
    fn resolve(&self, name: &str) -> ResolveFuture {
        let name = name.to_owned();
        Box::pin(async move {
            let addresses = tokio::net::lookup_host((name, 0)).await?;
            Ok(addresses.map(|address| address.ip()).collect())
        })
    }

    #[cfg(not(feature = "network"))]
    fn resolve(&self, _: &str) -> ResolveFuture {
        Box::pin(async { Err(io::Error::other("built without the `network` feature")) })
    }
}
