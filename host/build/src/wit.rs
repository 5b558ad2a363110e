//! Reads a project's WIT, and embeds the WIT in the component.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
};

use wit_parser::{PackageId, PackageName, Resolve, WorldId};

use toolwit_sections::{SectionError, WIT_SECTION, replace_custom_sections};

/// The namespace of WASI. Packages in this namespace are not embedded, because the host has its own copies of them.
const WASI_NAMESPACE: &str = "wasi";

/// An error of reading or encoding WIT.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WitError {
    /// The WIT has an error.
    #[error("the WIT in `{}` is not valid: {message}", .path.display())]
    Invalid {
        /// The file or directory that was read.
        path: PathBuf,
        /// The parser's message. For a syntax error, it contains file, line, column and the source text.
        message: String,
    },
    /// The parser library panicked while it parsed or merged WIT.
    #[error("the WIT in `{}` makes the parser fail", .path.display())]
    ParserFailed {
        /// The file or directory that was read.
        path: PathBuf,
    },
    /// The world could not be selected.
    #[error("the world cannot be selected: {message}")]
    World {
        /// The reason, with the worlds to choose from.
        message: String,
    },
    /// The WIT cannot be encoded in binary form.
    #[error("the WIT cannot be encoded: {message}")]
    Encode {
        /// The encoder's message.
        message: String,
    },
}

impl WitError {
    pub(super) fn suggestion(&self) -> Option<String> {
        let text = match self {
            Self::ParserFailed { .. } => "remove the newest lines of the WIT until it can be parsed",
            Self::World { .. } => "name the world",
            _ => return None,
        };
        Some(text.to_owned())
    }
}

