//! Plugin directories, and the host that is built from them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::environment::variable;
use super::grants::GrantFlags;
use super::host_files;
use super::interceptors::InterceptorFlags;
use super::limits::LimitFlags;
use super::paths::absolute;
use super::project_trust::ProjectTrust;
use super::secrets::SecretFlags;
use super::store::StoreFlags;
use super::vectors::with_word_vectors;
use super::wasi::WasiFlags;
use toolwit::mcp::McpServers;
use toolwit::registry::DynamicDiscovery;
use toolwit::sandbox::{Compiler, Plugin};
use toolwit::{Error, ErrorKind, Phase};
use toolwit::{Toolwit, ToolwitBuilder};

/// The environment variable with plugin directories, separated as in `PATH`.
const VARIABLE: &str = "TOOLWIT_PLUGINS";

/// The default plugin directory.
const DEFAULT_DIRECTORY: &str = "tools";

/// Selects the plugin directories, the metadata database and the versions of WASI.
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct PluginFlags {
    /// Plugin directory or `.wasm` file; can be repeated [env: TOOLWIT_PLUGINS] [default: tools]
    #[arg(long = "plugins", value_name = "DIR")]
    directories: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) store: StoreFlags,
    #[command(flatten)]
    pub(crate) wasi: WasiFlags,
}

/// Selects the grants and secrets for calls.
#[derive(Clone, Debug, Default, clap::Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct GrantAndSecretFlags {
    #[command(flatten)]
    pub(crate) grants: GrantFlags,
    #[command(flatten)]
    pub(crate) secrets: SecretFlags,
}

impl GrantAndSecretFlags {
    /// Returns the flags for use in another directory: with absolute paths. If no option names the grants file, the path from
    /// its environment variable is filled in.
    pub(crate) fn for_other_directory(&self) -> Result<Self, Error> {
        Ok(Self {
            grants: self.grants.for_other_directory()?,
            secrets: self.secrets.for_other_directory()?,
        })
    }
}

impl PluginFlags {
    /// Returns the flags for use in another directory: with absolute paths. If no option names a directory, the directories
    /// from the environment variable or the default directory are filled in.
    pub(crate) fn for_other_directory(&self) -> Result<Self, Error> {
        let directories = self.directories().unwrap_or_default();
        let directories = directories.iter().map(|directory| absolute(directory));
        Ok(Self {
            directories: directories.collect::<Result<_, _>>()?,
            store: self.store.for_other_directory()?,
            wasi: self.wasi,
        })
    }

    /// Selects one component, and a metadata database in memory.
    pub(crate) fn of_component(component: &Path) -> Self {
        Self {
            directories: vec![component.to_owned()],
            store: StoreFlags::in_memory(),
            wasi: WasiFlags::default(),
        }
    }

    /// Selects the versions of WASI.
    pub(crate) fn with_wasi(mut self, wasi: WasiFlags) -> Self {
        self.wasi = wasi;
        self
    }

    /// Builds a host for reading metadata: without grants, compilation or guest code.
    pub(crate) async fn load(&self, limits: &LimitFlags) -> Result<Toolwit, Error> {
        let builder = self.builder_without_grants(limits)?;
        builder.dynamic_discovery(DynamicDiscovery::Never).build().await
    }

    /// Builds a host like [`PluginFlags::load`] that also searches by meaning, if there are word vectors.
    pub(crate) async fn load_for_search(&self) -> Result<Toolwit, Error> {
        let builder = with_word_vectors(self.builder_without_grants(&LimitFlags::default())?);
        builder.dynamic_discovery(DynamicDiscovery::Never).build().await
    }

    /// Builds a host for calls with grants. Dynamic tools are not discovered yet.
    pub(crate) async fn load_with_grants(
        &self,
        limits: &LimitFlags,
        grants_and_secrets: &GrantAndSecretFlags,
    ) -> Result<Toolwit, Error> {
        let builder = self.builder_with_grants(limits, grants_and_secrets)?;
        builder.dynamic_discovery(DynamicDiscovery::Never).build().await
    }

    /// Builds a host that checks rules before they are added to the grants file. The grants file need not exist.
    pub(crate) async fn load_for_granting(&self, grants_and_secrets: &GrantAndSecretFlags) -> Result<Toolwit, Error> {
        let mut builder = self.builder_without_grants(&LimitFlags::default())?;
        let grants = grants_and_secrets.grants.path()?;
        builder = if grants.exists() {
            builder.grants(grants)
        } else {
            builder.protect(grants)
        };
        if let Ok(secrets) = grants_and_secrets.secrets.path() {
            builder = builder.secrets(secrets);
        }
        builder.dynamic_discovery(DynamicDiscovery::Never).build().await
    }

