//! The trusted certificate authorities: those of the system, and those that the embedding program adds.

use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::Verifier;
use wasmtime_wasi_http::Error as HttpError;

use super::Network;
use toolwit_core::{Error, ErrorKind, Phase};

/// Certificate authorities that are trusted in addition to those of the system.
#[derive(Debug, Default)]
pub(crate) struct ExtraRoots(Vec<CertificateDer<'static>>);

impl ExtraRoots {
    /// Parses certificates in PEM format.
    ///
    /// An unusable certificate is an error, because a silently skipped one would be hard to diagnose.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] if a text contains no certificate or one that cannot be parsed or trusted.
    pub(crate) fn parse(pem_texts: &[Vec<u8>]) -> Result<Self, Error> {
        let unusable = |reason: String| {
            Error::new(
                ErrorKind::Configuration,
                Phase::Registry,
                format!("the extra root certificates cannot be used: {reason}"),
            )
            .with_suggestion("use certificates of authorities in PEM format, each between its `BEGIN` and `END` lines")
        };
        let mut roots = Vec::new();
        for pem_text in pem_texts {
            let count_before = roots.len();
            for certificate in CertificateDer::pem_slice_iter(pem_text) {
                roots.push(certificate.map_err(|error| unusable(error.to_string()))?);
            }
            if roots.len() == count_before {
                return Err(unusable("one of the texts contains no certificate".to_owned()));
            }
        }
        for root in &roots {
            let added = RootCertStore::empty().add(root.clone());
            added.map_err(|error| unusable(error.to_string()))?;
        }
        Ok(Self(roots))
    }
}

impl Network {
    /// Returns the TLS configuration, which trusts the certificate authorities of the system and the extra ones. The first
    /// call creates the configuration.
    pub(super) fn tls_config(&self) -> Result<Arc<ClientConfig>, HttpError> {
        if let Some(config) = self.tls.get() {
            return Ok(config.clone());
        }
        let unusable = |error: rustls::Error| {
            tracing::error!(%error, "TLS cannot be configured; are the root certificates of the system installed?");
            HttpError::TlsCertificateError
        };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let roots = self.extra_roots.0.iter().cloned();
        let verifier = Verifier::new_with_extra_roots(roots, provider.clone()).map_err(unusable)?;
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(unusable)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(self.tls.get_or_init(|| Arc::new(config)).clone())
    }
}
