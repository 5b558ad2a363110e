//! The probe of a process: which revision of the protocol it speaks.
//!
//! The protocol library has a probe, too. It gives up after ten seconds, and the late answer of a server that is still starting then
//! ends the handshake. This probe waits for as long as the server may take to start, and the server is started only once.

use std::time::Duration;

use rmcp::model::{
    ClientConfig, ClientJsonRpcMessage, ClientRequest, ClientResult, DiscoverRequest, DiscoverRequestParams, ErrorCode,
    InitializeRequest, JsonRpcMessage, ProtocolVersion, RequestId, RequestMetaObject, ServerJsonRpcMessage,
    ServerRequest, ServerResult,
};
use rmcp::service::ClientLifecycleMode;
use rmcp::transport::Transport;

use crate::transport::{ChildTransport, RehearsedAnswer};

/// The ids of the requests of the probe. The protocol library counts its ids from 0.
const DISCOVER_ID: RequestId = RequestId::Number(4_000_000_001);
const INITIALIZE_ID: RequestId = RequestId::Number(4_000_000_002);

/// The time after which `initialize` is sent, too. A server of an earlier revision may ignore `server/discover`, and cannot be
/// distinguished from one that is still starting.
pub(super) const DISCOVER_PATIENCE: Duration = Duration::from_secs(10);

/// The errors with which a server of revision 2026-07-28 answers `server/discover`. Every other error is that of a server that does not
/// know this method.
const STATELESS_ERRORS: [ErrorCode; 3] = [
    ErrorCode::UNSUPPORTED_PROTOCOL_VERSION,
    ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY,
    ErrorCode::HEADER_MISMATCH,
];

/// Returns the lifecycle with which a process must be used. The transport keeps an answer that the handshake of this lifecycle
/// requests again. After `patience`, `initialize` is sent, too. `None` if the server ends the connection.
pub(super) async fn lifecycle_of(
    transport: &mut ChildTransport,
    client: &ClientConfig,
    revisions: Vec<ProtocolVersion>,
    patience: Duration,
) -> Option<ClientLifecycleMode> {
    transport
        .send(discover_request(client, revisions.first()?))
        .await
        .ok()?;
    let stateless = ClientLifecycleMode::Discover {
        preferred_versions: revisions,
    };
    let patience = tokio::time::sleep(patience);
    tokio::pin!(patience);
    let mut is_initializing = false;
    loop {
        let message = tokio::select! {
            message = transport.receive() => message?,
            () = &mut patience, if !is_initializing => {
                is_initializing = true;
                transport.send(initialize_request(client)).await.ok()?;
                continue;
            }
        };
        match message {
            JsonRpcMessage::Request(request) if matches!(request.request, ServerRequest::PingRequest(_)) => {
                let answer = ClientJsonRpcMessage::response(ClientResult::empty(()), request.id);
                transport.send(answer).await.ok()?;
            }
            answer if answered_id(&answer) == Some(&DISCOVER_ID) && is_stateless(&answer) => {
                if is_initializing {
                    transport.ignore_answer(INITIALIZE_ID);
                }
                transport.rehearse(RehearsedAnswer::Discover(answer));
                return Some(stateless);
            }
            answer if answered_id(&answer) == Some(&DISCOVER_ID) && !is_initializing => {
                return Some(ClientLifecycleMode::Initialize);
            }
            answer if answered_id(&answer) == Some(&INITIALIZE_ID) => {
                transport.ignore_answer(DISCOVER_ID);
                transport.rehearse(RehearsedAnswer::Initialize(answer));
                return Some(ClientLifecycleMode::Initialize);
            }
            _ => {}
        }
    }
}

fn answered_id(message: &ServerJsonRpcMessage) -> Option<&RequestId> {
    match message {
        JsonRpcMessage::Response(response) => Some(&response.id),
        JsonRpcMessage::Error(error) => error.id.as_ref(),
        _ => None,
    }
}