    /// Builds a host like [`PluginFlags::load`] that also has MCP servers. Nothing is started or contacted.
    pub(crate) async fn load_with_servers(&self, limits: &LimitFlags, servers: &McpServers) -> Result<Toolwit, Error> {
        let builder = self.builder_before_servers(limits, servers)?.mcp(servers);
        builder.dynamic_discovery(DynamicDiscovery::Never).build().await
    }

    /// Returns the builder of a host for calls with grants, and with MCP servers.
    pub(crate) fn builder_with_servers(
        &self,
        limits: &LimitFlags,
        grants_and_secrets: &GrantAndSecretFlags,
        servers: &McpServers,
    ) -> Result<ToolwitBuilder, Error> {
        let builder = self.builder_before_servers(limits, servers)?;
        Ok(with_grants_and_secrets(builder, grants_and_secrets)?.mcp(servers))
    }

    /// Returns the builder of a host for calls with grants, MCP servers and interceptors.
    pub(crate) fn builder_with_interceptors(
        &self,
        limits: &LimitFlags,
        grants_and_secrets: &GrantAndSecretFlags,
        servers: &McpServers,
        interceptors: &InterceptorFlags,
    ) -> Result<ToolwitBuilder, Error> {
        interceptors.add_to(self.builder_with_servers(limits, grants_and_secrets, servers)?)
    }

    /// Returns the builder of a host for calls with grants.
    pub(crate) fn builder_with_grants(
        &self,
        limits: &LimitFlags,
        grants_and_secrets: &GrantAndSecretFlags,
    ) -> Result<ToolwitBuilder, Error> {
        with_grants_and_secrets(self.builder_without_grants(limits)?, grants_and_secrets)
    }

    /// Returns a builder like [`PluginFlags::builder_without_grants`], to which the caller adds the servers. If there
    /// are servers, no plugin directory is required.
    fn builder_before_servers(&self, limits: &LimitFlags, servers: &McpServers) -> Result<ToolwitBuilder, Error> {
        let has_plugins = !self.directories.is_empty()
            || !environment_directories().is_empty()
            || Path::new(DEFAULT_DIRECTORY).is_dir();
        if has_plugins || servers.is_empty() {
            return self.builder_without_grants(limits);
        }
        self.builder_with_directories(limits, Vec::new())
    }

    /// Returns the builder of a host without grants.
    pub(crate) fn builder_without_grants(&self, limits: &LimitFlags) -> Result<ToolwitBuilder, Error> {
        self.builder_with_directories(limits, self.directories()?)
    }

    /// Returns the builder of a host without grants, for the plugins in these directories.
    fn builder_with_directories(
        &self,
        limits: &LimitFlags,
        directories: Vec<PathBuf>,
    ) -> Result<ToolwitBuilder, Error> {
        let project = ProjectTrust::find()?;
        project.warn();
        let mut builder = Toolwit::builder()
            .limits(limits.overrides(&project.call_limits()))
            .engine_limits(limits.engine_limits())
            .long_running(limits.long_running())
            .long_running(project.long_running().iter().map(String::as_str))
            .compiler(Compiler::Process(own_program()?))
            .wasi(self.wasi.versions()?);
        builder = host_files::protect(builder);
        for directory in directories {
            builder = builder.plugins(directory);
        }
        Ok(self.store.add_to(builder))
    }

    /// Returns the directory to which packages are added: the directory of the option or the environment, or `tools`.
    /// The directory may not exist yet.
    ///
    /// # Errors
    /// If there are several directories, or the only path is a file.
    pub(crate) fn destination(&self) -> Result<PathBuf, Error> {
        let directories = if self.directories.is_empty() {
            environment_directories()
        } else {
            self.directories.clone()
        };
        match directories.as_slice() {
            [] => Ok(DEFAULT_DIRECTORY.into()),
            [directory] if !directory.is_file() => Ok(directory.clone()),
            directories => {
                let message = match directories {
                    [file] => format!("the plugin directory `{}` is a file", file.display()),
                    _ => "several plugin directories are given, and packages are added to one".to_owned(),
                };
                Err(Error::new(ErrorKind::Configuration, Phase::Registry, message)
                    .with_suggestion("pass one directory with `--plugins DIR`"))
            }
        }
    }

