//! The build as a whole.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
    process,
    time::Duration,
};

use etcetera::BaseStrategy;
use tokio::process::Command;

use super::{
    BuildCommand, BuildError, Progress, ResolvedWit, Source, Step,
    blocking::blocking,
    cargo::{CargoBuild, CargoPackage},
    command::{Stdout, run_to_success},
    componentize::componentize,
    embed_wit,
    rust_target::RustToolchain,
};

/// How long the compilation may take unless the caller says otherwise.
const TIME_LIMIT: Duration = Duration::from_secs(30 * 60);

/// A plugin to be built.
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
    dir: PathBuf,
    out: Option<PathBuf>,
    wit: Option<PathBuf>,
    world: Option<String>,
    profile: Option<String>,
    cache_dir: Option<PathBuf>,
    time_limit: Duration,
}

/// What a build gave.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BuildReport {
    /// The component.
    pub component: PathBuf,
    /// The plugin's name, which is that of the file.
    pub name: String,
    /// The component's size, its WIT included.
    pub size_bytes: u64,
    /// How much of that is the WIT with its docs.
    pub wit_bytes: u64,
    /// What a person should know although the build went well.
    pub warnings: Vec<String>,
}

impl Build {
    /// Starts from the directory of the plugin's source.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self {
            dir: dir.into(),
            out: None,
            wit: None,
            world: None,
            profile: None,
            cache_dir: None,
            time_limit: TIME_LIMIT,
        }
    }

    /// Sets where the component goes: a path that ends in `.wasm` is the file, any other is its directory.
    ///
    /// Without it, the directory is `plugins` in the target directory, so that all plugins of a workspace lie together.
    pub fn out(mut self, path: impl Into<PathBuf>) -> Self {
        self.out = Some(path.into());
        self
    }

    /// Sets the WIT directory or file, if it is not `wit` in the plugin's directory.
    pub fn wit(mut self, path: impl Into<PathBuf>) -> Self {
        self.wit = Some(path.into());
        self
    }

    /// Names the world that a core module implements, where its WIT has several.
    pub fn world(mut self, name: impl Into<String>) -> Self {
        self.world = Some(name.into());
        self
    }

    /// Sets the cargo profile; by default it is one that makes small components.
    ///
    /// That one is called `plugin`, and a workspace that defines `[profile.plugin]` has its own settings used.
    pub fn profile(mut self, name: impl Into<String>) -> Self {
        self.profile = Some(name.into());
        self
    }

    /// Sets where a compiler that has to be prepared is kept; by default that is the user's cache directory.
    pub fn cache_dir(mut self, path: impl Into<PathBuf>) -> Self {
        self.cache_dir = Some(path.into());
        self
    }

    /// Sets how long the compilation may take, 30 minutes if it is not called.
    ///
    /// Setting up a compiler has its own limits.
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = limit;
        self
    }

    /// Builds the component and embeds its WIT.
    ///
    /// Dropping the future ends the programs that it runs. The component appears in one step, and only if all went
    /// well; when it comes out as it was, the file is not touched.
    ///
    /// # Errors
    ///
    /// Each [`BuildError`] that a person can do something about has a [suggestion](BuildError::suggestion).
    pub async fn run(&self, progress: &dyn Progress) -> Result<BuildReport, BuildError> {
        let mut warnings = Vec::new();
        let (dir, source, wit) = self.look().await?;
        if wit.is_none() {
            warnings.push(format!(
                "no WIT in `{}`: the tools will have no descriptions",
                self.wit_path(&dir).display()
            ));
        }
        let built = match source {
            Source::Cargo => self.cargo(&dir, progress).await?,
            Source::Command(command) => self.command(&dir, &command, progress).await?,
            Source::Component(file) | Source::CoreModule(file) => Built::of_file(file, &dir),
        };
        let finish = Finish {
            target: self.target(&built),
            built,
            wit,
            world: self.world.clone(),
            warnings,
        };
        progress.step(Step::EmbedWit);
        blocking(move || finish.run()).await
    }

    /// Reads what there is before anything is run, so that a slip in the WIT costs no compilation.
    async fn look(&self) -> Result<(PathBuf, Source, Option<ResolvedWit>), BuildError> {
        let request = self.clone();
        blocking(move || {
            let dir = &request.dir;
            let source = Source::find(dir)?;
            let dir = fs::canonicalize(dir).map_err(BuildError::file("read", dir))?;
            let path = request.wit_path(&dir);
            // A path that was named must be there.
            let wit = match path.exists() || request.wit.is_some() {
                true => Some(ResolvedWit::read(&path)?),
                false => None,
            };
            Ok((dir, source, wit))
        })
        .await
    }

    async fn cargo(&self, dir: &Path, progress: &dyn Progress) -> Result<Built, BuildError> {
        let toolchain = RustToolchain::find(dir, &self.compiler_cache(dir), progress).await?;
        let package = CargoPackage::read(dir, &toolchain).await?;
        let build = CargoBuild {
            dir,
            profile: self.profile.as_deref(),
            limit: self.time_limit,
        };
        let artifact = build.run(&package, &toolchain, progress).await?;
        Ok(Built {
            file: artifact.file,
            name: package.name,
            target_dir: package.target_dir,
        })
    }

    async fn command(&self, dir: &Path, build: &BuildCommand, progress: &dyn Progress) -> Result<Built, BuildError> {
        let Some((program, arguments)) = build.command.split_first() else {
            return Err(BuildError::NothingToBuild { dir: dir.to_owned() });
        };
        progress.step(Step::RunCommand(build.command.join(" ")));
        let mut command = Command::new(program);
        command.args(arguments).current_dir(dir);
        run_to_success(command, Stdout::Stream, self.time_limit, progress).await?;
        let file = dir.join(&build.output);
        match file.is_file() {
            true => Ok(Built::of_file(file, dir)),
            false => Err(BuildError::NoArtifact { expected: Some(file) }),
        }
    }

    fn wit_path(&self, dir: &Path) -> PathBuf {
        self.wit.clone().unwrap_or_else(|| dir.join("wit"))
    }

    fn target(&self, built: &Built) -> PathBuf {
        let file = format!("{}.wasm", built.name);
        match &self.out {
            Some(out) if out.extension().is_some_and(|extension| extension == "wasm") => out.clone(),
            Some(out) => out.join(file),
            None => built.target_dir.join("plugins").join(file),
        }
    }

    /// The user's cache directory, or one in the project for a user who has none.
    fn compiler_cache(&self, dir: &Path) -> PathBuf {
        if let Some(cache_dir) = &self.cache_dir {
            return cache_dir.clone();
        }
        match etcetera::choose_base_strategy() {
            Ok(user) => user.cache_dir().join("toolwit/rust-wasm"),
            Err(_no_home) => target_dir(dir).join("toolwit-rust-wasm"),
        }
    }
}

