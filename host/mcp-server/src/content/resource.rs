//! Resources of a content file.

use std::path::Path;

use rmcp::model::{Resource, ResourceContents, ResourceTemplate};

use super::content_file::{ResourceEntry, VariableEntry};
use super::source::{ContentSource, FileStamp, json_escaped, mime_type_of, placeholders, resource_contents};
use super::uri_template::{UriTemplate, Variables};

/// A resource of a content file, or a template of resources.
#[derive(Debug)]
pub(super) struct ServedResource {
    /// The URI. It has variables if this is a template of resources.
    template: UriTemplate,
    name: String,
    title: Option<String>,
    description: Option<String>,
    mime_type: String,
    source: ContentSource,
    variables: Vec<VariableEntry>,
}

impl ServedResource {
    /// Creates a resource or a template from an entry of a content file in `directory`.
    ///
    /// # Errors
    /// The reason why the entry is invalid.
    pub(super) fn new(entry: ResourceEntry, directory: &Path) -> Result<Self, String> {
        let template = UriTemplate::parse(&entry.uri)?;
        if !has_scheme(&entry.uri) {
            return Err("`uri` must have a scheme, such as `notes://index`".to_owned());
        }
        let (source, mime_type, template_text) = match (entry.text, entry.file) {
            (Some(text), None) => (ContentSource::Text(text.clone()), "text/plain", text),
            (None, Some(path)) => {
                let (directory, mime_type) = (directory.to_owned(), mime_type_of(&path));
                let template_text = path.clone();
                (ContentSource::File { directory, path }, mime_type, template_text)
            }
            _ => return Err("it must have either `text` or `file`".to_owned()),
        };
        let is_variable = |name: &str| template.variables().any(|variable| variable == name);
        if let Some(unknown) = placeholders(&template_text).into_iter().find(|name| !is_variable(name)) {
            return Err(format!("`{{{{{unknown}}}}}` is not a variable of `uri`"));
        }
        if let Some(unknown) = entry.variable.iter().find(|variable| !is_variable(&variable.name)) {
            return Err(format!("the variable `{}` is not in `uri`", unknown.name));
        }
        Ok(Self {
            name: entry.name.unwrap_or_else(|| entry.uri.clone()),
            title: entry.title,
            description: entry.description,
            mime_type: entry.mime_type.unwrap_or_else(|| mime_type.to_owned()),
            source,
            variables: entry.variable,
            template,
        })
    }

    pub(super) fn uri(&self) -> &str {
        self.template.text()
    }

    pub(super) fn is_template(&self) -> bool {
        self.template.variables().next().is_some()
    }

    /// Returns the entry of the list of resources.
    pub(super) fn list_entry(&self) -> Resource {
        let mut entry = Resource::new(self.uri(), self.name.clone()).with_mime_type(self.mime_type.clone());
        entry.title.clone_from(&self.title);
        entry.description.clone_from(&self.description);
        entry
    }

    /// Returns the entry of the list of templates.
    pub(super) fn template_list_entry(&self) -> ResourceTemplate {
        let mut entry = ResourceTemplate::new(self.uri(), self.name.clone()).with_mime_type(self.mime_type.clone());
        entry.title.clone_from(&self.title);
        entry.description.clone_from(&self.description);
        entry
    }

    /// Returns the contents at a URI. `None` if the URI does not match, if a value is not one of the listed values of
    /// its variable, or if no file exists for the values.
    ///
    /// # Errors
    /// The reason why the contents cannot be read, for the log of the server.
    pub(super) fn read(&self, uri: &str) -> Option<Result<ResourceContents, String>> {
        let values = self.template.match_uri(uri)?;
        if values.iter().any(|(name, value)| !self.allows(name, value)) {
            return None;
        }
        self.read_filled(uri, &values).transpose()
    }

    fn read_filled(&self, uri: &str, values: &Variables) -> Result<Option<ResourceContents>, String> {
        let escape = if self.mime_type.ends_with("json") {
            json_escaped
        } else {
            str::to_owned
        };
        let bytes = self.source.read(values, escape)?;
        Ok(bytes.map(|bytes| resource_contents(uri, &self.mime_type, bytes)))
    }

    fn allows(&self, name: &str, value: &str) -> bool {
        let values = self.values(name);
        values.is_empty() || values.iter().any(|allowed| allowed == value)
    }

    /// Returns the values that a variable can have. If the list is empty, the variable can have any value.
    pub(super) fn values(&self, name: &str) -> &[String] {
        let variable = self.variables.iter().find(|variable| variable.name == name);
        variable.map_or(&[], |variable| &variable.values)
    }

    /// Returns the stamp of the resource's file. `None` for text, and for a file whose metadata cannot be read.
    pub(super) fn stamp(&self) -> Option<FileStamp> {
        self.source.stamp()
    }
}

fn has_scheme(uri: &str) -> bool {
    let Some((scheme, after_scheme)) = uri.split_once(':') else {
        return false;
    };
    let is_scheme_char = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(is_scheme_char)
        && !after_scheme.is_empty()
}
