//! The settings of a build, and its steps.

use std::{
    env, fs,
    path::{Path, PathBuf},
    time::Duration,
};

use etcetera::BaseStrategy;

use super::{
    BuildCommand, BuildError, BuildReport, Language, Progress, ResolvedWit, Source, Step,
    blocking::blocking,
    c_code::CCompiler,
    cargo::{CargoBuild, CargoPackage},
    command::{Stdout, run_to_success},
    embed::EmbedStep,
    environment,
    language::LanguageBuild,
    rust_target::RustToolchain,
    target_directory::TargetDirectory,
};

/// The default time limit of each program that compiles the plugin.
const TIME_LIMIT: Duration = Duration::from_secs(30 * 60);

/// A build of a plugin, with its settings.
///
/// ```no_run
/// # async fn example() -> Result<(), toolwit_build::BuildError> {
/// use toolwit_build::{Build, BuildEvent};
///
/// let report = Build::new("plugins/customers")
///     .out("tools/customers.wasm")
///     .run(&|event: BuildEvent<'_>| {
///         if let BuildEvent::Step(step) = event {
///             eprintln!("{step}");
///         }
///     })
///     .await?;
/// println!("{} ({} bytes)", report.component.display(), report.size_bytes);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "a build does nothing until it is run"]
pub struct Build {
    /// The source directory, or the file of a component or core module.
    path: PathBuf,
    out: Option<PathBuf>,
    wit: Option<PathBuf>,
    world: Option<String>,
    profile: Option<String>,
    cache_dir: Option<PathBuf>,
    time_limit: Duration,
}

