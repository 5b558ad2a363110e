//! Embeds the manifest and the WIT of a package in its component.

use std::path::{Path, PathBuf};

use toolwit_build::{ResolvedWit, embed_wit};
use toolwit_core::file::replace_file;
use toolwit_core::limits::{EngineLimits, MANIFEST_BYTES_MAX, UI_BYTES_MAX, WIT_BYTES_MAX};
use toolwit_core::{Error, ErrorKind, Phase};
use toolwit_registry::pack;
use toolwit_sandbox::{read_component, read_package_file};

/// The settings for packing a component. Packing embeds the manifest and the WIT in the component, so that the package
/// is one file. By default, the manifest and the WIT are the files next to the component.
///
/// ```no_run
/// # async fn example() -> Result<(), toolwit::Error> {
/// let packed = toolwit::packing::Packing::new("weather.wasm").out("dist/weather.wasm").run().await?;
/// println!("{}: {} bytes", packed.component.display(), packed.size_bytes);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Packing {
    component: PathBuf,
    manifest: Option<PathBuf>,
    wit: Option<PathBuf>,
    out: Option<PathBuf>,
}

/// A component that [`Packing::run`] wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PackedComponent {
    /// The written file.
    pub component: PathBuf,
    /// The size of the file, in bytes.
    pub size_bytes: u64,
    /// Whether the file existed and had other content, so that its digest has changed. Grants for the previous digest
    /// do not apply to it.
    pub has_changed: bool,
}

impl Packing {
    /// Creates the settings for packing a component file. For `weather.wasm`, the default manifest is `weather.toml` and
    /// the default WIT is `weather.wit`. At least one of them must exist, or be set to another path.
    #[must_use]
    pub fn new(component: impl Into<PathBuf>) -> Self {
        Self {
            component: component.into(),
            manifest: None,
            wit: None,
            out: None,
        }
    }

    /// Sets the path to the manifest.
    #[must_use]
    pub fn manifest(mut self, path: impl Into<PathBuf>) -> Self {
        self.manifest = Some(path.into());
        self
    }

    /// Sets the path to the WIT file or directory.
    #[must_use]
    pub fn wit(mut self, path: impl Into<PathBuf>) -> Self {
        self.wit = Some(path.into());
        self
    }

    /// Sets the path to the output file. By default, the component is replaced.
    #[must_use]
    pub fn out(mut self, path: impl Into<PathBuf>) -> Self {
        self.out = Some(path.into());
        self
    }

    /// Checks the manifest against the component, and writes the packed component atomically.
    ///
    /// # Errors
    /// - [`ErrorKind::Configuration`] if the manifest or one of its user interfaces cannot be read, if the manifest does
    ///   not fit the component, or if there is neither a manifest nor WIT
    /// - [`ErrorKind::Build`] if the WIT cannot be used
    /// - [`ErrorKind::Io`] if the component or the WIT file cannot be read, or the output cannot be written
    /// - [`ErrorKind::FileBytes`] if the component or the WIT file is too large
    /// - with a manifest, also the error of a component that cannot be inspected
    pub async fn run(self) -> Result<PackedComponent, Error> {
        tokio::task::spawn_blocking(move || self.pack_and_write())
            .await
            .unwrap_or_else(|error| {
                let message = "packing the component failed unexpectedly";
                Err(Error::new(ErrorKind::Internal, Phase::Build, message).with_source(error))
            })
    }

    fn pack_and_write(&self) -> Result<PackedComponent, Error> {
        let out = self.out.as_ref().unwrap_or(&self.component);
        let packed = self.packed_bytes()?;
        let has_changed = out.is_file() && !has_content(out, &packed);
        replace_file(out, &packed).map_err(|error| {
            let message = format!("{} could not be written: {error}", out.display());
            Error::new(ErrorKind::Io, Phase::Registry, message).with_source(error)
        })?;
        Ok(PackedComponent {
            component: out.clone(),
            size_bytes: packed.len() as u64,
            has_changed,
        })
    }

