//! The format of a content file, which [`ServedContent`](super::ServedContent) describes.

use serde::Deserialize;

/// The entries of a content file, before they are checked.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ContentFile {
    #[serde(default)]
    pub(super) prompt: Vec<PromptEntry>,
    #[serde(default)]
    pub(super) resource: Vec<ResourceEntry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PromptEntry {
    pub(super) name: String,
    pub(super) title: Option<String>,
    pub(super) description: Option<String>,
    #[serde(default)]
    pub(super) argument: Vec<ArgumentEntry>,
    pub(super) message: Vec<MessageEntry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ArgumentEntry {
    pub(super) name: String,
    pub(super) description: Option<String>,
    #[serde(default = "required_by_default")]
    pub(super) required: bool,
    /// The question that asks the user for a missing argument.
    pub(super) ask: Option<String>,
    /// Suggested values.
    #[serde(default)]
    pub(super) values: Vec<String>,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum RoleEntry {
    #[default]
    User,
    Assistant,
}

/// A message of a prompt. It must have exactly one of the fields `text`, `file`, `image` and `resource`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MessageEntry {
    #[serde(default)]
    pub(super) role: RoleEntry,
    pub(super) text: Option<String>,
    /// The path of a text file.
    pub(super) file: Option<String>,
    /// The path of an image file.
    pub(super) image: Option<String>,
    /// The URI of a resource of the same content file.
    pub(super) resource: Option<String>,
}

/// A resource or a template of resources. It must have exactly one of the fields `text` and `file`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ResourceEntry {
    /// A URI, or a URI template with variables in braces.
    pub(super) uri: String,
    pub(super) name: Option<String>,
    pub(super) title: Option<String>,
    pub(super) description: Option<String>,
    pub(super) mime_type: Option<String>,
    pub(super) text: Option<String>,
    pub(super) file: Option<String>,
    #[serde(default)]
    pub(super) variable: Vec<VariableEntry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct VariableEntry {
    pub(super) name: String,
    /// The values that the variable can have. If the list is empty, the variable can have any value.
    #[serde(default)]
    pub(super) values: Vec<String>,
}

fn required_by_default() -> bool {
    true
}
