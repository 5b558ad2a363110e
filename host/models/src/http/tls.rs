//! TLS configurations.

use std::sync::Arc;

use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt;

use toolwit_agent::model::ModelError;

/// Returns a configuration that trusts the root certificates of the platform. It uses its own crypto provider and leaves an
/// embedder's process-wide provider unchanged.
pub(super) fn platform_roots() -> Result<ClientConfig, ModelError> {
    let config = builder()
        .and_then(|builder| builder.with_platform_verifier())
        .map_err(unusable)?
        .with_no_client_auth();
    Ok(with_alpn(config))
}

/// Returns a configuration without root certificates, for an endpoint without TLS. The platform's certificates are not read
/// and may be missing.
pub(super) fn no_roots() -> Result<ClientConfig, ModelError> {
    let config = builder()
        .map_err(unusable)?
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    Ok(with_alpn(config))
}

fn builder() -> Result<rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier>, rustls::Error> {
    ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
}

fn with_alpn(mut config: ClientConfig) -> ClientConfig {
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    config
}

fn unusable(error: rustls::Error) -> ModelError {
    ModelError::Configuration {
        message: format!("TLS cannot be configured: {error}"),
        suggestion: "install the system's root certificates (the package `ca-certificates`)".to_owned(),
    }
}
