//! Tool calling for models without an API for it: the prompt describes the tools, and calls are read from the response's text.
//!
//! [`PromptedTools`] decorates the client of a model. Requests to the client have no tools and no results of calls, only
//! messages of the system, the user and the model.

mod answer_stream;
mod call_text;
mod format;
mod instructions;
mod json_reply;
mod messages;
mod prompted_tools;
mod reply;
mod reply_schema;
mod text_stream;

pub use format::ToolCallFormat;
pub use prompted_tools::PromptedTools;

#[cfg(test)]
mod tests;
