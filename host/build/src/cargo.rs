//! Builds a Rust package into a component with cargo.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use serde::Deserialize;

use super::{
    BuildError, Progress, Silent, Step, TARGET,
    c_code::CCompiler,
    command::{Stdout, run, run_to_success},
    rust_target::RustToolchain,
    target_directory::TargetDirectory,
};

/// The time limit of `cargo metadata`.
const METADATA_LIMIT: Duration = Duration::from_secs(60);

/// The cargo profile of plugins. It optimises for size, because the host loads, caches and compiles the component.
///
/// If the workspace defines the profile, the settings of the workspace apply, otherwise [`PLUGIN_PROFILE_SETTINGS`].
const PLUGIN_PROFILE: &str = "plugin";
/// The settings of [`PLUGIN_PROFILE`] in a workspace that does not define the profile.
const PLUGIN_PROFILE_SETTINGS: [&str; 7] = [
    "inherits=\"release\"",
    "opt-level=\"s\"",
    "lto=true",
    "codegen-units=1",
    "panic=\"abort\"",
    "debug=false",
    "strip=true",
];

/// The options of a `cargo build` of a plugin.
#[derive(Debug)]
pub(super) struct CargoBuild<'a> {
    /// The directory of the package.
    pub(super) dir: &'a Path,
    /// The compiler of C code in the package and its dependencies.
    pub(super) c_compiler: &'a CCompiler,
    /// The cargo profile. `None` selects [`PLUGIN_PROFILE`].
    pub(super) profile: Option<&'a str>,
    /// The time limit of the build.
    pub(super) time_limit: Duration,
    /// The target directory of the packages for which [`CargoPackage::uses_shared_target_dir`] returns `true`.
    pub(super) shared_target_dir: &'a Path,
}

/// The component that a cargo build produced.
#[derive(Debug)]
pub(super) struct CargoArtifact {
    /// The path of the component in the target directory.
    pub(super) file: PathBuf,
    /// The target directory. The lock of a shared directory prevents builds of other packages from replacing the file.
    pub(super) target_directory: TargetDirectory,
}

/// A cargo package, with its directories and the cargo target to build.
#[derive(Debug)]
pub(super) struct CargoPackage {
    /// The package's name.
    pub(super) name: String,
    /// The target directory of the workspace, or of the package if it has no workspace.
    pub(super) target_dir: PathBuf,
    workspace_root: PathBuf,
    id: String,
    component_target: ComponentTarget,
}

/// The cargo target that becomes the component.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ComponentTarget {
    /// The library of the package, a `cdylib`.
    Library,
    /// The program with this name.
    Program(String),
}

impl CargoPackage {
    /// Reads the metadata of the package in `dir` with `cargo metadata`.
    pub(super) async fn read(dir: &Path, toolchain: &RustToolchain) -> Result<Self, BuildError> {
        let manifest = dir.join("Cargo.toml");
        let mut cargo = toolchain.cargo(dir);
        cargo
            .args(["metadata", "--no-deps", "--format-version", "1", "--manifest-path"])
            .arg(&manifest);
        let output = run_to_success(cargo, Stdout::Collect, METADATA_LIMIT, &Silent).await?;
        let metadata: Metadata = serde_json::from_str(&output.stdout).map_err(|error| BuildError::Output {
            program: "cargo metadata".to_owned(),
            source: io::Error::from(error),
        })?;
        let is_requested = |package: &PackageMetadata| package.manifest_path == manifest;
        let Some(package) = metadata.packages.into_iter().find(is_requested) else {
            return Err(BuildError::Workspace { manifest });
        };
        Ok(Self {
            component_target: package.component_target()?,
            name: package.name,
            id: package.id,
            target_dir: metadata.target_directory,
            workspace_root: metadata.workspace_root,
        })
    }

    /// Returns whether the package in `dir` is compiled in the target directory that plugins share. The condition is that
    /// the package is not a member of a workspace in another directory, and has the default target directory.
    fn uses_shared_target_dir(&self, dir: &Path) -> bool {
        self.workspace_root == dir && self.target_dir == dir.join("target")
    }
}

