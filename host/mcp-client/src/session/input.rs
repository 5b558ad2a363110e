//! Answers to a server's requests for input.

#![expect(deprecated, reason = "older servers still ask for roots and inferences")]

use std::path::PathBuf;
use std::sync::Arc;

use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationCapability,
    ErrorCode, ErrorData, FormElicitationCapability, Implementation, InputRequest, ListRootsResult, ProtocolVersion,
    Root,
};
use serde_json::Value;
use url::Url;

use crate::config::ServerConfig;
use crate::requests::{ServerAnswer, ServerQuestion, ServerRequests};
use crate::value::Redaction;
use toolwit_core::limits::DESCRIPTION_CHARS_MAX;

/// Answers the requests of one server. The policy of the client decides about questions and inferences. Roots come from
/// the configuration of the server.
#[derive(Clone)]
pub(super) struct InputProvider {
    /// The name of the server.
    server: String,
    roots: Vec<PathBuf>,
    /// The policy of the client.
    requests: Arc<dyn ServerRequests>,
    /// The secrets that the server received.
    redaction: Redaction,
}

impl InputProvider {
    pub(super) fn new(config: &ServerConfig, requests: Arc<dyn ServerRequests>, redaction: Redaction) -> Self {
        Self {
            server: config.name.clone(),
            roots: config.roots.clone(),
            requests,
            redaction,
        }
    }

    /// Returns the name and the capabilities of the client. A capability is declared only if the client answers its
    /// requests.
    pub(super) fn client_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        if self.requests.answers_questions() {
            capabilities.elicitation = Some(ElicitationCapability::new().with_form(FormElicitationCapability::new()));
        }
        if self.requests.offers_inference() {
            capabilities.sampling = Some(Default::default());
        }
        if !self.roots.is_empty() {
            capabilities.roots = Some(Default::default());
        }
        let client = Implementation::new("toolwit", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(capabilities, client).with_protocol_version(ProtocolVersion::V_2025_11_25)
    }

    /// Passes a question to the policy of the client. A question that is not a form with fields is declined.
    pub(super) async fn elicit(&self, parameters: ElicitRequestParams) -> ElicitResult {
        let ElicitRequestParams::FormElicitationParams {
            message,
            requested_schema,
            ..
        } = parameters
        else {
            return ElicitResult::new(ElicitationAction::Decline);
        };
        if !self.requests.answers_questions() {
            return ElicitResult::new(ElicitationAction::Decline);
        }
        let mut schema = serde_json::to_value(requested_schema).unwrap_or_default();
        self.redaction.redact_value(&mut schema);
        let question = ServerQuestion {
            server: self.server.clone(),
            message: self.redaction.beginning(&message, DESCRIPTION_CHARS_MAX),
            schema,
        };
        match self.requests.answer(question).await {
            ServerAnswer::Accepted(values) => {
                ElicitResult::new(ElicitationAction::Accept).with_content(Value::Object(values))
            }
            ServerAnswer::Declined => ElicitResult::new(ElicitationAction::Decline),
            ServerAnswer::Cancelled => ElicitResult::new(ElicitationAction::Cancel),
        }
    }

    /// Performs an inference with the model of the client, if the policy offers it.
    pub(super) async fn infer(&self, mut parameters: Value) -> Result<Value, ErrorData> {
        if !self.requests.offers_inference() {
            return Err(refusal("the client does not offer its model"));
        }
        self.redaction.redact_value(&mut parameters);
        let result = self.requests.infer(&self.server, parameters).await;
        result.map_err(|why| refusal(&why))
    }

    /// Returns the configured roots. Relative paths are left out, because they have no URL.
    pub(super) fn roots(&self) -> ListRootsResult {
        let roots = self.roots.iter().filter_map(|path| Url::from_directory_path(path).ok());
        ListRootsResult::new(roots.map(Root::new).collect())
    }

    /// Answers a request for input that the server sent as the result of a call.
    pub(super) async fn answer(&self, request: InputRequest) -> Result<Value, ErrorData> {
        let serialisation_error = |_| refusal("the answer cannot be written as JSON");
        match request {
            InputRequest::Elicitation(request) => {
                serde_json::to_value(self.elicit(request.params).await).map_err(serialisation_error)
            }
            InputRequest::CreateMessage(request) => {
                let parameters = serde_json::to_value(request.params).map_err(serialisation_error)?;
                self.infer(parameters).await
            }
            InputRequest::ListRoots(_) => serde_json::to_value(self.roots()).map_err(serialisation_error),
            _ => Err(refusal("the client does not answer this request")),
        }
    }
}

/// Returns the error for a request that the client does not answer.
fn refusal(why: &str) -> ErrorData {
    ErrorData::new(ErrorCode::INVALID_REQUEST, why.to_owned(), None)
}
