//! The builder of a host.

mod build;

use std::path::PathBuf;
use std::sync::Arc;

use super::Exposure;
use super::restricted_source::RestrictedSource;
use toolwit_agent::{GroupsConfig, ToolGroup, ToolGroups, ToolSource};
use toolwit_core::limits::{EngineLimits, LimitOverrides};
use toolwit_core::{Decorator, Interception, Interceptor, Tool, ToolId, ToolSelector};
use toolwit_registry::store::Store;
use toolwit_registry::{DynamicDiscovery, EmbeddingModel, InterceptorSettings, WatchOptions};
use toolwit_sandbox::{
    CodeCacheLocation, Compiler, KeyValueStore, NewGrant, Resolve, RuntimeOptions, WasiVersions, WritableRecord,
};

/// The builder of a host. Every default is safe: without grants, plugins can only compute.
#[derive(Clone, Default)]
pub struct ToolwitBuilder {
    /// Plugin directories and component files.
    plugin_paths: Vec<PathBuf>,
    runtime: RuntimeOptions,
    store: Option<Arc<dyn Store>>,
    #[cfg(feature = "sqlite")]
    store_file: Option<StoreFile>,
    exposure: Exposure,
    tools_visible_max: Option<usize>,
    watch: Option<WatchOptions>,
    dynamic_discovery: DynamicDiscovery,
    /// Whether [`ToolwitBuilder::build`] returns before dynamic tools are discovered.
    has_background_discovery: bool,
    embedding_model: Option<Arc<dyn EmbeddingModel>>,
    native_tools: Vec<Arc<dyn Tool>>,
    /// The interceptors that the application implements in Rust, with the tools that they cover.
    application_interceptors: Vec<(ToolSelector, Arc<dyn Decorator>)>,
    /// The interceptors that are plugins.
    plugin_interceptors: Vec<InterceptorSettings>,
    /// The sources that [`ToolwitBuilder::shared_source`] added.
    shared_sources: Vec<Arc<dyn ToolSource>>,
    /// The tool groups that are built in code, and the sources that tool groups can use.
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
        self.plugin_paths.push(path.into());
        self
    }

    /// Sets the operator's limits for each call. Unset limits have their defaults.
    #[must_use]
    pub fn limits(mut self, limits: LimitOverrides) -> Self {
        self.runtime.operator_limits = limits;
        self
    }

    /// Raises the time limit of some tools to
    /// [`LONG_RUNNING_WALL`](toolwit_core::limits::LONG_RUNNING_WALL), unless the operator's limit is higher. `tools` are
    /// the ids of tools, such as `render#frames`, and of methods, such as `render#[method]scene.draw`. The id of a method
    /// covers all entities of its type. An id that no plugin has is logged as a warning.
    #[must_use]
    pub fn long_running<'i>(mut self, tools: impl IntoIterator<Item = &'i str>) -> Self {
        self.runtime
            .long_running
            .extend(tools.into_iter().map(ToolId::from_text));
        self
    }

    /// Sets the limits that all plugins of the host share.
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

    /// Sets where components are compiled. By default, this process compiles them, without a hard memory limit.
    /// [`Compiler::Process`] uses a separate process with limits.
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

    /// Sets the store of package metadata. With a persistent store, the next start reads only components that changed. If
    /// the builder opens a metadata database (`store_file`), this setting has no effect.
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
    /// logged and the host works without a database: it reads all components again, and values that plugins store
    /// are lost when the process ends.
    #[cfg(feature = "sqlite")]
    #[must_use]
    pub fn store_file_if_usable(mut self, path: impl Into<PathBuf>) -> Self {
        self.store_file = Some(StoreFile {
            path: path.into(),
            is_required: false,
        });
        self
    }

    /// Sets the store of the plugins' key-value data. By default, the data is kept in memory. If the builder opens a
    /// metadata database (`store_file`), the data is kept in the database instead, and this setting has no effect.
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

    /// Adds a file or directory that can be granted to a plugin for reading only, such as a program that the host starts.
    #[must_use]
    pub fn protect_from_writing(mut self, path: impl Into<PathBuf>) -> Self {
        self.runtime.read_only_paths.push(path.into());
        self
    }

    /// Sets the record of the directories that were writable for plugins. By default, it is next to the grants file. Hosts
    /// with different grants files should share a record; see [`WritableRecord`].
    #[must_use]
    pub fn writable_record(mut self, record: WritableRecord) -> Self {
        self.runtime.writable_record = Some(record);
        self
    }

    /// Adds a native tool or a facade to the host. [`Toolwit::conversation`](super::Toolwit::conversation) shows and
    /// searches it like the tools of plugins. To add a tool that the model always sees, use
    /// [`ConversationBuilder::tool`](toolwit_agent::ConversationBuilder::tool).
    #[must_use]
    pub fn tool(self, tool: impl Tool + 'static) -> Self {
        self.tools([Arc::new(tool) as Arc<dyn Tool>])
    }

    /// Adds native tools and facades; see [`ToolwitBuilder::tool`].
    #[must_use]
    pub fn tools(mut self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Self {
        self.native_tools.extend(tools);
        self
    }

    /// Wraps the calls of tools with a plugin that exports `toolwit:plugin/interceptor`. The interceptor receives the
    /// arguments and the outcome of each call, and can change or refuse them.
    ///
    /// An interceptor covers native tools, the tools of plugins and other sources, the methods of entities, nested calls,
    /// and the calls of agents. It also covers the results that background tasks deliver after their calls have returned.
    /// The interceptor runs under its own limits and grants. If it fails, the call does not run or its result is withheld.
    ///
    /// Interceptors are applied in the order in which they are added, the first one outermost. The interceptors of
    /// [`ToolwitBuilder::interceptor`] are outside those of plugins. [`ToolwitBuilder::build`] fails if the plugin is not
    /// installed.
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

    /// Sets which tools of plugins and of the host a conversation shows to its model.
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

    /// Sets the embedding model of the tool search, such as [`WordVectors`](toolwit_registry::WordVectors). With a model,
    /// the search also compares meanings, and finds tools that share no word with the query. Without a model, it compares
    /// words only.
    #[must_use]
    pub fn embedding_model(mut self, model: impl EmbeddingModel + 'static) -> Self {
        self.embedding_model = Some(Arc::new(model));
        self
    }

    /// Watches the plugin directories for changes while the host exists. With a watch, a missing directory is not an
    /// error, because it may be created later.
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
    /// and the tools that it finds are added to the registry.
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

    /// Freezes the clocks of all plugins at a time, in seconds since 1970. The time is also the seed of their random
    /// bytes, so that calls can be replayed. The rules `clock` and `random` of the grants then have no effect.
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

    /// Adds a secret of the application. A grant refers to it by name, as to a secret of the secret store. A secret that
    /// belongs to one end user must be in the context of that user's conversation instead.
    #[must_use]
    pub fn secret(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.runtime.secret_values.set(name, value);
        self
    }

    /// Replaces the system's DNS resolver for granted requests. The host checks the returned addresses against the grant,
    /// like those of the system's resolver.
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

    /// Adds configured tool groups. A group assigns tools to a role, such as `web`. In a group, the provider `plugins`
    /// stands for the tools of plugins. A later group replaces an earlier configured group with the same role.
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

    /// Adds a tool group that is built in code. The group replaces an earlier group of this method with the same role,
    /// and takes precedence over a configured group.
    #[must_use]
    pub fn group(mut self, group: ToolGroup) -> Self {
        self.tool_groups = self.tool_groups.with_group(group);
        self
    }

    /// Adds a source of tools for tool groups, such as a server. The source is first contacted when a conversation needs
    /// a tool group that can contain its tools.
    #[must_use]
    pub fn tool_source(mut self, source: impl ToolSource + 'static) -> Self {
        self.tool_groups = self.tool_groups.with_source(source);
        self
    }

    /// Adds a source of tools, such as a server, for all conversations. [`Toolwit::conversation`](super::Toolwit::conversation)
    /// shows and searches its tools like those of plugins, and tool groups can use its name as a provider. The source is not
    /// contacted before the first turn of a conversation; see [`ToolSources`](crate::strategy::ToolSources). A later source
    /// replaces an earlier one with the same name.
    #[must_use]
    pub fn shared_source(mut self, source: impl ToolSource + 'static) -> Self {
        let source: Arc<dyn ToolSource> = Arc::new(source);
        // The tool groups contain the source without a restriction. For each conversation, the host replaces it by a source
        // with only those tools that the conversation may use.
        self.tool_groups = self
            .tool_groups
            .with_source(RestrictedSource::new(source.clone(), Arc::new(|_: &str| true)));
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