    /// Returns the component with its manifest and WIT embedded.
    fn packed_bytes(&self) -> Result<Vec<u8>, Error> {
        let component = read_component(&self.component, EngineLimits::default().component_bytes_max)?;
        let wit = or_sibling(self.wit.clone(), self.sibling("wit"))?;
        let manifest = or_sibling(self.manifest.clone(), self.sibling("toml"))?;
        let component = match &wit {
            Some(wit) => embed_wit_at(&component, wit)?,
            None => component,
        };
        match (&manifest, &wit) {
            (Some(manifest), _) => self.embed_manifest(&component, manifest),
            (None, Some(_)) => Ok(component),
            (None, None) => {
                let stem = self.component.with_extension("");
                let message = format!("there is neither {0}.toml nor {0}.wit to embed", stem.display());
                Err(Error::new(ErrorKind::Configuration, Phase::Registry, message)
                    .with_suggestion("create one of them, or set the path to a manifest or WIT"))
            }
        }
    }

    /// Returns the path of the component with another extension, if this file or directory exists.
    fn sibling(&self, extension: &str) -> Option<PathBuf> {
        Some(self.component.with_extension(extension)).filter(|path| path.exists())
    }

    /// Returns the component with an embedded manifest and the user interfaces that the manifest names.
    fn embed_manifest(&self, component: &[u8], manifest: &Path) -> Result<Vec<u8>, Error> {
        let text = read_text(manifest, MANIFEST_BYTES_MAX).map_err(|error| {
            let message = format!("the manifest {} cannot be used: {}", manifest.display(), error.message);
            Error::new(ErrorKind::Configuration, Phase::Registry, message).with_source(error)
        })?;
        let name = self.component.file_stem().unwrap_or_default().to_string_lossy();
        let origin = manifest.file_name().unwrap_or_default().to_string_lossy();
        let read_ui_page = |page: &str| {
            let file = manifest.with_file_name(page);
            if !file.exists() {
                return Ok(None);
            }
            require_no_link_out(&file)?;
            read_text(&file, UI_BYTES_MAX).map(Some).map_err(|error| {
                let message = format!("the user interface `{page}` cannot be embedded: {}", error.message);
                Error::new(ErrorKind::Configuration, Phase::Registry, message).with_source(error)
            })
        };
        pack(component, &name, &text, &origin, &read_ui_page).map_err(|error| error.with_plugin(&*name))
    }
}

/// Returns the path that the caller chose, or else the file or directory next to the component.
///
/// # Errors
/// If the file next to the component is a link out of its directory, or the directory contains such a link. The author of a
/// package must not choose which other files of the machine are embedded.
fn or_sibling(chosen: Option<PathBuf>, sibling: Option<PathBuf>) -> Result<Option<PathBuf>, Error> {
    if chosen.is_some() {
        return Ok(chosen);
    }
    sibling.as_deref().map_or(Ok(()), require_no_link_out)?;
    Ok(sibling)
}

/// Refuses a file or directory that is a link out of the directory around it, and a directory with a link out of it.
fn require_no_link_out(path: &Path) -> Result<(), Error> {
    let unreadable = |error: std::io::Error| {
        let message = format!("{} cannot be embedded: {error}", path.display());
        Error::new(ErrorKind::Io, Phase::Registry, message).with_source(error)
    };
    let around = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let around = around.unwrap_or(Path::new(".")).canonicalize().map_err(unreadable)?;
    let real = path.canonicalize().map_err(unreadable)?;
    if !real.starts_with(&around) {
        return Err(link_error(path));
    }
    let mut directories = if real.is_dir() { vec![real.clone()] } else { Vec::new() };
    while let Some(directory) = directories.pop() {
        for entry in directory.read_dir().map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let file_type = entry.file_type().map_err(unreadable)?;
            // A link to a directory is not followed, so that the search ends. Its content is inside this directory.
            if file_type.is_symlink()
                && !entry
                    .path()
                    .canonicalize()
                    .is_ok_and(|target| target.starts_with(&real))
            {
                return Err(link_error(&entry.path()));
            }
            if file_type.is_dir() {
                directories.push(entry.path());
            }
        }
    }
    Ok(())
}

