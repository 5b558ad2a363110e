//! Requests of a tool to the client.
#![allow(
    deprecated,
    reason = "revision 2026-07-28 deprecates sampling and roots, and clients use them"
)]

use rmcp::model::{
    ClientCapabilities, ClientResult, CreateMessageRequest, CreateMessageRequestParams, CreateMessageResult,
    ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationCapability, InputRequest, ListRootsResult,
    RootsCapabilities, SamplingCapability, SamplingMessage, ServerRequest,
};
use serde_json::Value;

use toolwit::{Error, ErrorKind, Phase};

/// A request of a tool to the MCP client that called the tool. The answers are as trustworthy as the client.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ClientRequest {
    /// Asks the user to fill in a form. The answer is an `ElicitResult` with `action` and `content`.
    Form {
        /// The question.
        message: String,
        /// The schema of the form: an object with properties of primitive types.
        schema: Value,
    },
    /// Asks the model of the client. The answer is a `CreateMessageResult` with `content` and `model`.
    Sample {
        /// The message of the user.
        prompt: String,
        /// Maximum number of tokens of the answer.
        tokens_max: u32,
    },
    /// Asks for the directories that the client works on. The answer is a `ListRootsResult` with `roots`.
    Roots,
}

impl ClientRequest {
    /// Converts the request to its protocol type.
    ///
    /// # Errors
    /// If the protocol does not allow the schema of a form.
    pub(super) fn to_wire(&self) -> Result<InputRequest, Error> {
        Ok(match self {
            Self::Form { message, schema } => {
                let requested_schema = serde_json::from_value(schema.clone()).map_err(|error| {
                    let message = format!("the schema of a form is invalid: {error}");
                    Error::new(ErrorKind::Configuration, Phase::Execute, message)
                })?;
                InputRequest::Elicitation(ElicitRequest::new(ElicitRequestParams::FormElicitationParams {
                    meta: None,
                    message: message.clone(),
                    requested_schema,
                }))
            }
            Self::Sample { prompt, tokens_max } => {
                let messages = vec![SamplingMessage::user_text(prompt)];
                let params = CreateMessageRequestParams::new(messages, *tokens_max);
                InputRequest::CreateMessage(CreateMessageRequest::new(params))
            }
            Self::Roots => InputRequest::ListRoots(Default::default()),
        })
    }
}

/// Returns the capability that a request needs, if the client lacks it. `None` if the client has the capability.
pub(super) fn missing_capability(request: &InputRequest, client: &ClientCapabilities) -> Option<ClientCapabilities> {
    let mut missing = ClientCapabilities::default();
    let has_capability = match request {
        InputRequest::Elicitation(_) => {
            missing.elicitation = Some(ElicitationCapability::default());
            // A client that declares no mode supports forms.
            let modes = client.elicitation.as_ref();
            modes.is_some_and(|modes| modes.form.is_some() || modes.url.is_none())
        }
        InputRequest::CreateMessage(_) => {
            missing.sampling = Some(SamplingCapability::default());
            client.sampling.is_some()
        }
        InputRequest::ListRoots(_) => {
            missing.roots = Some(RootsCapabilities::default());
            client.roots.is_some()
        }
        _ => false,
    };
    (!has_capability).then_some(missing)
}

/// Returns the name of the capability for a request.
pub(super) fn capability_name(request: &InputRequest) -> &'static str {
    match request {
        InputRequest::Elicitation(_) => "elicitation",
        InputRequest::CreateMessage(_) => "sampling",
        _ => "roots",
    }
}

/// Converts a request for input to a request that the server sends during a call. `None` for an unknown variant.
pub(super) fn server_request(request: InputRequest) -> Option<ServerRequest> {
    match request {
        InputRequest::Elicitation(form) => Some(ServerRequest::ElicitRequest(form)),
        InputRequest::CreateMessage(sample) => Some(ServerRequest::CreateMessageRequest(sample)),
        InputRequest::ListRoots(roots) => Some(ServerRequest::ListRootsRequest(roots)),
        _ => None,
    }
}

/// Returns the JSON of an answer to a request for input. `None` for the result of any other request.
pub(super) fn answer_value(answer: ClientResult) -> Option<Value> {
    match answer {
        ClientResult::ElicitResult(answer) => serde_json::to_value(answer).ok(),
        ClientResult::CreateMessageResult(answer) => serde_json::to_value(answer).ok(),
        ClientResult::ListRootsResult(answer) => serde_json::to_value(answer).ok(),
        _ => None,
    }
}

/// Returns whether an answer has the type that its request needs.
pub(super) fn is_valid_answer(request: &InputRequest, answer: &Value) -> bool {
    match request {
        InputRequest::Elicitation(_) => serde_json::from_value::<ElicitResult>(answer.clone()).is_ok(),
        InputRequest::CreateMessage(_) => serde_json::from_value::<CreateMessageResult>(answer.clone()).is_ok(),
        InputRequest::ListRoots(_) => serde_json::from_value::<ListRootsResult>(answer.clone()).is_ok(),
        _ => false,
    }
}
