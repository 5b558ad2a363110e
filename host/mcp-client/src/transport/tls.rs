//! TLS configurations.

use std::sync::Arc;

use rustls::crypto::ring::default_provider;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt;

/// Returns a configuration for a server. The platform's root certificates are read for encrypted connections only, so
/// that they may be missing for others.
pub(super) fn configuration(is_encrypted: bool) -> Result<ClientConfig, rustls::Error> {
    let builder =
        ClientConfig::builder_with_provider(Arc::new(default_provider())).with_safe_default_protocol_versions()?;
    let mut config = if is_encrypted {
        builder.with_platform_verifier()?.with_no_client_auth()
    } else {
        builder
            .with_root_certificates(RootCertStore::empty())
            .with_no_client_auth()
    };
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}
