//! Prompts and resources: those of a content file, and the documentation and user interfaces of plugins.

mod completion;
mod content_file;
mod interfaces;
mod plugin_docs;
mod prompt;
mod resource;
mod served_content;
mod source;
mod uri_template;

pub(crate) use completion::complete;
pub(crate) use interfaces::{Interfaces, shows_interfaces, without_interface};
pub(crate) use plugin_docs::PluginDocs;
pub(crate) use prompt::{MissingArgument, ServedPrompt};
pub use served_content::ServedContent;
pub(crate) use source::FileStamp;
