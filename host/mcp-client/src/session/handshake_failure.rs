//! The reason why a handshake failed.

use rmcp::service::ClientInitializeError;

use crate::transport::{Diagnostics, TRANSPORT_FAILED};
use crate::value::Redaction;

/// Describes the error of a handshake, without secrets.
pub(super) async fn describe(
    error: &ClientInitializeError,
    diagnostics: &Diagnostics,
    redaction: &Redaction,
) -> String {
    let error = match error {
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => &**fallback,
        error => error,
    };
    match error {
        ClientInitializeError::ConnectionClosed(_) => {
            let end_reason = diagnostics.end_reason().await;
            end_reason.unwrap_or_else(|| "it closed the connection".to_owned())
        }
        ClientInitializeError::JsonRpcError(error) if error.code.0 == TRANSPORT_FAILED => {
            redaction.quoted(&error.message)
        }
        ClientInitializeError::JsonRpcError(error) => format!("it refused: {}", redaction.quoted(&error.message)),
        ClientInitializeError::TransportError { error, .. } => redaction.quoted(&error.error.to_string()),
        ClientInitializeError::NoCompatibleProtocolVersion { .. } => {
            "it has no revision of the protocol that is supported".to_owned()
        }
        _ => "it did not answer as the protocol requires".to_owned(),
    }
}
