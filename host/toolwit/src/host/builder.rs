//! The builder of a host.

mod build;

use std::path::PathBuf;
use std::sync::Arc;

use super::Exposure;
use super::shared_source::SharedSource;
use toolwit_agent::{GroupsConfig, ToolGroup, ToolGroups, ToolSource};
use toolwit_core::limits::{EngineLimits, LimitOverrides};
use toolwit_core::{Decorator, Interception, Interceptor, Tool, ToolId, ToolSelector};
use toolwit_registry::store::Store;
use toolwit_registry::{DynamicDiscovery, EmbeddingModel, InterceptorSettings, WatchOptions};
use toolwit_sandbox::{CodeCacheLocation, Compiler, KeyValueStore, NewGrant, Resolve, RuntimeOptions, WasiVersions};

/// The builder of a host. Every default is safe: without further calls, plugins can only compute.
#[derive(Clone, Default)]
pub struct ToolwitBuilder {
    paths: Vec<PathBuf>,
    runtime: RuntimeOptions,
    store: Option<Arc<dyn Store>>,
    #[cfg(feature = "sqlite")]
    store_file: Option<StoreFile>,
    exposure: Exposure,
    tools_visible_max: Option<usize>,
    watch: Option<WatchOptions>,
    dynamic_discovery: DynamicDiscovery,
    /// Whether the host can be used before its dynamic tools are discovered.
    has_background_discovery: bool,
    embedding_model: Option<Arc<dyn EmbeddingModel>>,
    tools: Vec<Arc<dyn Tool>>,
    /// The interceptors of the application.
    application_interceptors: Vec<(ToolSelector, Arc<dyn Decorator>)>,
    /// The interceptors that are plugins.
    plugin_interceptors: Vec<InterceptorSettings>,
    /// The sources of all conversations.
    shared_sources: Vec<Arc<dyn ToolSource>>,
    /// The sources and groups of the application.
    tool_groups: ToolGroups,
    group_configs: Vec<GroupsConfig>,
    groups_files: Vec<PathBuf>,
}

/// The file of the metadata database.
#[cfg(feature = "sqlite")]
#[derive(Clone)]
struct StoreFile {
    path: PathBuf,
    /// Whether the host cannot be built without the file.
    is_required: bool,
}

impl ToolwitBuilder {
    /// Adds a directory of plugins, or a single component file.
    #[must_use]
    pub fn plugins(mut self, path: impl Into<PathBuf>) -> Self {
        self.paths.push(path.into());
        self
    }

    /// Sets the operator's limits of every call. Unset limits have their defaults.
    #[must_use]
    pub fn limits(mut self, limits: LimitOverrides) -> Self {
        self.runtime.operator_limits = limits;
        self
    }

