//! How a provider's certificate is checked.

use std::sync::Arc;

use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt;

use toolwit_agent::model::ModelError;

/// Trusts what the machine trusts. The crypto provider is our own: an embedder's process-wide choice stays untouched.
pub(super) fn platform_roots() -> Result<ClientConfig, ModelError> {
    let config = builder()
        .and_then(|builder| builder.with_platform_verifier())
        .map_err(unusable)?
        .with_no_client_auth();
    Ok(negotiating(config))
}

/// Trusts nobody, for an endpoint without TLS: the machine's certificates are not read, and may be missing.
pub(super) fn no_roots() -> Result<ClientConfig, ModelError> {
    let config = builder()
        .map_err(unusable)?
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    Ok(negotiating(config))
}

fn builder() -> Result<rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier>, rustls::Error> {
    ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
}

fn negotiating(mut config: ClientConfig) -> ClientConfig {
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    config
}

fn unusable(error: rustls::Error) -> ModelError {
    ModelError::Configuration {
        message: format!("TLS cannot be set up: {error}"),
        suggestion: "install the system's root certificates (the package `ca-certificates`)".to_owned(),
    }
}
