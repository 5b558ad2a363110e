//! Output of commands: text for people, JSON documents for programs.

pub(crate) mod answer_stream;
pub(crate) mod conversation;
pub(crate) mod definition;
pub(crate) mod flags;
pub(crate) mod logging;
pub(crate) mod markdown;
pub(crate) mod package;
pub(crate) mod page;
pub(crate) mod printer;
pub(crate) mod progress;
pub(crate) mod schema;
pub(crate) mod server;
pub(crate) mod stream_preview;
pub(crate) mod tool_output;
mod wrap;
