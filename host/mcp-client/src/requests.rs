//! Requests of a server to its client: questions to the user, and inferences.

use async_trait::async_trait;
use serde_json::{Map, Value};

/// A question of a server to the user.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerQuestion {
    /// The name of the server.
    pub server: String,
    /// The question. The server wrote it: show it as a quotation of the server.
    pub message: String,
    /// JSON Schema of the answer: an object with fields of simple types.
    pub schema: Value,
}

/// The answer to a question of a server.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerAnswer {
    /// The user gives these values.
    Accepted(Map<String, Value>),
    /// The user refuses to answer.
    Declined,
    /// The user closes the question without a decision.
    Cancelled,
}

/// Answers the requests of servers. By default, all are refused: a server learns only what a call sends it.
///
/// The client declares to each server which requests are answered, so that the server does not send others.
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

    /// Returns whether the server may use a language model of the client. The protocol discourages this use since its
    /// revision 2026-07-28.
    fn offers_inference(&self) -> bool {
        false
    }

    /// Performs an inference with the parameters of `sampling/createMessage`, and returns its result.
    ///
    /// # Errors
    /// The reason of a refusal, which the server receives.
    async fn infer(&self, _server: &str, _parameters: Value) -> Result<Value, String> {
        Err("the client does not offer its model".to_owned())
    }
}

/// Refuses all requests of servers.
#[derive(Clone, Copy, Debug, Default)]
pub struct RefuseRequests;

impl ServerRequests for RefuseRequests {}
