//! The prompts and resources that a server offers in addition to tools.

use std::collections::BTreeMap;
use std::path::Path;

use rmcp::model::{Prompt, PromptMessage, Resource, ResourceContents, ResourceTemplate};

use super::content_file::ContentFile;
use super::prompt::ServedPrompt;
use super::resource::ServedResource;
use super::source::FileStamp;
use super::uri_template::Variables;
use toolwit::tool::file::read_text_file;
use toolwit::{Error, ErrorKind, Phase};

/// Maximum size of a content file, in bytes.
const CONTENT_BYTES_MAX: u64 = 1 << 20;

/// Prompts and resources that an operator writes for the clients of a server, in a content file:
///
/// ```toml
/// [[prompt]]
/// name = "review"
/// description = "Reviews a change"
/// argument = [{ name = "language", values = ["Rust", "Go"], ask = "Which language?" }]
/// message = [{ text = "Review this {{language}} code by our rules:" }, { resource = "rules://review" }]
///
/// [[resource]]
/// uri = "rules://review"
/// text = "Errors have a hint."
///
/// [[resource]]
/// uri = "notes://{topic}"        # a template
/// file = "notes/{{topic}}.md"    # the value is one file name, without a directory
/// ```
///
/// The files that an entry names must be in the directory of the content file, or below it. They are read for each
/// request, so that clients see their changes.
#[derive(Debug, Default)]
pub struct ServedContent {
    prompts: Vec<ServedPrompt>,
    resources: Vec<ServedResource>,
}

impl ServedContent {
    /// Reads a content file. Paths in the file are relative to the directory of the file.
    ///
    /// # Errors
    /// If the file cannot be read, or is invalid.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let failed = |problem: String| {
            let message = format!("the content file `{}` {problem}", path.display());
            Error::new(ErrorKind::Configuration, Phase::Registry, message)
        };
        let text = read_text_file(path, CONTENT_BYTES_MAX);
        let text = text.map_err(|error| failed(format!("cannot be read: {error}")))?;
        let directory = path.parent().unwrap_or(Path::new(""));
        let directory = if directory.as_os_str().is_empty() {
            Path::new(".")
        } else {
            directory
        };
        Self::from_toml(&text, directory).map_err(|error| failed(format!("is invalid: {}", error.message)))
    }

    /// Parses the text of a content file. Paths in the text are relative to `directory`.
    ///
    /// # Errors
    /// If the text is not TOML or has unknown or missing keys, the name of a prompt or the URI of a resource is repeated,
    /// or an entry is invalid, for example because of an unknown placeholder.
    pub fn from_toml(text: &str, directory: &Path) -> Result<Self, Error> {
        let invalid = |message: String| Error::new(ErrorKind::Configuration, Phase::Registry, message);
        let file: ContentFile = toml::from_str(text).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start.min(text.len()));
            let line = text[..start].lines().count().max(1);
            invalid(format!("line {line}: {}", error.message().trim()))
        })?;
        let mut content = Self::default();
        for entry in file.prompt {
            let name = entry.name.clone();
            if content.prompt(&name).is_some() {
                return Err(invalid(format!("two prompts are named `{name}`")));
            }
            let prompt = ServedPrompt::new(entry, directory);
            content
                .prompts
                .push(prompt.map_err(|problem| invalid(format!("prompt `{name}`: {problem}")))?);
        }
        for entry in file.resource {
            let uri = entry.uri.clone();
            if content.resources.iter().any(|earlier| earlier.uri() == uri) {
                return Err(invalid(format!("two resources have the URI `{uri}`")));
            }
            let resource = ServedResource::new(entry, directory);
            content
                .resources
                .push(resource.map_err(|problem| invalid(format!("resource `{uri}`: {problem}")))?);
        }
        Ok(content)
    }

    pub(crate) fn prompts(&self) -> Vec<Prompt> {
        self.prompts.iter().map(ServedPrompt::list_entry).collect()
    }

    pub(crate) fn prompt(&self, name: &str) -> Option<&ServedPrompt> {
        self.prompts.iter().find(|prompt| prompt.name() == name)
    }

    /// Returns the messages of a prompt, with the values of its arguments.
    ///
    /// # Errors
    /// The reason why a message cannot be read, for the log of the server.
    pub(crate) fn messages(&self, prompt: &ServedPrompt, values: &Variables) -> Result<Vec<PromptMessage>, String> {
        prompt.messages(values, |uri| {
            self.resource(uri)
                .unwrap_or_else(|| Err(format!("no resource has the URI `{}`", uri.escape_debug())))
        })
    }

    pub(crate) fn resources(&self) -> Vec<Resource> {
        let resources = self.resources.iter().filter(|resource| !resource.is_template());
        resources.map(ServedResource::list_entry).collect()
    }

    pub(crate) fn templates(&self) -> Vec<ResourceTemplate> {
        let templates = self.resources.iter().filter(|resource| resource.is_template());
        templates.map(ServedResource::template_list_entry).collect()
    }

    /// Returns the resource or template whose `uri` in the content file is this text.
    pub(super) fn template(&self, uri: &str) -> Option<&ServedResource> {
        self.resources.iter().find(|resource| resource.uri() == uri)
    }

    /// Returns the contents at a URI. `None` if no resource has this URI, and no template matches it. A resource takes
    /// precedence over a template.
    ///
    /// # Errors
    /// The reason why the contents cannot be read, for the log of the server.
    pub(crate) fn resource(&self, uri: &str) -> Option<Result<ResourceContents, String>> {
        let (templates, fixed): (Vec<_>, Vec<_>) = self.resources.iter().partition(|resource| resource.is_template());
        fixed
            .into_iter()
            .chain(templates)
            .find_map(|resource| resource.read(uri))
    }

    /// Returns the stamps of the files of resources, by URI. A template has no stamp, because it can have several files.
    pub(crate) fn stamps(&self) -> BTreeMap<String, FileStamp> {
        let fixed = self.resources.iter().filter(|resource| !resource.is_template());
        fixed
            .filter_map(|resource| Some((resource.uri().to_owned(), resource.stamp()?)))
            .collect()
    }
}