impl Build {
    /// Creates a build of the plugin in a source directory, or of a component or core module file that another tool has
    /// built.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            out: None,
            wit: None,
            world: None,
            profile: None,
            cache_dir: None,
            time_limit: TIME_LIMIT,
        }
    }

    /// Sets the output path: the file of the component if the path ends in `.wasm`, otherwise the directory for that file.
    ///
    /// The default is the directory `plugins` in the target directory, which all plugins of a workspace share.
    pub fn out(mut self, path: impl Into<PathBuf>) -> Self {
        self.out = Some(path.into());
        self
    }

    /// Sets the WIT directory or file. The default is `wit` in the plugin's directory. If the build was created with a
    /// file, a `.wit` file of the same name takes precedence over this default.
    pub fn wit(mut self, path: impl Into<PathBuf>) -> Self {
        self.wit = Some(path.into());
        self
    }

    /// Sets the world that the plugin implements. If the WIT has several worlds, this setting is required for a core
    /// module and for a project in a language other than Rust.
    pub fn world(mut self, name: impl Into<String>) -> Self {
        self.world = Some(name.into());
        self
    }

    /// Sets the cargo profile. The default is `plugin`, which optimises for size.
    ///
    /// If the workspace defines `[profile.plugin]`, its settings are used.
    pub fn profile(mut self, name: impl Into<String>) -> Self {
        self.profile = Some(name.into());
        self
    }

    /// Sets the cache directory. It contains the Rust sysroot that a build has set up, scripts that start the C compiler,
    /// and the target directory that packages outside of workspaces share. The default is in the user's cache directory.
    pub fn cache_dir(mut self, path: impl Into<PathBuf>) -> Self {
        self.cache_dir = Some(path.into());
        self
    }

    /// Sets the time limit of each program that compiles the plugin. The default is 30 minutes.
    ///
    /// The steps that set up a Rust toolchain have their own limits.
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = limit;
        self
    }

    /// Builds the component and embeds its WIT.
    ///
    /// Dropping the future kills the running programs. The component is written atomically, and only after all other
    /// steps succeeded. A file with the same content is not rewritten.
    ///
    /// # Errors
    ///
    /// Any [`BuildError`]; see [`BuildError::suggestion`] for how to fix it.
    pub async fn run(&self, progress: &dyn Progress) -> Result<BuildReport, BuildError> {
        let (dir, source, wit) = self.read_source().await?;
        let built = match source {
            Source::Cargo => self.build_with_cargo(&dir, progress).await?,
            Source::Command(command) => self.run_command(&dir, &command, progress).await?,
            Source::Language(language) => self.build_language(&dir, language, wit.as_ref(), progress).await?,
            Source::Component(file) | Source::CoreModule(file) => BuiltFile::of_file(file, &dir),
        };
        let last_step = EmbedStep {
            component_path: self.component_path(&built),
            file: built.file.clone(),
            wit,
            wit_path: self.wit_path(&dir),
            world: self.world.clone(),
        };
        let report = last_step.run(progress).await;
        // Releases the lock of the target directory. Another build may now replace the built file.
        drop(built);
        report
    }

    /// Detects the source and reads the WIT. Returns the directory of the source as well. This runs first, so that an
    /// error in the WIT is reported before compiling.
    async fn read_source(&self) -> Result<(PathBuf, Source, Option<ResolvedWit>), BuildError> {
        let build = self.clone();
        blocking(move || {
            let path = &build.path;
            let (dir, source) = if path.is_file() {
                (path.parent().unwrap_or(path).to_owned(), Source::of_file(path.clone())?)
            } else {
                (path.clone(), Source::find(path)?)
            };
            // The parent of a bare file name is empty.
            let dir = if dir.as_os_str().is_empty() {
                PathBuf::from(".")
            } else {
                dir
            };
            let dir = fs::canonicalize(&dir).map_err(BuildError::file("read", &dir))?;
            let wit_path = build.wit_path(&dir);
            // A path that the caller set must exist.
            let wit = if wit_path.exists() || build.wit.is_some() {
                Some(ResolvedWit::read(&wit_path)?)
            } else {
                None
            };
            Ok((dir, source, wit))
        })
        .await
    }

    async fn build_with_cargo(&self, dir: &Path, progress: &dyn Progress) -> Result<BuiltFile, BuildError> {
        let toolchain = RustToolchain::find(dir, &self.build_cache_dir(dir), progress).await?;
        let package = CargoPackage::read(dir, &toolchain).await?;
        let (project, cache) = (dir.to_owned(), self.build_cache_dir(dir));
        let c_compiler = blocking(move || CCompiler::find(&project, &cache)).await?;
        let build = CargoBuild {
            dir,
            c_compiler: &c_compiler,
            profile: self.profile.as_deref(),
            time_limit: self.time_limit,
            shared_target_dir: &self.shared_target_dir(dir),
        };
        let artifact = build.run(&package, &toolchain, progress).await;
        let artifact = artifact.map_err(|error| c_compiler.explain(error))?;
        Ok(BuiltFile {
            file: artifact.file,
            name: package.name,
            target_dir: package.target_dir,
            _cargo_target_dir: Some(artifact.target_directory),
        })
    }

    async fn run_command(
        &self,
        dir: &Path,
        build_command: &BuildCommand,
        progress: &dyn Progress,
    ) -> Result<BuiltFile, BuildError> {
        let Some((program, arguments)) = build_command.command.split_first() else {
            return Err(BuildError::NothingToBuild { dir: dir.to_owned() });
        };
        progress.step(Step::RunCommand(build_command.command.join(" ")));
        let mut command = environment::program(program);
        command.args(arguments).current_dir(dir);
        run_to_success(command, Stdout::Stream, self.time_limit, progress).await?;
        let file = dir.join(&build_command.output);
        if file.is_file() {
            Ok(BuiltFile::of_file(file, dir))
        } else {
            Err(BuildError::NoArtifact { expected: Some(file) })
        }
    }

    async fn build_language(
        &self,
        dir: &Path,
        language: Language,
        wit: Option<&ResolvedWit>,
        progress: &dyn Progress,
    ) -> Result<BuiltFile, BuildError> {
        let wit_path = self.wit_path(dir);
        let Some(wit) = wit else {
            return Err(BuildError::NoWit {
                language,
                path: wit_path,
            });
        };
        let wit_path = fs::canonicalize(&wit_path).map_err(BuildError::file("read", &wit_path))?;
        let name = dir.file_name().unwrap_or_default();
        let out_dir = dir.join("target").join("language").join(name);
        fs::create_dir_all(&out_dir).map_err(BuildError::file("write", &out_dir))?;
        let build = LanguageBuild {
            dir,
            wit_path: &wit_path,
            wit,
            world: self.world.as_deref(),
            out_dir: &out_dir,
            time_limit: self.time_limit,
        };
        Ok(BuiltFile::of_file(build.run(language, progress).await?, dir))
    }

    /// Returns the path at which the WIT is expected: the path that the caller set, the `.wit` file next to the file of
    /// the build, or `wit` in `dir`.
    fn wit_path(&self, dir: &Path) -> PathBuf {
        let sibling = || Some(self.path.with_extension("wit")).filter(|wit| self.path.is_file() && wit.is_file());
        self.wit.clone().or_else(sibling).unwrap_or_else(|| dir.join("wit"))
    }

    /// Returns the path of the component to write.
    fn component_path(&self, built: &BuiltFile) -> PathBuf {
        let file = format!("{}.wasm", built.name);
        match &self.out {
            Some(out) if out.extension().is_some_and(|extension| extension == "wasm") => out.clone(),
            Some(out) => out.join(file),
            None => built.target_dir.join("plugins").join(file),
        }
    }

    /// Returns the directory in which packages outside of workspaces are compiled, so that they share their
    /// dependencies.
    fn shared_target_dir(&self, dir: &Path) -> PathBuf {
        self.build_cache_dir(dir).join("target")
    }

    /// Returns the cache directory. If the user has no home directory, the cache is in the target directory of the project.
    fn build_cache_dir(&self, dir: &Path) -> PathBuf {
        if let Some(cache_dir) = &self.cache_dir {
            return cache_dir.clone();
        }
        match etcetera::choose_base_strategy() {
            Ok(base_dirs) => base_dirs.cache_dir().join("toolwit/rust-wasm"),
            Err(_no_home) => target_dir(dir).join("toolwit-rust-wasm"),
        }
    }
}

/// The component or core module that a toolchain built, or that the source contains.
#[derive(Debug)]
struct BuiltFile {
    file: PathBuf,
    /// The name of the plugin.
    name: String,
    /// The directory that contains the default output directory.
    target_dir: PathBuf,
    /// The target directory of cargo. Its lock prevents another build from replacing `file` before this build reads it.
    _cargo_target_dir: Option<TargetDirectory>,
}

impl BuiltFile {
    fn of_file(file: PathBuf, dir: &Path) -> Self {
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Self {
            file,
            name,
            target_dir: target_dir(dir),
            _cargo_target_dir: None,
        }
    }
}

/// Returns the directory that cargo's variable `CARGO_TARGET_DIR` sets or, if it is not set, `target` in `dir`.
#[expect(
    clippy::disallowed_methods,
    reason = "with the variable of cargo, plugins in all languages are in one directory"
)]
fn target_dir(dir: &Path) -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| dir.join("target"), PathBuf::from)
}