    /// Selects the directories of a trace, if the options name no directories.
    pub(crate) fn with_trace_defaults(mut self, directories: &[String]) -> Self {
        if self.directories.is_empty() {
            self.directories = directories.iter().map(PathBuf::from).collect();
        }
        self
    }

    /// Returns the real paths of the directories with plugins.
    pub(crate) fn real_directories(&self) -> Vec<PathBuf> {
        let real = self.directories().unwrap_or_default().into_iter();
        let real = real.filter_map(|path| std::fs::canonicalize(path).ok());
        let directory_of = |path: PathBuf| {
            if path.is_dir() {
                Some(path)
            } else {
                path.parent().map(Path::to_owned)
            }
        };
        real.filter_map(directory_of).collect()
    }

    /// Returns the plugin directories: of the options, else of the environment, else `tools` if it exists.
    pub(crate) fn directories(&self) -> Result<Vec<PathBuf>, Error> {
        if !self.directories.is_empty() {
            return Ok(self.directories.clone());
        }
        let environment_directories = environment_directories();
        if !environment_directories.is_empty() {
            return Ok(environment_directories);
        }
        if Path::new(DEFAULT_DIRECTORY).is_dir() {
            return Ok(vec![DEFAULT_DIRECTORY.into()]);
        }
        let message =
            format!("no plugin directory was given, and `{DEFAULT_DIRECTORY}` does not exist in the current directory");
        Err(
            Error::new(ErrorKind::Configuration, Phase::Registry, message).with_suggestion(format!(
                "pass a plugin directory with `--plugins DIR`, or set {VARIABLE}"
            )),
        )
    }
}

/// Adds the grants file and the secrets file to a host.
fn with_grants_and_secrets(
    mut builder: ToolwitBuilder,
    grants_and_secrets: &GrantAndSecretFlags,
) -> Result<ToolwitBuilder, Error> {
    if let Some(grants) = grants_and_secrets.grants.applied_path()? {
        host_files::require_not_written_by_plugin(&grants)?;
        builder = builder.grants(grants);
    }
    if let Ok(secrets) = grants_and_secrets.secrets.path() {
        host_files::require_not_written_by_plugin(&secrets)?;
        builder = builder.secrets(secrets);
    }
    Ok(builder)
}

/// Returns the path of this program, which is started again to compile components in separate processes.
fn own_program() -> Result<PathBuf, Error> {
    // Without `/proc`, Linux does not tell the path. The first argument then names the program.
    std::env::current_exe()
        .or_else(|error| program_of_arguments().ok_or(error))
        .map_err(|error| {
            let message = "the path of the `toolwit` program is unknown, perhaps because `/proc` is not mounted";
            Error::new(ErrorKind::Configuration, Phase::Registry, message)
                .with_suggestion("mount `/proc`, or start the program with its full path")
                .with_source(error)
        })
}

/// Returns the path of this program by the name with which it was started, in the absolute directories of `PATH` if the name is not
/// a path.
fn program_of_arguments() -> Option<PathBuf> {
    let name = PathBuf::from(std::env::args_os().next()?);
    if name.components().count() > 1 {
        return std::path::absolute(name).ok().filter(|program| program.is_file());
    }
    let path = variable("PATH")?;
    let directories = std::env::split_paths(&path).filter(|directory| directory.is_absolute());
    let mut programs = directories.map(|directory| directory.join(&name));
    programs.find(|program| program.is_file())
}

fn environment_directories() -> Vec<PathBuf> {
    let value = variable(VARIABLE).unwrap_or_default();
    std::env::split_paths(&value)
        .filter(|path| !path.as_os_str().is_empty())
        .collect()
}

/// Finds a plugin by its name.
pub(crate) fn find_plugin(host: &Toolwit, name: &str) -> Result<Arc<Plugin>, Error> {
    let registry = host.registry();
    let plugin = registry.plugins().find(|plugin| plugin.name() == name);
    plugin.cloned().ok_or_else(|| {
        let names: Vec<_> = registry
            .plugins()
            .map(|plugin| format!("`{}`", plugin.name()))
            .collect();
        Error::new(
            ErrorKind::Configuration,
            Phase::Registry,
            format!("the plugin `{name}` does not exist or cannot be used"),
        )
        .with_suggestion(if names.is_empty() {
            "the plugin directory has no plugin that can be used".to_owned()
        } else {
            format!("available plugins: {}", names.join(", "))
        })
    })
}
