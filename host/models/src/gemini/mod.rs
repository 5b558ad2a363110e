//! The Gemini API: `generateContent` and `streamGenerateContent`.

mod dialect;
mod history;
mod reader;

pub use dialect::GenerateContent;

use crate::client::ModelClient;

/// A model behind the Gemini API.
pub type Gemini = ModelClient<GenerateContent>;

#[cfg(test)]
mod tests;
