//! The Anthropic messages API.

mod dialect;
mod history;
mod reader;
mod reasoning;

pub use dialect::Messages;

use crate::client::ModelClient;

/// A model behind the Anthropic messages API.
pub type Anthropic = ModelClient<Messages>;

#[cfg(test)]
mod tests;
