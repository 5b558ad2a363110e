//! Answers that a server has given before the protocol library requests them.

use rmcp::model::{ClientJsonRpcMessage, ClientRequest, JsonRpcMessage, RequestId, ServerJsonRpcMessage};

/// An answer that the server has already given. The next request for it is not sent to the server.
pub(crate) enum RehearsedAnswer {
    /// The answer to `server/discover`.
    Discover(ServerJsonRpcMessage),
    /// The answer to `initialize`.
    Initialize(ServerJsonRpcMessage),
}

impl RehearsedAnswer {
    /// Returns whether a message requests this answer.
    pub(super) fn answers(&self, message: &ClientJsonRpcMessage) -> bool {
        let JsonRpcMessage::Request(request) = message else {
            return false;
        };
        matches!(
            (self, &request.request),
            (Self::Discover(_), ClientRequest::DiscoverRequest(_))
                | (Self::Initialize(_), ClientRequest::InitializeRequest(_))
        )
    }

    /// Returns the answer to the request with this id.
    pub(super) fn with_id(self, id: RequestId) -> ServerJsonRpcMessage {
        let (Self::Discover(mut answer) | Self::Initialize(mut answer)) = self;
        match &mut answer {
            JsonRpcMessage::Response(response) => response.id = id,
            JsonRpcMessage::Error(error) => error.id = Some(id),
            _ => {}
        }
        answer
    }
}
