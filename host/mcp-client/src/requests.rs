//! Requests of a server to its client: questions to the user (elicitation), and inferences with the client's model
//! (sampling).

use async_trait::async_trait;
use serde_json::{Map, Value};

/// A question of a server to the user.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerQuestion {
    /// The name of the server.
    pub server: String,
    /// The question. The text is untrusted: show the user that it comes from the server.
    pub message: String,
    /// The JSON Schema of the answer: an object with fields of simple types.
    pub schema: Value,
}

/// The answer to a question of a server.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerAnswer {
    /// The user answers with these values.
    Accepted(Map<String, Value>),
    /// The user refuses to answer.
    Declined,
    /// The user closes the question without a decision.
    Cancelled,
}

/// The policy that answers the requests of servers to the client. By default, all requests are refused: a server receives
/// only the data that calls send.
///
/// The client declares the answered requests to each server, so that the server does not send others. Requests for roots
/// are not decided by this policy: [`ServerConfig::roots`](crate::ServerConfig::roots) answers them.
#[async_trait]
pub trait ServerRequests: Send + Sync {
    /// Returns whether questions to the user are answered.
    fn answers_questions(&self) -> bool {
        false
    }

    /// Answers a question to the user. The answer must not contain secrets.
    async fn answer(&self, _question: ServerQuestion) -> ServerAnswer {
        ServerAnswer::Declined
    }

    /// Returns whether servers may use a language model of the client. The protocol deprecates this use since revision
    /// 2026-07-28.
    fn offers_inference(&self) -> bool {
        false
    }

    /// Performs an inference with the parameters of `sampling/createMessage`, and returns the result of this method.
    ///
    /// # Errors
    /// The reason why there is no result. The server receives this text.
    async fn infer(&self, _server: &str, _parameters: Value) -> Result<Value, String> {
        Err("the client does not offer its model".to_owned())
    }
}

/// Refuses all requests of servers.
#[derive(Clone, Copy, Debug, Default)]
pub struct RefuseRequests;

impl ServerRequests for RefuseRequests {}
