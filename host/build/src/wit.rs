//! A project's WIT, and how it travels inside the component.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
};

use wit_parser::{PackageId, Resolve, WorldId};

use toolwit_sections::{SectionError, WIT_SECTION, replace_custom_sections};

/// The namespace whose packages are the host's and need no carrying.
const WASI_NAMESPACE: &str = "wasi";

/// Why WIT could not be read or encoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WitError {
    /// The WIT has an error.
    #[error("the WIT in `{}` is not valid: {message}", .path.display())]
    Invalid {
        /// The file or directory that was read.
        path: PathBuf,
        /// The parser's message, with file, line, column and the text there.
        message: String,
    },
    /// The parser itself failed.
    #[error("the WIT in `{}` makes the parser fail", .path.display())]
    ParserFailed {
        /// The file or directory that was read.
        path: PathBuf,
    },
    /// No world could be chosen.
    #[error("no world to build for: {message}")]
    World {
        /// The reason, with the worlds to choose from.
        message: String,
    },
    /// The WIT has no binary form.
    #[error("the WIT cannot be encoded: {message}")]
    Encode {
        /// The encoder's message.
        message: String,
    },
}

impl WitError {
    pub(super) fn suggestion(&self) -> Option<String> {
        let text = match self {
            Self::ParserFailed { .. } => "take the newest lines out of the WIT until it reads",
            Self::World { .. } => "name the world",
            _ => return None,
        };
        Some(text.to_owned())
    }
}

/// A WIT package with all that it depends on, names resolved and docs kept.
#[derive(Clone)]
pub struct ResolvedWit {
    resolve: Resolve,
    package: PackageId,
}

impl ResolvedWit {
    /// Reads a `wit` directory (with its `deps`), or a single file.
    ///
    /// # Errors
    ///
    /// [`WitError::Invalid`] with line and column; what makes the parser panic is an error too.
    pub fn read(path: &Path) -> Result<Self, WitError> {
        let invalid = |message| WitError::Invalid {
            path: path.to_owned(),
            message,
        };
        let parsed = catch_unwind(AssertUnwindSafe(|| {
            let mut resolve = Resolve::default();
            match resolve.push_path(path) {
                Ok((package, _)) => Ok(Self { resolve, package }),
                Err(error) => {
                    let rendered = resolve.render_error(&error);
                    // The outer layers say no more than which directory was being read.
                    let layers = error.chain().count();
                    let outer: String = error
                        .chain()
                        .take(layers - 1)
                        .map(|layer| format!("{layer}: "))
                        .collect();
                    Err(rendered.strip_prefix(&outer).unwrap_or(&rendered).to_owned())
                }
            }
        }));
        match parsed {
            Ok(parsed) => parsed.map_err(invalid),
            Err(_panic) => Err(WitError::ParserFailed { path: path.to_owned() }),
        }
    }

    /// All packages, the project's own and those it builds upon.
    #[must_use]
    pub fn resolve(&self) -> &Resolve {
        &self.resolve
    }

    /// The project's own package.
    #[must_use]
    pub fn package(&self) -> PackageId {
        self.package
    }

    /// Chooses the world of that name, or the only one there is.
    ///
    /// # Errors
    ///
    /// [`WitError::World`] when there is none of the name, or several and no name.
    pub fn world(&self, name: Option<&str>) -> Result<WorldId, WitError> {
        let selected = self.resolve.select_world(&[self.package], name);
        selected.map_err(|error| WitError::World {
            message: format!("{error:#}"),
        })
    }

    /// Encodes the packages that the project's own builds upon, then that one itself, each apart.
    ///
    /// # Errors
    ///
    /// [`WitError::Encode`] for what has no binary form.
    pub fn encode(&self) -> Result<Vec<Vec<u8>>, WitError> {
        let encode = |package| {
            let encoded = catch_unwind(AssertUnwindSafe(|| wit_component::encode(&self.resolve, package)));
            let failed = |message| WitError::Encode { message };
            match encoded {
                Ok(encoded) => encoded.map_err(|error| failed(format!("{error:#}"))),
                Err(_panic) => Err(failed("the encoder failed".to_owned())),
            }
        };
        self.packages().into_iter().rev().map(encode).collect()
    }

    /// The project's package and, nearest first, all that it uses and that is not WASI's.
    fn packages(&self) -> Vec<PackageId> {
        let mut packages = vec![self.package];
        let mut next = 0;
        while let Some(package) = packages.get(next).copied() {
            next += 1;
            for used in self.resolve.package_direct_deps(package) {
                let is_wasi = self.resolve.packages[used].name.namespace == WASI_NAMESPACE;
                if !is_wasi && !packages.contains(&used) {
                    packages.push(used);
                }
            }
        }
        packages
    }
}

impl fmt::Debug for ResolvedWit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.resolve.packages[self.package].name;
        f.debug_struct("ResolvedWit")
            .field("package", &name.to_string())
            .finish_non_exhaustive()
    }
}

/// Appends WIT to a component, in place of what an earlier call appended.
///
/// Nothing else in the file changes, and tools that do not know the section pass it by. Each section [`WIT_SECTION`] holds
/// one WIT package in binary form, as [`wit_component::decode`] reads it; the last one is the project's own. The binary
/// form of a package has the docs of its own items only, so those that it builds upon, but for WASI's, stand before it.
///
/// # Errors
///
/// [`EmbedError`] when the WIT cannot be encoded, or the bytes are no well-formed component.
pub fn embed_wit(component: &[u8], wit: &ResolvedWit) -> Result<Vec<u8>, EmbedError> {
    Ok(replace_custom_sections(component, WIT_SECTION, &wit.encode()?)?)
}

/// An error of [`embed_wit`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EmbedError {
    /// The WIT has no binary form.
    #[error(transparent)]
    Wit(#[from] WitError),
    /// The bytes cannot take a section.
    #[error(transparent)]
    Section(#[from] SectionError),
}

#[cfg(test)]
#[path = "wit_tests.rs"]
mod tests;