/// A WIT package with its dependencies, resolved names and doc comments.
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
    /// [`WitError::Invalid`] if the WIT cannot be read or parsed; [`WitError::ParserFailed`] if the parser panics.
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
                    // The outer layers of the error only name the directory that was being read.
                    let layers = error.chain().count();
                    let outer_layers: String = error
                        .chain()
                        .take(layers - 1)
                        .map(|layer| format!("{layer}: "))
                        .collect();
                    Err(rendered.strip_prefix(&outer_layers).unwrap_or(&rendered).to_owned())
                }
            }
        }));
        match parsed {
            Ok(parsed) => parsed.map_err(invalid),
            Err(_panic) => Err(WitError::ParserFailed { path: path.to_owned() }),
        }
    }

    /// Parses a WIT text that contains its dependencies as nested packages. `path` appears only in errors.
    pub(super) fn parse(path: &Path, text: &str) -> Result<Self, WitError> {
        let parsed = catch_unwind(AssertUnwindSafe(|| {
            let mut resolve = Resolve::default();
            match resolve.push_str(path, text) {
                Ok(package) => Ok(Self { resolve, package }),
                Err(error) => Err(resolve.render_error(&error)),
            }
        }));
        match parsed {
            Ok(parsed) => parsed.map_err(|message| WitError::Invalid {
                path: path.to_owned(),
                message,
            }),
            Err(_panic) => Err(WitError::ParserFailed { path: path.to_owned() }),
        }
    }

    /// Adds the packages of another WIT, and merges packages of the same name. [`package`](Self::package) stays the same.
    /// `path` appears only in errors.
    pub(super) fn merge(&mut self, path: &Path, addition: Self) -> Result<(), WitError> {
        let merged = catch_unwind(AssertUnwindSafe(|| {
            let mut resolve = self.resolve.clone();
            match resolve.merge(addition.resolve) {
                Ok(_) => Ok(resolve),
                Err(error) => Err(format!("{error:#}")),
            }
        }));
        match merged {
            Ok(Ok(resolve)) => {
                self.resolve = resolve;
                Ok(())
            }
            Ok(Err(message)) => Err(WitError::Invalid {
                path: path.to_owned(),
                message,
            }),
            Err(_panic) => Err(WitError::ParserFailed { path: path.to_owned() }),
        }
    }

    /// Returns all packages: the project's own package and its dependencies.
    #[must_use]
    pub fn resolve(&self) -> &Resolve {
        &self.resolve
    }

    /// Returns the id of the project's own package.
    #[must_use]
    pub fn package(&self) -> PackageId {
        self.package
    }

    /// Returns the name of the project's own package.
    pub(super) fn name(&self) -> &PackageName {
        &self.resolve.packages[self.package].name
    }

    /// Selects the world with this name or, without a name, the only world.
    ///
    /// # Errors
    ///
    /// [`WitError::World`] if no world has the name, or if the name is `None` and there is not exactly one world.
    pub fn world(&self, name: Option<&str>) -> Result<WorldId, WitError> {
        let selected = self.resolve.select_world(&[self.package], name);
        selected.map_err(|error| WitError::World {
            message: format!("{error:#}"),
        })
    }

    /// Encodes each package separately: the dependencies other than WASI first, the project's own package last.
    ///
    /// # Errors
    ///
    /// [`WitError::Encode`] if a package cannot be encoded in binary form.
    pub fn encode(&self) -> Result<Vec<Vec<u8>>, WitError> {
        let encode = |package| {
            let encoded = catch_unwind(AssertUnwindSafe(|| wit_component::encode(&self.resolve, package)));
            let encode_error = |message| WitError::Encode { message };
            match encoded {
                Ok(encoded) => encoded.map_err(|error| encode_error(format!("{error:#}"))),
                Err(_panic) => Err(encode_error("the encoder panicked".to_owned())),
            }
        };
        self.packages_to_embed().into_iter().rev().map(encode).collect()
    }

    /// Returns the project's package, followed by its dependencies other than WASI, nearest first.
    fn packages_to_embed(&self) -> Vec<PackageId> {
        let mut packages = vec![self.package];
        let mut next = 0;
        while let Some(package) = packages.get(next).copied() {
            next += 1;
            for dependency in self.resolve.package_direct_deps(package) {
                let is_wasi = self.resolve.packages[dependency].name.namespace == WASI_NAMESPACE;
                if !is_wasi && !packages.contains(&dependency) {
                    packages.push(dependency);
                }
            }
        }
        packages
    }
}

impl fmt::Debug for ResolvedWit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResolvedWit")
            .field("package", &self.name().to_string())
            .finish_non_exhaustive()
    }
}

/// Appends WIT to a component, in custom sections named [`WIT_SECTION`]. Replaces WIT that an earlier call appended.
///
/// All other bytes stay the same, and other tools skip the sections. Each section contains one WIT package in the binary
/// form that [`wit_component::decode`] reads. The last section contains the project's own package. The sections of its
/// dependencies, except WASI, come first. They are needed because the binary form of a package contains only the docs of
/// its own items.
///
/// # Errors
///
/// [`EmbedError`] if the WIT cannot be encoded, or the bytes are not a well-formed component.
pub fn embed_wit(component: &[u8], wit: &ResolvedWit) -> Result<Vec<u8>, EmbedError> {
    embed_packages(component, &[wit])
}

/// Returns the component with several packages and their dependencies embedded. The last package is the project's own.
pub(super) fn embed_packages(component: &[u8], packages: &[&ResolvedWit]) -> Result<Vec<u8>, EmbedError> {
    let mut sections = Vec::new();
    for package in packages {
        sections.append(&mut package.encode()?);
    }
    Ok(replace_custom_sections(component, WIT_SECTION, &sections)?)
}

/// An error of [`embed_wit`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EmbedError {
    /// The WIT cannot be encoded in binary form.
    #[error(transparent)]
    Wit(#[from] WitError),
    /// The sections cannot be added to the component.
    #[error(transparent)]
    Section(#[from] SectionError),
}

#[cfg(test)]
#[path = "wit_tests.rs"]
mod tests;
