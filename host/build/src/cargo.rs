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

/// The cargo profile of plugins. It optimises for size, since the host loads, caches and compiles the component.
///
/// A workspace that defines the profile uses its own settings; otherwise [`PROFILE_SETTINGS`] apply.
const PROFILE: &str = "plugin";
/// The settings of the profile in a workspace that does not define it.
const PROFILE_SETTINGS: [&str; 7] = [
    "inherits=\"release\"",
    "opt-level=\"s\"",
    "lto=true",
    "codegen-units=1",
    "panic=\"abort\"",
    "debug=false",
    "strip=true",
];

/// A request to build a cargo package.
#[derive(Debug)]
pub(super) struct CargoBuild<'a> {
    /// The directory of the package's manifest.
    pub(super) dir: &'a Path,
    /// The compiler of C code in the package and its dependencies.
    pub(super) c_compiler: &'a CCompiler,
    /// The cargo profile. `None` selects [`PROFILE`].
    pub(super) profile: Option<&'a str>,
    /// The time limit of the build.
    pub(super) limit: Duration,
    /// The target directory that all packages outside of workspaces share.
    pub(super) shared_target_dir: &'a Path,
}

/// The artifact of a cargo build.
#[derive(Debug)]
pub(super) struct CargoArtifact {
    /// The component's path in the target directory.
    pub(super) file: PathBuf,
    /// The target directory. Its lock, if it has one, prevents builds of other packages from replacing the file.
    pub(super) target: TargetDirectory,
}

/// A cargo package with its directories and the target to build.
#[derive(Debug)]
pub(super) struct CargoPackage {
    /// The package's name.
    pub(super) name: String,
    /// The target directory of the workspace, or of the package if it has no workspace.
    pub(super) target_dir: PathBuf,
    workspace_root: PathBuf,
    id: String,
    artifact: ArtifactKind,
}

/// The cargo target that becomes the component.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ArtifactKind {
    /// A library with exports.
    Library,
    /// A program with a `main`.
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
        let is_requested = |package: &Package| package.manifest_path == manifest;
        let Some(package) = metadata.packages.into_iter().find(is_requested) else {
            return Err(BuildError::Workspace { manifest });
        };
        Ok(Self {
            artifact: package.artifact()?,
            name: package.name,
            id: package.id,
            target_dir: metadata.target_directory,
            workspace_root: metadata.workspace_root,
        })
    }

    /// Returns whether the package in `dir` is the root of its workspace and has the default target directory.
    fn stands_alone(&self, dir: &Path) -> bool {
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
        let target = if package.stands_alone(self.dir) {
            TargetDirectory::shared(self.shared_target_dir, &package.name, self.dir, progress).await?
        } else {
            TargetDirectory::of_workspace(&package.target_dir)
        };
        cargo.arg("--target-dir").arg(&target.path);
        match &package.artifact {
            ArtifactKind::Library => cargo.arg("--lib"),
            ArtifactKind::Program(name) => cargo.args(["--bin", name]),
        };
        cargo.args(["--profile", self.profile.unwrap_or(PROFILE)]);
        if self.profile.is_none() && !defines_profile(&package.workspace_root) {
            for setting in PROFILE_SETTINGS {
                cargo.args(["--config", &format!("profile.{PROFILE}.{setting}")]);
            }
        }
        let command_line = format!("cargo build -p {}", package.name);
        let finished = run(cargo, Stdout::Collect, self.limit, progress).await?;
        let messages: Vec<Message> = finished
            .stdout
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect();
        if !finished.status.success() {
            let has_compiled = messages.iter().any(|message| matches!(message, Message::BuildFinished));
            // Without `BuildFinished`, cargo failed before it compiled, for example because a dependency is missing.
            return Err(if has_compiled {
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
        file.map(|file| CargoArtifact { file, target })
            .ok_or(BuildError::NoArtifact { expected: None })
    }
}

/// Returns whether the workspace defines the profile of plugins.
fn defines_profile(workspace_root: &Path) -> bool {
    let manifest = fs::read_to_string(workspace_root.join("Cargo.toml")).unwrap_or_default();
    let manifest: toml::Table = manifest.parse().unwrap_or_default();
    manifest
        .get("profile")
        .and_then(|profiles| profiles.get(PROFILE))
        .is_some()
}

#[derive(Debug, Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    target_directory: PathBuf,
    workspace_root: PathBuf,
}

#[derive(Debug, Deserialize)]
struct Package {
    name: String,
    id: String,
    manifest_path: PathBuf,
    default_run: Option<String>,
    targets: Vec<Target>,
}

#[derive(Debug, Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

impl Target {
    fn is(&self, kind: &str) -> bool {
        self.kind.iter().any(|listed| listed == kind)
    }
}

impl Package {
    /// Selects the `cdylib` if there is one, otherwise the program.
    ///
    /// # Errors
    /// [`BuildError::NoTarget`] if there is neither a `cdylib` nor a program, or if there are several programs and no
    /// `default-run`.
    fn artifact(&self) -> Result<ArtifactKind, BuildError> {
        if self.targets.iter().any(|target| target.is("cdylib")) {
            return Ok(ArtifactKind::Library);
        }
        let programs: Vec<&str> = self
            .targets
            .iter()
            .filter(|target| target.is("bin"))
            .map(|target| target.name.as_str())
            .collect();
        match (programs.as_slice(), &self.default_run) {
            ([program], _) => Ok(ArtifactKind::Program((*program).to_owned())),
            ([_, ..], Some(default)) => Ok(ArtifactKind::Program(default.clone())),
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

/// The relevant messages of cargo's `--message-format json`.
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
    /// Returns the WebAssembly file of a package, if this message lists it.
    fn component_of(self, package: &str) -> Option<PathBuf> {
        match self {
            Self::CompilerArtifact { package_id, filenames } if package_id == package => filenames
                .into_iter()
                .find(|file| file.extension().is_some_and(|extension| extension == "wasm")),
            _ => None,
        }
    }
}
