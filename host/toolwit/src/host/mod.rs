//! A host: plugins, the runtime that they share, and the conversations that use them.

mod builder;
mod call_session;
mod discovery;
pub mod find;
mod groups_file;
mod interceptors;
mod long_running;
mod plugin_source;
mod restricted_source;

use std::sync::Arc;

use self::interceptors::Interceptors;
use self::plugin_source::PluginSource;
use self::restricted_source::RestrictedSource;
use crate::strategy::{PluginUpdates, RegistryTools, StartingSources, ToolSearch, ToolSources};
use toolwit_agent::injection::Chaining;
use toolwit_agent::{Conversation, ConversationBuilder, SourceTools, ToolGroups, ToolSource};
use toolwit_core::{Error, Tool};
use toolwit_registry::{LiveRegistry, Package, Registry, WatchGuard};
use toolwit_sandbox::{Plugin, Runtime, Scope};

pub use builder::ToolwitBuilder;
pub use call_session::{CallSession, SessionCall, UnreachableSource};
pub use discovery::DiscoveryTask;
pub use plugin_source::PLUGIN_SOURCE;

/// A function that returns whether a conversation may use the tool with an id.
type MayUse = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// A host: plugins, the runtime that they share, native tools and sources of tools. Clones share everything.
///
/// ```no_run
/// use toolwit::Toolwit;
///
/// # async fn example() -> Result<(), toolwit::Error> {
/// let host = Toolwit::builder().plugins("./tools").build().await?;
/// for package in host.registry().packages() {
///     println!("{}: {}", package.name, if package.broken_reason().is_none() { "ready" } else { "broken" });
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Toolwit {
    runtime: Arc<Runtime>,
    registry: LiveRegistry,
    exposure: Exposure,
    tools_visible_max: usize,
    native_tools: Arc<[Arc<dyn Tool>]>,
    interceptors: Interceptors,
    /// The shared sources; see [`ToolwitBuilder::shared_source`].
    sources: Arc<[Arc<dyn ToolSource>]>,
    /// The tool groups, and the sources that they use. A conversation uses a copy in which the shared sources and the source of
    /// plugins return only the tools that the conversation may use.
    groups: ToolGroups,
    _watch: Option<Arc<WatchGuard>>,
    /// The background discovery, which stops when the host is dropped.
    _discovery: Option<Arc<DiscoveryTask>>,
}

/// The selection of the host's tools that a conversation shows to its model.
///
/// When a conversation is configured, [`Exposure::Auto`] becomes [`Exposure::Flat`] or [`Exposure::Search`], depending on
/// the number of native tools and tools of plugins. The tools of shared sources are counted later, when a turn begins. If
/// there are then too many tools, those of the sources are found by search; see [`ToolSources::with_fallback_search`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Exposure {
    /// [`Exposure::Flat`] for few tools, [`Exposure::Search`] for many; see [`ToolwitBuilder::tools_visible_max`].
    #[default]
    Auto,
    /// All tools, from the start.
    Flat,
    /// All tools from the start, grouped: each interface with several functions is one facade, and so is each shared
    /// source. Calling a facade reveals its tools.
    Facade,
    /// The tools that a search finds. Before each turn, the host searches with the user's message as the query. The model can
    /// search with `search_tools`.
    Search,
}

impl Toolwit {
    /// Starts to configure a host.
    #[must_use]
    pub fn builder() -> ToolwitBuilder {
        ToolwitBuilder::default()
    }

    /// Returns a snapshot of the packages, broken ones included.
    #[must_use]
    pub fn registry(&self) -> Registry {
        self.registry.current()
    }

    /// Returns the registry that follows the plugin directories.
    #[must_use]
    pub fn live_registry(&self) -> &LiveRegistry {
        &self.registry
    }

    /// Returns the runtime, which can also load components that are not in the registry.
    #[must_use]
    pub fn runtime(&self) -> &Arc<Runtime> {
        &self.runtime
    }

    /// Returns the native tools of the host; see [`ToolwitBuilder::tool`].
    #[must_use]
    pub fn native_tools(&self) -> &[Arc<dyn Tool>] {
        &self.native_tools
    }

