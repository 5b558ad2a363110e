//! The last step of a build, and the report of the build.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process,
};

use super::{
    BuildError, Progress, ResolvedWit, Source, Step, blocking::blocking, componentize::componentize,
    wit::embed_packages, wit_source,
};

/// The result of a build.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BuildReport {
    /// The path of the component.
    pub component: PathBuf,
    /// The plugin's name: the file name without its extension.
    pub name: String,
    /// The component's size, its WIT included.
    pub size_bytes: u64,
    /// The number of bytes that embedding the WIT added, doc comments included.
    pub wit_bytes: u64,
    /// Warnings of a successful build.
    pub warnings: Vec<String>,
}

/// The last step of a build: converts the file if it is a core module, embeds the WIT and writes the component.
pub(super) struct EmbedStep {
    /// The built file: a component or a core module.
    pub(super) file: PathBuf,
    /// The project's WIT.
    pub(super) wit: Option<ResolvedWit>,
    /// The path at which the project's WIT is expected.
    pub(super) wit_path: PathBuf,
    /// The world that a core module implements, if the WIT has several.
    pub(super) world: Option<String>,
    /// The path of the component to write.
    pub(super) component_path: PathBuf,
}

impl EmbedStep {
    /// Runs the step.
    pub(super) async fn run(self, progress: &dyn Progress) -> Result<BuildReport, BuildError> {
        let path = self.file.clone();
        let (source, bytes) = blocking(move || {
            let bytes = fs::read(&path).map_err(BuildError::file("read", &path))?;
            Ok((Source::of_file(path)?, bytes))
        })
        .await?;
        let (step, component) = if matches!(source, Source::CoreModule(_)) {
            progress.step(Step::Componentize);
            blocking(move || {
                let component = componentize(&self.file, bytes, self.wit.as_ref(), self.world.as_deref())?;
                Ok((self, component))
            })
            .await?
        } else {
            (self, bytes)
        };
        progress.step(Step::EmbedWit);
        blocking(move || step.embed(component)).await
    }

    /// Embeds the WIT in the component and writes it.
    fn embed(self, component: Vec<u8>) -> Result<BuildReport, BuildError> {
        let path = &self.file;
        let bytes_without_wit = component.len();
        let embed_error = |source| BuildError::Embed {
            path: path.clone(),
            source,
        };
        // The macros of the Rust SDK stored this WIT in the core modules of the component.
        let sdk_wit = wit_source::read(path, &component).map_err(|error| embed_error(error.into()))?;
        let packages: Vec<_> = sdk_wit.iter().chain(&self.wit).collect();
        let component = if packages.is_empty() {
            component
        } else {
            embed_packages(&component, &packages).map_err(embed_error)?
        };
        write_atomically(&self.component_path, &component).map_err(BuildError::file("write", &self.component_path))?;
        Ok(BuildReport {
            name: self
                .component_path
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            size_bytes: component.len() as u64,
            wit_bytes: component.len().saturating_sub(bytes_without_wit) as u64,
            warnings: self.warnings(packages.is_empty()),
            component: self.component_path,
        })
    }

    fn warnings(&self, has_no_wit: bool) -> Vec<String> {
        let path = self.wit_path.display();
        let warning = || format!("no WIT in `{path}`: the tools will have no descriptions");
        has_no_wit.then(warning).into_iter().collect()
    }
}

/// Writes a file atomically. A file with the same content is not rewritten.
fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if fs::read(path).is_ok_and(|existing| existing == bytes) {
        return Ok(());
    }
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir)?;
    }
    let temporary = path.with_extension(format!("{}.part", process::id()));
    fs::write(&temporary, bytes)?;
    fs::rename(&temporary, path)
}