fn link_error(link: &Path) -> Error {
    let message = format!("{} is a link out of its directory, and is not embedded", link.display());
    Error::new(ErrorKind::Configuration, Phase::Registry, message)
        .with_suggestion("replace the link by a file, or pass the path of the manifest or the WIT")
}

/// Returns whether a file can be read and has exactly these bytes.
fn has_content(path: &Path, expected: &[u8]) -> bool {
    read_package_file(path, expected.len() as u64).is_ok_and(|content| content == expected)
}

/// Reads a text file within the size limit. Rejects devices and pipes, which may be endless or block.
fn read_text(path: &Path, bytes_max: u64) -> Result<String, Error> {
    String::from_utf8(read_package_file(path, bytes_max)?).map_err(|error| {
        let message = format!("{} is not UTF-8 text", path.display());
        Error::new(ErrorKind::Io, Phase::Registry, message).with_source(error)
    })
}

/// Returns the component with the embedded WIT of a file or directory.
fn embed_wit_at(component: &[u8], path: &Path) -> Result<Vec<u8>, Error> {
    let build_error = |message: String| Error::new(ErrorKind::Build, Phase::Build, message);
    if path.is_file() {
        // Only checks the size and the encoding. `ResolvedWit` reads the file again, without a limit.
        read_text(path, WIT_BYTES_MAX)?;
    } else if !path.is_dir() {
        return Err(build_error(format!("{} is not a file or directory", path.display())));
    }
    let wit = ResolvedWit::read(path).map_err(|error| build_error(error.to_string()).with_source(error))?;
    embed_wit(component, &wit).map_err(|error| build_error(error.to_string()).with_source(error))
}

#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    /// Returns a directory with a component, and a file outside of the directory `package`.
    fn package() -> (tempfile::TempDir, PathBuf) {
        let root = tempfile::tempdir().unwrap();
        let package = root.path().join("package");
        fs::create_dir(&package).unwrap();
        let component = wat::parse_str(
            r#"(component
                (core module $m (func (export "f") (result i32) i32.const 1))
                (core instance $i (instantiate $m))
                (func (export "one") (result s32) (canon lift (core func $i "f"))))"#,
        );
        fs::write(package.join("calc.wasm"), component.unwrap()).unwrap();
        fs::write(root.path().join("secret"), "description = \"secret\"").unwrap();
        (root, package)
    }

    // attack: L12
    #[tokio::test]
    async fn the_target_of_a_link_out_of_a_package_is_not_embedded() {
        let ui = "[[tools]]\nexport = \"one\"\nui = \"one.html\"";
        for (links, manifest) in [
            (&["calc.toml"][..], None),
            (&["one.html"], Some(ui)),
            (&["calc.wit"], Some("")),
        ] {
            let (_root, package) = package();
            for link in links {
                symlink("../secret", package.join(link)).unwrap();
            }
            if let Some(manifest) = manifest {
                fs::write(package.join("calc.toml"), manifest).unwrap();
            }
            let before = fs::read(package.join("calc.wasm")).unwrap();
            let error = Packing::new(package.join("calc.wasm")).run().await.unwrap_err();
            assert!(
                error.message.contains("a link out of its directory"),
                "{links:?}: {error}"
            );
            assert_eq!(fs::read(package.join("calc.wasm")).unwrap(), before);
        }
    }

    #[tokio::test]
    async fn links_inside_a_package_and_a_chosen_manifest_are_followed() {
        let (root, package) = package();
        fs::write(package.join("shared.toml"), "").unwrap();
        symlink("shared.toml", package.join("calc.toml")).unwrap();
        let component = package.join("calc.wasm");
        Packing::new(&component).run().await.unwrap();
        let chosen = root.path().join("secret");
        Packing::new(&component).manifest(chosen).run().await.unwrap();
    }
}
