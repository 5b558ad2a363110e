//! The OpenAI responses API.

mod dialect;
mod history;
mod namespaces;
mod reader;

pub use dialect::Responses;

use crate::client::ModelClient;

/// A model behind the OpenAI responses API. Responses are not stored at the provider.
pub type OpenAiResponses = ModelClient<Responses>;

#[cfg(test)]
mod tests;
