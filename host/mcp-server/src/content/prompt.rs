//! Prompts of a content file.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{ContentBlock, JsonObject, Prompt, PromptArgument, PromptMessage, ResourceContents, Role};
use serde_json::Value;

use super::content_file::{ArgumentEntry, MessageEntry, PromptEntry, RoleEntry};
use super::source::{ContentSource, fill_placeholders, mime_type_of, placeholders};
use super::uri_template::Variables;

/// Maximum length of an argument, in bytes.
const ARGUMENT_BYTES_MAX: usize = 64 << 10;

/// A prompt of a content file.
#[derive(Debug)]
pub(crate) struct ServedPrompt {
    name: String,
    title: Option<String>,
    description: Option<String>,
    arguments: Vec<ArgumentEntry>,
    messages: Vec<TemplateMessage>,
}

/// A message of a prompt, with placeholders for the arguments.
#[derive(Debug)]
struct TemplateMessage {
    role: Role,
    content: TemplateContent,
}

#[derive(Debug)]
enum TemplateContent {
    Text(ContentSource),
    Image {
        source: ContentSource,
        mime_type: &'static str,
    },
    /// The URI of a resource of the same content file.
    Resource(String),
}

/// A required argument that a request does not have.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct MissingArgument<'p> {
    pub(crate) name: &'p str,
    /// The question for the user, if the prompt has one.
    pub(crate) question: Option<&'p str>,
}

impl ServedPrompt {
    /// Creates a prompt from an entry of a content file in `directory`.
    ///
    /// # Errors
    /// The reason why the entry is invalid.
    pub(super) fn new(entry: PromptEntry, directory: &Path) -> Result<Self, String> {
        let is_argument = |name: &str| entry.argument.iter().any(|argument| argument.name == name);
        let mut messages = Vec::with_capacity(entry.message.len());
        for message in entry.message {
            messages.push(TemplateMessage::new(message, directory, &is_argument)?);
        }
        if messages.is_empty() {
            return Err("it has no `message`".to_owned());
        }
        Ok(Self {
            name: entry.name,
            title: entry.title,
            description: entry.description,
            arguments: entry.argument,
            messages,
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn description(&self) -> Option<&str> {
        self.description.as_deref()
    }

    /// Returns the suggested values of an argument, or `None` if the prompt has no such argument.
    pub(super) fn values(&self, argument: &str) -> Option<&[String]> {
        let argument = self.arguments.iter().find(|candidate| candidate.name == argument)?;
        Some(&argument.values)
    }

    /// Returns the entry of the list of prompts.
    pub(super) fn list_entry(&self) -> Prompt {
        let arguments = self.arguments.iter().map(|argument| {
            let mut entry = PromptArgument::new(argument.name.clone()).with_required(argument.required);
            entry.description.clone_from(&argument.description);
            entry
        });
        let arguments: Vec<_> = arguments.collect();
        let arguments = (!arguments.is_empty()).then_some(arguments);
        let mut entry = Prompt::new(self.name.clone(), self.description.clone(), arguments);
        entry.title.clone_from(&self.title);
        entry
    }

    /// Checks the arguments of a request, and returns their values.
    ///
    /// # Errors
    /// A message for the client, if an argument is unknown, is not a string or is too long.
    pub(crate) fn check_arguments(&self, arguments: JsonObject) -> Result<Variables, String> {
        let mut values = Variables::new();
        for (name, value) in arguments {
            let Value::String(value) = value else {
                return Err(format!("the argument `{}` must be a string", name.escape_debug()));
            };
            if !self.arguments.iter().any(|argument| argument.name == name) {
                return Err(format!(
                    "the prompt `{}` has no argument `{}`",
                    self.name,
                    name.escape_debug()
                ));
            }
            if value.len() > ARGUMENT_BYTES_MAX {
                return Err(format!(
                    "the argument `{name}` is longer than {ARGUMENT_BYTES_MAX} bytes"
                ));
            }
            values.insert(name, value);
        }
        Ok(values)
    }

    /// Returns the first required argument that is missing.
    pub(crate) fn first_missing(&self, values: &Variables) -> Option<MissingArgument<'_>> {
        let missing = self
            .arguments
            .iter()
            .find(|argument| argument.required && !values.contains_key(&argument.name))?;
        Some(MissingArgument {
            name: &missing.name,
            question: missing.ask.as_deref(),
        })
    }

    /// Returns the messages. Placeholders in texts, text files and URIs of resources are replaced by the values. `resource`
    /// reads a resource.
    ///
    /// # Errors
    /// The reason why a message cannot be read, for the log of the server.
    pub(super) fn messages(
        &self,
        values: &Variables,
        resource: impl Fn(&str) -> Result<ResourceContents, String>,
    ) -> Result<Vec<PromptMessage>, String> {
        let messages = self.messages.iter().map(|message| {
            let content = match &message.content {
                TemplateContent::Text(source) => {
                    let bytes = source.bytes()?;
                    let text = String::from_utf8(bytes).map_err(|_| "a message is not UTF-8".to_owned())?;
                    ContentBlock::text(fill_placeholders(&text, values, str::to_owned))
                }
                TemplateContent::Image { source, mime_type } => {
                    let bytes = source.bytes()?;
                    ContentBlock::image(STANDARD.encode(bytes), *mime_type)
                }
                TemplateContent::Resource(uri) => {
                    ContentBlock::resource(resource(&fill_placeholders(uri, values, str::to_owned))?)
                }
            };
            Ok(PromptMessage::new(message.role.clone(), content))
        });
        messages.collect()
    }
}

impl TemplateMessage {
    fn new(entry: MessageEntry, directory: &Path, is_argument: &dyn Fn(&str) -> bool) -> Result<Self, String> {
        let check_placeholders = |text: &str| match placeholders(text).into_iter().find(|name| !is_argument(name)) {
            Some(unknown) => Err(format!("`{{{{{unknown}}}}}` is not an argument")),
            None => Ok(()),
        };
        let file_source = |path: String| ContentSource::File {
            directory: directory.to_owned(),
            path,
        };
        let content = match (entry.text, entry.file, entry.image, entry.resource) {
            (Some(text), None, None, None) => {
                check_placeholders(&text)?;
                TemplateContent::Text(ContentSource::Text(text))
            }
            (None, Some(path), None, None) => TemplateContent::Text(file_source(path)),
            (None, None, Some(path), None) => {
                let mime_type = mime_type_of(&path);
                if !mime_type.starts_with("image/") {
                    return Err(format!("`{path}` is not a png, jpg, gif, webp or svg file"));
                }
                let source = file_source(path);
                TemplateContent::Image { source, mime_type }
            }
            (None, None, None, Some(uri)) => {
                check_placeholders(&uri)?;
                TemplateContent::Resource(uri)
            }
            _ => return Err("a message must have exactly one of `text`, `file`, `image` and `resource`".to_owned()),
        };
        let role = match entry.role {
            RoleEntry::User => Role::User,
            RoleEntry::Assistant => Role::Assistant,
        };
        Ok(Self { role, content })
    }
}