    /// Adds tools whose calls may take longer: their time limit is at least
    /// [`LONG_RUNNING_WALL`](toolwit_core::limits::LONG_RUNNING_WALL). A tool is identified by its id, such as
    /// `render#frames`, and a method by its id without an entity. An id that no plugin has is reported in the log.
    #[must_use]
    pub fn long_running<'i>(mut self, tools: impl IntoIterator<Item = &'i str>) -> Self {
        self.runtime
            .long_running
            .extend(tools.into_iter().map(ToolId::from_text));
        self
    }

    /// Sets the limits of the process.
    #[must_use]
    pub fn engine_limits(mut self, limits: EngineLimits) -> Self {
        self.runtime.engine_limits = limits;
        self
    }

    /// Sets where compiled code is cached between processes.
    #[must_use]
    pub fn code_cache(mut self, location: CodeCacheLocation) -> Self {
        self.runtime.code_cache = location;
        self
    }

    /// Sets where components are compiled. By default this process compiles them, without a hard limit of memory; see
    /// [`Compiler::Process`].
    #[must_use]
    pub fn compiler(mut self, compiler: Compiler) -> Self {
        self.runtime.compiler = compiler;
        self
    }

    /// Sets the versions of WASI that components can import; by default 0.2 only.
    #[must_use]
    pub fn wasi(mut self, versions: WasiVersions) -> Self {
        self.runtime.wasi = versions;
        self
    }

    /// Sets the store of package metadata. With a persistent store, the next start reads only what changed.
    #[must_use]
    pub fn store(mut self, store: Arc<dyn Store>) -> Self {
        self.store = Some(store);
        self
    }

    /// Sets the file of the metadata database, which also holds the plugins' key-value data. The file is created if it
    /// does not exist, and can never be granted to a plugin.
    #[cfg(feature = "sqlite")]
    #[must_use]
    pub fn store_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.store_file = Some(StoreFile {
            path: path.into(),
            is_required: true,
        });
        self
    }

    /// Sets the file of the metadata database like [`ToolwitBuilder::store_file`]. If it cannot be opened, a warning is
    /// logged and the host works without a database: it reads all components again, and values that plugins store end
    /// with the process.
    #[cfg(feature = "sqlite")]
    #[must_use]
    pub fn store_file_if_usable(mut self, path: impl Into<PathBuf>) -> Self {
        self.store_file = Some(StoreFile {
            path: path.into(),
            is_required: false,
        });
        self
    }

    /// Sets the store of the plugins' key-value data. By default, the data are in memory.
    #[must_use]
    pub fn keyvalue(mut self, keyvalue: Arc<dyn KeyValueStore>) -> Self {
        self.runtime.keyvalue = Some(keyvalue);
        self
    }

    /// Adds a file or directory that can never be granted to a plugin, such as the file of the store.
    #[must_use]
    pub fn protect(mut self, path: impl Into<PathBuf>) -> Self {
        self.runtime.protected_paths.push(path.into());
        self
    }

    /// Adds a native tool or a facade to the tools of all conversations. The tool is shown and searched like the tools
    /// of plugins. To add a tool that the model always sees, use
    /// [`ConversationBuilder::tool`](toolwit_agent::ConversationBuilder::tool).
    #[must_use]
    pub fn tool(self, tool: impl Tool + 'static) -> Self {
        self.tools([Arc::new(tool) as Arc<dyn Tool>])
    }

    /// Adds native tools and facades; see [`ToolwitBuilder::tool`].
    #[must_use]
    pub fn tools(mut self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        self.tools.extend(tools);
        self
    }

    /// Wraps the calls of tools with a plugin that exports `toolwit:plugin/interceptor`. The interceptor receives the
    /// arguments and the outcome of each call, and can change or refuse them.
    ///
    /// An interceptor covers native tools, plugins and other sources, nested calls, the methods of entities, agents and
    /// late results. It runs under limits and grants of its own. If it fails, the call does not run or its result is
    /// withheld. Interceptors are applied in the order in which they are added, the first one outermost; the
    /// interceptors of [`ToolwitBuilder::interceptor`] are outside those of plugins. [`ToolwitBuilder::build`] fails if
    /// the plugin is not installed.
    #[must_use]
    pub fn plugin_interceptor(mut self, settings: InterceptorSettings) -> Self {
        self.plugin_interceptors.push(settings);
        self
    }

    /// Wraps the calls of the selected tools with an interceptor of the application; see
    /// [`ToolwitBuilder::plugin_interceptor`].
    #[must_use]
    pub fn interceptor(mut self, tools: ToolSelector, interceptor: impl Interceptor + 'static) -> Self {
        self.application_interceptors
            .push((tools, Arc::new(Interception::new(interceptor))));
        self
    }

    /// Sets which tools of plugins and of the host a conversation shows its model.
    #[must_use]
    pub fn exposure(mut self, exposure: Exposure) -> Self {
        self.exposure = exposure;
        self
    }

    /// Sets the maximum number of tools that [`Exposure::Auto`] shows without a search. The default is
    /// [`TOOLS_VISIBLE_MAX`](toolwit_core::limits::TOOLS_VISIBLE_MAX).
    #[must_use]
    pub fn tools_visible_max(mut self, tools_visible_max: usize) -> Self {
        self.tools_visible_max = Some(tools_visible_max);
        self
    }

    /// Sets the model of the search by meaning, such as [`WordVectors`](toolwit_registry::WordVectors). With a model,
    /// the search also finds tools that share no word with the query. Without a model, the search compares words only.
    #[must_use]
    pub fn embedding_model(mut self, model: impl EmbeddingModel + 'static) -> Self {
        self.embedding_model = Some(Arc::new(model));
        self
    }

    /// Watches the plugin directories while the host lives. With a watch, a missing directory is not an error, since it
    /// may be created later.
    #[must_use]
    pub fn watch(mut self, options: WatchOptions) -> Self {
        self.watch = Some(options);
        self
    }

    /// Sets whether dynamic tools are discovered automatically; see
    /// [`discover_dynamic_tools`](toolwit_registry::LiveRegistry::discover_dynamic_tools). By default they are, once
    /// for each new component. [`ToolwitBuilder::build`] waits for the discovery for at most ten seconds.
    #[must_use]
    pub fn dynamic_discovery(mut self, discovery: DynamicDiscovery) -> Self {
        self.dynamic_discovery = discovery;
        self
    }

    /// Lets [`ToolwitBuilder::build`] return before dynamic tools are discovered. The discovery runs in the background,
    /// and the tools that it finds enter the registry like those of a changed directory.
    #[must_use]
    pub fn background_discovery(mut self) -> Self {
        self.has_background_discovery = true;
        self
    }

    /// Sets the operator's grants file; see [`Grants`](toolwit_sandbox::grants::Grants). Without a file, only the
    /// grants of the application apply.
    ///
    /// The file is read again when it changes. A running call keeps its grants; the next call has the new ones.
    #[must_use]
    pub fn grants(mut self, file: impl Into<PathBuf>) -> Self {
        self.runtime.grants_file = Some(file.into());
        self
    }

    /// Sets the file with the values of granted secrets; see [`SecretStore`](toolwit_sandbox::SecretStore).
    #[must_use]
    pub fn secrets(mut self, file: impl Into<PathBuf>) -> Self {
        self.runtime.secrets_file = Some(file.into());
        self
    }

    /// Freezes the clocks of all plugins at a time, in seconds since 1970, and derives their random bytes from it, so
    /// that calls can be replayed. The rules `clock` and `random` of the grants then have no effect. A plugin that does
    /// not import a clock does not get one.
    #[must_use]
    pub fn frozen_at(mut self, seconds: u64) -> Self {
        self.runtime.frozen_at = Some(seconds);
        self
    }

    /// Adds a grant of the application, in addition to those of the grants file. A plugin without any grant can only
    /// compute.
    ///
    /// ```
    /// use toolwit::Toolwit;
    /// use toolwit::grants::{GrantRules, GrantScope, GrantedVersion, HttpRule};
    /// use toolwit::sandbox::NewGrant;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let builder = Toolwit::builder().plugins("./plugins").grant(NewGrant {
    ///     plugin: "weather".to_owned(),
    ///     version: GrantedVersion::Any,
    ///     scope: GrantScope::Always,
    ///     rules: GrantRules {
    ///         http: vec![HttpRule::parse("https://api.weather.example/v1")?],
    ///         ..GrantRules::default()
    ///     },
    /// });
    /// # let _ = builder;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn grant(mut self, grant: NewGrant) -> Self {
        self.runtime.application_grants.push(grant);
        self
    }

    /// Adds a secret of the application. A grant refers to it by name, like to a secret of the secret store. A key of
    /// one end user belongs in the context of the conversation instead.
    #[must_use]
    pub fn secret(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.runtime.secret_values.set(name, value);
        self
    }

    /// Replaces the system's resolver for the names of granted hosts. The host checks the addresses that the new
    /// resolver returns like those of the system's resolver.
    #[must_use]
    pub fn resolver(mut self, resolver: Arc<dyn Resolve>) -> Self {
        self.runtime.resolver = Some(resolver);
        self
    }

    /// Adds trusted root certificates, in PEM, for granted requests over TLS. The system's roots stay trusted.
    #[cfg(feature = "network")]
    #[must_use]
    pub fn extra_root_certificates(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.runtime.extra_root_certificates.push(pem.into());
        self
    }

    /// Adds tool groups: roles such as `web`, and the tools of each. The tools of plugins have the provider `plugins`.
    /// A later group replaces one with the same role.
    #[must_use]
    pub fn groups(mut self, groups: GroupsConfig) -> Self {
        self.group_configs.push(groups);
        self
    }

    /// Adds the tool groups of a `toolwit.toml`, in its tables `[groups.ROLE]`. Other tables are ignored.
    #[must_use]
    pub fn groups_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.groups_files.push(path.into());
        self
    }

    /// Adds a tool group that is built in code, with its tools. The group replaces any other group with the same role,
    /// also a configured one.
    #[must_use]
    pub fn group(mut self, group: ToolGroup) -> Self {
        self.tool_groups = self.tool_groups.with_group(group);
        self
    }

    /// Adds a source of tools for tool groups, such as a server. The source is not contacted before a conversation
    /// needs it.
    #[must_use]
    pub fn tool_source(mut self, source: impl ToolSource + 'static) -> Self {
        self.tool_groups = self.tool_groups.with_source(source);
        self
    }

    /// Adds a source of tools for all conversations, such as a server. Its tools are shown and searched like those of
    /// plugins, and its name is a provider of tool groups. The source is not contacted before the first turn of a
    /// conversation; see [`ToolSources`](crate::strategy::ToolSources). A later source replaces one with the same name.
    #[must_use]
    pub fn shared_source(mut self, source: impl ToolSource + 'static) -> Self {
        let source: Arc<dyn ToolSource> = Arc::new(source);
        self.tool_groups = self
            .tool_groups
            .with_source(SharedSource::new(source.clone(), Arc::new(|_: &str| true)));
        self.shared_sources.retain(|earlier| earlier.name() != source.name());
        self.shared_sources.push(source);
        self
    }

    /// Adds the servers of the Model Context Protocol for all conversations; see [`ToolwitBuilder::shared_source`].
    #[cfg(feature = "mcp")]
    #[must_use]
    pub fn mcp(self, servers: &toolwit_mcp_client::McpServers) -> Self {
        servers.iter().cloned().fold(self, Self::shared_source)
    }
}
