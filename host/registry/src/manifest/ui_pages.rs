//! The UI pages of a package: HTML documents in its component. Each is a user interface that shows the results of tools.
//!
//! The documents have the format of the extension MCP Apps (SEP-1865). [`pack`](crate::pack) embeds them in the component.

use std::collections::BTreeMap;

use toolwit_core::limits::{ByteCount, UI_BYTES_MAX};
use toolwit_core::{Error, ErrorKind, Phase};
use toolwit_sections::{UI_SECTION, custom_section};

use super::Manifest;

/// The UI pages of a package: HTML documents, by file name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct UiPages(BTreeMap<String, String>);

impl UiPages {
    /// Reads the documents that a component contains.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] if the section of the documents is too large, [`ErrorKind::MalformedComponent`] if it is
    /// invalid.
    pub(crate) fn embedded(component: &[u8]) -> Result<Self, Error> {
        let Some(section) = custom_section(component, UI_SECTION) else {
            return Ok(Self::default());
        };
        check_size(section.len())?;
        serde_json::from_slice(section).map(Self).map_err(|error| {
            let message = format!("its section `{UI_SECTION}` is not an object of HTML documents");
            Error::new(ErrorKind::MalformedComponent, Phase::Load, message).with_source(error)
        })
    }

    /// Collects the documents that a manifest names. `read` receives a file name and returns the content of the file, or
    /// `None` if there is no such file. In that case, the document is taken from the component.
    ///
    /// # Errors
    /// Those of `read` and of [`UiPages::embedded`]; [`ErrorKind::Configuration`] if a document is neither in a file
    /// nor in the component.
    pub(crate) fn of(
        manifest: &Manifest,
        component: &[u8],
        read: &dyn Fn(&str) -> Result<Option<String>, Error>,
    ) -> Result<Self, Error> {
        let mut embedded = Self::embedded(component)?.0;
        let mut documents = BTreeMap::new();
        for name in manifest.ui_pages() {
            let document = read(name)?.or_else(|| embedded.remove(name)).ok_or_else(|| {
                let message = format!("the user interface `{name}` cannot be embedded: there is no such file");
                Error::new(ErrorKind::Configuration, Phase::Registry, message)
                    .with_suggestion("put it next to the manifest")
            })?;
            documents.insert(name.to_owned(), document);
        }
        Ok(Self(documents))
    }

    /// Checks that all documents that a manifest names exist.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] with the name of the first missing document.
    pub(crate) fn check(&self, manifest: &Manifest) -> Result<(), Error> {
        match manifest.ui_pages().find(|name| !self.0.contains_key(*name)) {
            None => Ok(()),
            Some(name) => {
                let message =
                    format!("its manifest names the user interface `{name}`, which the component does not contain");
                Err(Error::new(ErrorKind::Configuration, Phase::Load, message)
                    .with_suggestion("pack the component again, with the file next to the manifest"))
            }
        }
    }

    /// Returns the contents of the custom sections to embed: one section with all documents, or no section if there are
    /// no documents.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] if the documents are too large.
    pub(crate) fn section_contents(&self) -> Result<Vec<Vec<u8>>, Error> {
        if self.0.is_empty() {
            return Ok(Vec::new());
        }
        let section = serde_json::to_vec(&self.0).unwrap_or_default();
        check_size(section.len())?;
        Ok(vec![section])
    }

    /// Returns the document with this file name, or `None` if there is no such document.
    pub(crate) fn into_document(mut self, name: &str) -> Option<String> {
        self.0.remove(name)
    }
}

fn check_size(bytes: usize) -> Result<(), Error> {
    if bytes as u64 <= UI_BYTES_MAX {
        return Ok(());
    }
    let message = format!("its user interfaces have more than {}", ByteCount(UI_BYTES_MAX));
    Err(Error::new(ErrorKind::Configuration, Phase::Load, message))
}