    /// Returns the native tools of the host and all tools of plugins, with the interceptors of the host applied.
    /// Resources that the tools return live in `scope`.
    #[must_use]
    pub fn tools(&self, scope: &Scope) -> Vec<Arc<dyn Tool>> {
        let native = self.native_tools.iter().cloned();
        let tools = native.chain(self.registry().tools(scope));
        tools.map(|tool| self.interceptors.decorate_tool(tool)).collect()
    }

    /// Starts to configure a conversation with the native tools, all tools of plugins and those of shared sources,
    /// shown according to [`Toolwit::exposure`].
    ///
    /// Resources that tools return live as long as the conversation. When packages change, the conversation uses the
    /// new versions from the beginning of its next turn.
    #[must_use]
    pub fn conversation(&self) -> ConversationBuilder {
        self.conversation_among(|_| true)
    }

    /// Starts to configure a conversation like [`Toolwit::conversation`], with only the tools whose id `may_use`
    /// accepts, such as the tools of a tenant or a role.
    ///
    /// The other tools are neither shown nor found, and no tool can call them. Methods of entities are also filtered. All
    /// entities of a type share the id of a method, such as `crm/shop:crm/customers#[method]customer.delete`.
    #[must_use]
    pub fn conversation_among(&self, may_use: impl Fn(&str) -> bool + Send + Sync + 'static) -> ConversationBuilder {
        let chaining = chaining(&self.registry(), &may_use);
        let may_use: MayUse = Arc::new(may_use);
        let (scope_filter, strategy_filter) = (may_use.clone(), may_use.clone());
        let scope = Scope::new().restricted_to(move |id| scope_filter(id));
        let may_use_tool = move |id: &str| strategy_filter(id);
        let registry = self.registry.clone();
        let builder = Conversation::builder().groups(self.groups_of(scope.clone(), may_use.clone()));
        let builder = self.interceptors.guard_conversation(builder);
        let native = self
            .native_tools
            .iter()
            .filter(|tool| may_use_tool(tool.definition().id.as_str()));
        let native: Vec<_> = native.cloned().collect();
        let search =
            ToolSearch::among(registry.clone(), scope.clone(), may_use_tool.clone()).with_tools(native.clone());
        let search = self.restricted_sources(&may_use).fold(search, ToolSearch::with_source);
        let sources = || {
            let sources = self.restricted_sources(&may_use);
            sources.map(|source| Arc::new(source) as Arc<dyn ToolSource>)
        };
        let source_tools = || ToolSources::new(sources());
        let builder = match self.exposure() {
            Exposure::Search => builder.strategy(search),
            exposure => {
                let builder = builder.tools(native);
                let tools = RegistryTools::among(registry, scope, may_use_tool.clone());
                match exposure {
                    Exposure::Facade => self
                        .source_facades(&may_use)
                        .fold(builder.strategy(tools.as_facades()), ConversationBuilder::tool),
                    _ if self.sources.is_empty() => builder.strategy(tools),
                    // The strategy of the starting sources comes last: it tells which sources were too slow for this turn.
                    // The tools of shared sources are counted when a turn begins. If there are too many, the search is used.
                    _ if self.exposure == Exposure::Auto => builder
                        .strategy(tools)
                        .strategy(source_tools().with_fallback_search(self.tools_visible_max, search))
                        .strategy(StartingSources::new(sources())),
                    _ => builder
                        .strategy(tools)
                        .strategy(source_tools())
                        .strategy(StartingSources::new(sources())),
                }
            }
        };
        if chaining.is_empty() {
            builder
        } else {
            builder.chaining(chaining)
        }
    }

    /// Starts to configure a conversation with only the tools of these roles. Tool groups assign tools to roles; see
    /// [`ToolwitBuilder::groups`], [`ToolwitBuilder::groups_file`] and [`ToolwitBuilder::group`].
    ///
    /// The conversation looks up the tools of its roles when a turn begins, and so uses the current packages. Building the
    /// conversation fails for an unknown role. A turn can have further roles: [`UserTurn::role`](toolwit_agent::UserTurn::role).
    #[must_use]
    pub fn conversation_for<R: Into<String>>(&self, roles: impl IntoIterator<Item = R>) -> ConversationBuilder {
        let scope = Scope::new();
        let groups = self.groups_of(scope.clone(), Arc::new(|_: &str| true));
        let builder = self
            .interceptors
            .guard_conversation(Conversation::builder().groups(groups));
        let builder = builder.strategy(PluginUpdates::among(self.registry.clone(), scope, |_| true));
        roles.into_iter().fold(builder, ConversationBuilder::role)
    }