/// What a language's tools left.
#[derive(Debug)]
struct Built {
    file: PathBuf,
    name: String,
    target_dir: PathBuf,
}

impl Built {
    fn of_file(file: PathBuf, dir: &Path) -> Self {
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Self {
            file,
            name,
            target_dir: target_dir(dir),
        }
    }
}

/// The target directory of a project that is not cargo's.
#[expect(
    clippy::disallowed_methods,
    reason = "cargo's own variable, so that all plugins of a build lie together"
)]
fn target_dir(dir: &Path) -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| dir.join("target"), PathBuf::from)
}

/// The last part of a build, which only reads and writes files.
struct Finish {
    built: Built,
    wit: Option<ResolvedWit>,
    world: Option<String>,
    target: PathBuf,
    warnings: Vec<String>,
}

impl Finish {
    fn run(self) -> Result<BuildReport, BuildError> {
        let path = &self.built.file;
        let bytes = fs::read(path).map_err(BuildError::file("read", path))?;
        let component = match Source::of_file(path.clone())? {
            Source::CoreModule(_) => componentize(path, bytes, self.wit.as_ref(), self.world.as_deref())?,
            _ => bytes,
        };
        let plain_bytes = component.len();
        let component = match &self.wit {
            Some(wit) => embed_wit(&component, wit).map_err(|source| BuildError::Embed {
                path: path.clone(),
                source,
            })?,
            None => component,
        };
        write_whole(&self.target, &component).map_err(BuildError::file("write", &self.target))?;
        Ok(BuildReport {
            name: self
                .target
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned(),
            component: self.target,
            size_bytes: component.len() as u64,
            wit_bytes: component.len().saturating_sub(plain_bytes) as u64,
            warnings: self.warnings,
        })
    }
}

/// Puts a file in place in one step, and leaves one alone that is already as it should be.
fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if fs::read(path).is_ok_and(|present| present == bytes) {
        return Ok(());
    }
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir)?;
    }
    let fresh = path.with_extension(format!("{}.part", process::id()));
    fs::write(&fresh, bytes)?;
    fs::rename(&fresh, path)
}
