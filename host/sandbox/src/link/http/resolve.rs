//! From a name to addresses.

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;

/// The addresses of a name, when they are known.
pub type ResolveFuture = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// Looks up names for the gate. What it answers is not trusted: the gate checks every address, and connects to one that it has
/// checked.
pub trait Resolve: fmt::Debug + Send + Sync {
    /// Looks up a DNS name in ASCII.
    fn resolve(&self, name: &str) -> ResolveFuture;
}

/// Asks the machine's own resolver.
#[derive(Debug)]
pub(crate) struct SystemResolver;

impl Resolve for SystemResolver {
    #[cfg(feature = "network")]
    fn resolve(&self, name: &str) -> ResolveFuture {
        let name = name.to_owned();
        Box::pin(async move {
            let found = tokio::net::lookup_host((name, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }

    #[cfg(not(feature = "network"))]
    fn resolve(&self, _: &str) -> ResolveFuture {
        Box::pin(async { Err(io::Error::other("there is no network")) })
    }
}
