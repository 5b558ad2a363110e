//! Prompts and resources of a content file, and the documentation and user interfaces of plugins as resources.

mod completion;
mod content_file;
mod plugin_docs;
mod prompt;
mod resource;
mod served_content;
mod source;
mod ui_pages;
mod uri_template;

pub(crate) use completion::complete;
pub(crate) use plugin_docs::PluginDocs;
pub(crate) use prompt::{MissingArgument, ServedPrompt};
pub use served_content::ServedContent;
pub(crate) use source::FileStamp;
pub(crate) use ui_pages::{UiPages, supports_ui, without_ui};