    /// Returns a facade for each shared source. The source is contacted when its facade is called. A source that cannot
    /// be a facade is skipped with a warning.
    fn source_facades(&self, may_use: &MayUse) -> impl Iterator<Item = Arc<dyn Tool>> {
        self.restricted_sources(may_use).filter_map(|source| {
            let name = source.name();
            let description = format!("The tools of `{name}`. Call it to get them.");
            let facade = SourceTools::lazy_facade(name, &description, Arc::new(source.clone())).build();
            let facade =
                facade.inspect_err(|error| tracing::warn!(source = name, %error, "a source cannot be a facade"));
            facade.ok().map(|facade| Arc::new(facade) as Arc<dyn Tool>)
        })
    }

    /// Returns the shared sources, restricted to the tools that a conversation may use.
    fn restricted_sources(&self, may_use: &MayUse) -> impl Iterator<Item = RestrictedSource> {
        self.sources
            .iter()
            .map(|source| RestrictedSource::new(source.clone(), may_use.clone()))
    }

    /// Returns the shared sources, such as servers; see [`ToolwitBuilder::shared_source`].
    #[must_use]
    pub fn sources(&self) -> &[Arc<dyn ToolSource>] {
        &self.sources
    }

    /// Returns the tool groups of a conversation, restricted to the tools that it may use.
    fn groups_of(&self, scope: Scope, may_use: MayUse) -> ToolGroups {
        let groups = self.restricted_sources(&may_use).fold(
            self.groups.clone().restricted_to(|id| may_use(id)),
            ToolGroups::with_source,
        );
        groups.with_source(PluginSource::new(self.registry.clone(), scope, may_use))
    }

    /// Returns the exposure of a conversation that is configured now. [`Exposure::Auto`] is replaced by [`Exposure::Flat`]
    /// or [`Exposure::Search`]. If the host has shared sources with many tools, a conversation with the exposure
    /// [`Exposure::Auto`] may still use the search for them, although this function returns [`Exposure::Flat`].
    #[must_use]
    pub fn exposure(&self) -> Exposure {
        match self.exposure {
            Exposure::Auto if self.registry().tool_count() + self.native_tools.len() <= self.tools_visible_max => {
                Exposure::Flat
            }
            Exposure::Auto => Exposure::Search,
            configured => configured,
        }
    }

    /// Discovers the dynamic tools that have not been discovered yet, and waits for at most ten seconds. Returns the
    /// background task if the discovery takes longer. Returns `None` if the discovery has ended or no dynamic tools are
    /// undiscovered.
    ///
    /// # Errors
    /// Those of [`LiveRegistry::discover_dynamic_tools`].
    pub async fn discover_dynamic_tools(&self) -> Result<Option<DiscoveryTask>, Error> {
        discovery::discover(&self.registry).await
    }
}

/// Returns the strategy for the resources that manifests declare as chained, with those of their methods that the
/// conversation may use.
fn chaining(registry: &Registry, may_use: &impl Fn(&str) -> bool) -> Chaining {
    // Checks manifests first: inspections are parsed lazily, so those of other plugins need not be parsed here.
    let has_chain = |package: &&Package| {
        package
            .manifest
            .as_ref()
            .is_some_and(|manifest| !manifest.chain.is_empty())
    };
    let plugins = registry.packages().iter().filter(has_chain).filter_map(Package::plugin);
    let has_usable_tool =
        |plugin: &&Arc<Plugin>| plugin.inspection().tools.iter().any(|tool| may_use(tool.id.as_str()));
    let resources = plugins
        .filter(has_usable_tool)
        .flat_map(|plugin| plugin.chained_resources());
    let usable = resources.filter_map(|mut resource| {
        resource.methods.retain(|method| may_use(method.id.as_str()));
        (!resource.methods.is_empty()).then_some(resource)
    });
    usable.fold(Chaining::new(), |chaining, resource| {
        chaining.with_namespace(resource.namespace, resource.prefix, resource.methods)
    })
}
