//! Prompts and resources: those of a content file, and the documentation of plugins.

mod completion;
mod content_file;
mod plugin_docs;
mod prompt;
mod resource;
mod served_content;
mod source;
mod uri_template;

pub(crate) use completion::complete;
pub(crate) use plugin_docs::PluginDocs;
pub(crate) use prompt::{MissingArgument, ServedPrompt};
pub use served_content::ServedContent;