/// Returns whether the answer to `server/discover` is that of a server of revision 2026-07-28.
fn is_stateless(answer: &ServerJsonRpcMessage) -> bool {
    match answer {
        JsonRpcMessage::Response(response) => matches!(response.result, ServerResult::DiscoverResult(_)),
        JsonRpcMessage::Error(error) => STATELESS_ERRORS.contains(&error.error.code),
        _ => false,
    }
}

fn discover_request(client: &ClientConfig, revision: &ProtocolVersion) -> ClientJsonRpcMessage {
    let meta = RequestMetaObject::with_client_context(
        revision.clone(),
        client.client_info.clone(),
        client.capabilities.clone(),
    );
    let mut discover = DiscoverRequest::new(DiscoverRequestParams {});
    discover.extensions.insert(meta);
    ClientJsonRpcMessage::request(ClientRequest::DiscoverRequest(discover), DISCOVER_ID)
}

fn initialize_request(client: &ClientConfig) -> ClientJsonRpcMessage {
    let initialize = InitializeRequest::new(client.clone());
    ClientJsonRpcMessage::request(ClientRequest::InitializeRequest(initialize), INITIALIZE_ID)
}

#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used)]
mod tests {
    use rmcp::model::{ClientCapabilities, Implementation};
    use serde_json::json;
    use zeroize::Zeroizing;

    use super::*;
    use crate::transport::{Diagnostics, ProcessCommand};

    /// Starts a process that answers both requests of the probe after it has received them, and no other request.
    fn start(discovered: &str) -> ChildTransport {
        let initialized = json!({
            "protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "test", "version": "1"},
        });
        let script = format!(
            "read first; read second; printf '%s\\n' '{{\"jsonrpc\":\"2.0\",\"id\":4000000001,{discovered}}}' \
             '{{\"jsonrpc\":\"2.0\",\"id\":4000000002,\"result\":{initialized}}}'; cat >/dev/null"
        );
        let command = ProcessCommand {
            program: "/bin/sh".to_owned(),
            arguments: vec![Zeroizing::new("-c".to_owned()), Zeroizing::new(script)],
            variables: vec![("PATH".to_owned(), Zeroizing::new("/usr/bin:/bin".to_owned()))],
            directory: None,
        };
        ChildTransport::start(&command, Diagnostics::default()).unwrap()
    }

    async fn probe(discovered: &str) -> (ChildTransport, ClientLifecycleMode) {
        let mut transport = start(discovered);
        let client = ClientConfig::new(ClientCapabilities::default(), Implementation::new("test", "1"));
        let revisions = vec![ProtocolVersion::V_2026_07_28];
        let lifecycle = lifecycle_of(&mut transport, &client, revisions, Duration::from_millis(1)).await;
        (transport, lifecycle.unwrap())
    }

    #[tokio::test]
    async fn a_server_that_answers_late_is_not_asked_again() {
        let (mut transport, lifecycle) = probe("\"error\":{\"code\":-32601,\"message\":\"unknown\"}").await;
        assert_eq!(lifecycle, ClientLifecycleMode::Initialize);
        let client = ClientConfig::new(ClientCapabilities::default(), Implementation::new("test", "1"));
        let request = ClientRequest::InitializeRequest(InitializeRequest::new(client));
        transport
            .send(ClientJsonRpcMessage::request(request, RequestId::Number(0)))
            .await
            .unwrap();
        let answer = transport.receive().await.unwrap();
        assert_eq!(answered_id(&answer), Some(&RequestId::Number(0)));
        assert!(matches!(answer, JsonRpcMessage::Response(_)));
    }

    #[tokio::test]
    async fn a_stateless_server_that_answers_late_is_used_without_a_handshake() {
        let discovered = json!({
            "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
            "ttlMs": 60_000, "cacheScope": "public",
        });
        let (_transport, lifecycle) = probe(&format!("\"result\":{discovered}")).await;
        assert!(
            matches!(lifecycle, ClientLifecycleMode::Discover { .. }),
            "{lifecycle:?}"
        );
    }
}
