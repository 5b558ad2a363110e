//! The resolver and the TLS configuration of a runtime.

use std::sync::Arc;
#[cfg(feature = "network")]
use std::sync::OnceLock;

use super::resolve::{Resolve, SystemResolver};
#[cfg(feature = "network")]
use super::trust::ExtraRoots;

/// The resolver and the TLS configuration, which all HTTP gates of a runtime share.
#[derive(Debug)]
pub(crate) struct Network {
    pub(crate) resolver: Arc<dyn Resolve>,
    /// The certificate authorities that are trusted in addition to those of the system.
    #[cfg(feature = "network")]
    pub(super) extra_roots: ExtraRoots,
    /// The TLS configuration, created by the first HTTPS request.
    #[cfg(feature = "network")]
    pub(super) tls: OnceLock<Arc<rustls::ClientConfig>>,
}

impl Network {
    pub(crate) fn new(resolver: Option<Arc<dyn Resolve>>) -> Self {
        Self {
            resolver: resolver.unwrap_or_else(|| Arc::new(SystemResolver)),
            #[cfg(feature = "network")]
            extra_roots: ExtraRoots::default(),
            #[cfg(feature = "network")]
            tls: OnceLock::new(),
        }
    }

    /// Sets the certificate authorities that are trusted in addition to those of the system.
    #[cfg(feature = "network")]
    pub(crate) fn with_extra_roots(mut self, extra_roots: ExtraRoots) -> Self {
        self.extra_roots = extra_roots;
        self
    }
}