impl CargoBuild<'_> {
    /// Runs `cargo build` and returns the component that it produced.
    pub(super) async fn run(
        &self,
        package: &CargoPackage,
        toolchain: &RustToolchain,
        progress: &dyn Progress,
    ) -> Result<CargoArtifact, BuildError> {
        progress.step(Step::Compile(package.name.clone()));
        let mut cargo = toolchain.cargo(self.dir);
        self.c_compiler.configure(&mut cargo);
        cargo.args([
            "build",
            "--message-format",
            "json-render-diagnostics",
            "--target",
            TARGET,
        ]);
        cargo.arg("--manifest-path").arg(self.dir.join("Cargo.toml"));
        let target_directory = if package.uses_shared_target_dir(self.dir) {
            TargetDirectory::shared(self.shared_target_dir, &package.name, self.dir, progress).await?
        } else {
            TargetDirectory::of_workspace(&package.target_dir)
        };
        cargo.arg("--target-dir").arg(&target_directory.path);
        match &package.component_target {
            ComponentTarget::Library => cargo.arg("--lib"),
            ComponentTarget::Program(name) => cargo.args(["--bin", name]),
        };
        cargo.args(["--profile", self.profile.unwrap_or(PLUGIN_PROFILE)]);
        if self.profile.is_none() && !defines_plugin_profile(&package.workspace_root) {
            for setting in PLUGIN_PROFILE_SETTINGS {
                cargo.args(["--config", &format!("profile.{PLUGIN_PROFILE}.{setting}")]);
            }
        }
        let command_line = format!("cargo build -p {}", package.name);
        let finished = run(cargo, Stdout::Collect, self.time_limit, progress).await?;
        let messages: Vec<Message> = finished
            .stdout
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect();
        if !finished.status.success() {
            let has_started_compiling = messages.iter().any(|message| matches!(message, Message::BuildFinished));
            // Without this message, cargo failed before it compiled, for example because a dependency is missing.
            return Err(if has_started_compiling {
                BuildError::Compile {
                    package: package.name.clone(),
                    diagnostics: finished.diagnostics,
                }
            } else {
                BuildError::Command {
                    command: command_line,
                    status: finished.status.to_string(),
                    output: finished.diagnostics,
                }
            });
        }
        let file = messages
            .into_iter()
            .rev()
            .find_map(|message| message.component_of(&package.id));
        file.map(|file| CargoArtifact { file, target_directory })
            .ok_or(BuildError::NoArtifact { expected: None })
    }
}

/// Returns whether the workspace defines [`PLUGIN_PROFILE`].
fn defines_plugin_profile(workspace_root: &Path) -> bool {
    let manifest = fs::read_to_string(workspace_root.join("Cargo.toml")).unwrap_or_default();
    let manifest: toml::Table = manifest.parse().unwrap_or_default();
    manifest
        .get("profile")
        .and_then(|profiles| profiles.get(PLUGIN_PROFILE))
        .is_some()
}

/// The output of `cargo metadata`.
#[derive(Debug, Deserialize)]
struct Metadata {
    packages: Vec<PackageMetadata>,
    target_directory: PathBuf,
    workspace_root: PathBuf,
}

#[derive(Debug, Deserialize)]
struct PackageMetadata {
    name: String,
    id: String,
    manifest_path: PathBuf,
    default_run: Option<String>,
    targets: Vec<TargetMetadata>,
}

/// A cargo target of a package.
#[derive(Debug, Deserialize)]
struct TargetMetadata {
    name: String,
    kind: Vec<String>,
}

impl TargetMetadata {
    fn has_kind(&self, kind: &str) -> bool {
        self.kind.iter().any(|listed| listed == kind)
    }
}

impl PackageMetadata {
    /// Returns the `cdylib` if the package has one, otherwise its program, or its `default-run` if it has several programs.
    ///
    /// # Errors
    /// [`BuildError::NoTarget`] if the package has neither a `cdylib` nor a program, or if it has several programs and no
    /// `default-run`.
    fn component_target(&self) -> Result<ComponentTarget, BuildError> {
        if self.targets.iter().any(|target| target.has_kind("cdylib")) {
            return Ok(ComponentTarget::Library);
        }
        let programs: Vec<&str> = self
            .targets
            .iter()
            .filter(|target| target.has_kind("bin"))
            .map(|target| target.name.as_str())
            .collect();
        match (programs.as_slice(), &self.default_run) {
            ([program], _) => Ok(ComponentTarget::Program((*program).to_owned())),
            ([_, ..], Some(default)) => Ok(ComponentTarget::Program(default.clone())),
            ([_, ..], None) => Err(self.no_target_error(format!(
                "several programs ({}) and no `default-run`",
                programs.join(", ")
            ))),
            ([], _) => Err(self.no_target_error("its library is not a `cdylib`, and there is no program".to_owned())),
        }
    }

    fn no_target_error(&self, reason: String) -> BuildError {
        BuildError::NoTarget {
            package: self.name.clone(),
            reason,
        }
    }
}

/// A message of cargo's option `--message-format`. Only the used messages have a variant of their own.
#[derive(Debug, Deserialize)]
#[serde(tag = "reason", rename_all = "kebab-case")]
enum Message {
    CompilerArtifact {
        package_id: String,
        filenames: Vec<PathBuf>,
    },
    BuildFinished,
    #[serde(other)]
    Other,
}

impl Message {
    /// Returns the WebAssembly file of the package with this id, if this message lists the file.
    fn component_of(self, id: &str) -> Option<PathBuf> {
        match self {
            Self::CompilerArtifact { package_id, filenames } if package_id == id => filenames
                .into_iter()
                .find(|file| file.extension().is_some_and(|extension| extension == "wasm")),
            _ => None,
        }
    }
}
