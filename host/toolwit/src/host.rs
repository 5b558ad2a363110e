//! A host: plugins, the runtime that they share, and the conversations that use them.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;

use toolwit_agent::injection::Chaining;
use toolwit_agent::{Conversation, ConversationBuilder};
use toolwit_core::{Error, ErrorKind, Phase};

use crate::strategy::{RegistryTools, ToolSearch};
use toolwit_core::limits::{EngineLimits, LimitRequest};
use toolwit_core::{Tool, ToolLookup, ToolSet};
use toolwit_registry::store::{MemoryStore, Store};
use toolwit_registry::{
    DiscoveryOutcome, DiscoveryTargets, DynamicDiscovery, LiveRegistry, MissingPath, Package, Registry, WatchGuard,
    WatchOptions,
};
use toolwit_sandbox::{CodeCacheLocation, KeyValueStore, Plugin, Resolve, Runtime, RuntimeOptions, Scope};

/// A host of plugins. Clones share everything.
///
/// ```no_run
/// use toolwit::Toolwit;
///
/// # async fn example() -> Result<(), toolwit::Error> {
/// let host = Toolwit::builder().plugins("./tools").build().await?;
/// for package in host.registry().packages() {
///     println!("{}: {}", package.name, if package.reason().is_none() { "ready" } else { "broken" });
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
    _watching: Option<Arc<WatchGuard>>,
    /// Ends with the host.
    _asking: Option<Arc<DiscoveryTask>>,
}

/// A running query of plugins for their dynamic tools. Dropping it ends the query.
pub type DiscoveryTask = JoinSet<Result<Vec<DiscoveryOutcome>, Error>>;

/// Which tools of plugins a conversation shows its model. It is decided once, when the conversation is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Exposure {
    /// All of them while they are few, else [`Exposure::Search`].
    #[default]
    Auto,
    /// All of them, from the start.
    Flat,
    /// All of them from the start, each interface with several functions as one tool that unfolds into them.
    Facade,
    /// Those that are found: by what the user says, before each turn, and by the model with `search_tools`.
    Search,
}

/// How many tools are shown without a search: models choose badly among more, and each costs its definition in every request.
pub const TOOLS_VISIBLE_MAX: usize = 40;

/// How long a host that is built waits for what plugins tell of their tools. The others answer later.
const ASKED_WALL_MAX: Duration = Duration::from_secs(10);

/// Says where the plugins of a host are and how they run. What is not said is at its safe default.
#[derive(Clone, Default)]
pub struct ToolwitBuilder {
    places: Vec<PathBuf>,
    runtime: RuntimeOptions,
    store: Option<Arc<dyn Store>>,
    exposure: Exposure,
    tools_visible_max: Option<usize>,
    watch: Option<WatchOptions>,
    dynamic_discovery: DynamicDiscovery,
}

impl Toolwit {
    /// Starts to describe a host.
    #[must_use]
    pub fn builder() -> ToolwitBuilder {
        ToolwitBuilder::default()
    }

    /// Returns the packages of its plugin directories as they are known now, broken ones included.
    #[must_use]
    pub fn registry(&self) -> Registry {
        self.registry.current()
    }

    /// Returns what keeps up with its plugin directories.
    #[must_use]
    pub fn live_registry(&self) -> &LiveRegistry {
        &self.registry
    }

    /// Returns the runtime, to load further components with.
    #[must_use]
    pub fn runtime(&self) -> &Arc<Runtime> {
        &self.runtime
    }

    /// Returns all tools of all plugins, bound to one conversation: resources that they hand out live in `scope`.
    #[must_use]
    pub fn tools(&self, scope: &Scope) -> Vec<Arc<dyn Tool>> {
        self.registry().tools(scope)
    }

    /// Starts a conversation that may use all tools of all plugins, and shows them as [`Exposure`] says. The resources that
    /// they hand out live as long as it. When packages change, it moves to the new ones at the beginning of its next turn.
    #[must_use]
    pub fn conversation(&self) -> ConversationBuilder {
        self.conversation_among(|_| true)
    }

    /// Starts a conversation as [`Toolwit::conversation`] does, over the tools whose id `may_use` allows: a tenant's, a
    /// role's. The others are neither shown nor found, and no tool can call them. It decides about the methods of entities too,
    /// each by one id for all instances, such as `crm/shop:crm/customers#[method]customer.delete`.
    #[must_use]
    pub fn conversation_among(&self, may_use: impl Fn(&str) -> bool + Send + Sync + 'static) -> ConversationBuilder {
        let chaining = chained(&self.registry(), &may_use);
        let (registry, scope) = (self.registry.clone(), Scope::new());
        let builder = Conversation::builder();
        let builder = match self.exposure() {
            Exposure::Search => builder.strategy(ToolSearch::among(registry, scope, may_use)),
            exposure => {
                let mut tools = RegistryTools::among(registry, scope, may_use);
                if exposure == Exposure::Facade {
                    tools = tools.as_facades();
                }
                builder.strategy(tools)
            }
        };
        match chaining.is_empty() {
            true => builder,
            false => builder.chaining(chaining),
        }
    }

    /// Returns how a conversation that starts now shows its tools: never [`Exposure::Auto`].
    #[must_use]
    pub fn exposure(&self) -> Exposure {
        match self.exposure {
            Exposure::Auto if self.registry().tool_count() <= self.tools_visible_max => Exposure::Flat,
            Exposure::Auto => Exposure::Search,
            said => said,
        }
    }

    /// Asks the plugins that were never asked for their tools, and waits for them as [`ToolwitBuilder::build`] does. Returns
    /// what goes on; it ends when that is dropped.
    pub async fn discover_dynamic_tools(&self) -> Result<Option<DiscoveryTask>, Error> {
        ask(&self.registry).await
    }

    /// Finds a tool by its id, or by its name where only one tool has it.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownTool`] with the nearest names, [`ErrorKind::AmbiguousTool`] with the ids to choose from.
    pub fn find(&self, tools: &[Arc<dyn Tool>], wanted: &str) -> Result<Arc<dyn Tool>, Error> {
        if let Some(tool) = tools.iter().find(|tool| tool.definition().id.as_str() == wanted) {
            return Ok(tool.clone());
        }
        let named: Vec<_> = tools.iter().filter(|tool| tool.definition().name() == wanted).collect();
        match named.as_slice() {
            [tool] => Ok(Arc::clone(tool)),
            [] => find_assigned(tools, wanted),
            several => {
                let ids: Vec<_> = several
                    .iter()
                    .map(|tool| format!("`{}`", tool.definition().id))
                    .collect();
                let message = format!("{} tools have the name `{wanted}`", several.len());
                Err(Error::new(ErrorKind::AmbiguousTool, Phase::Validate, message)
                    .with_suggestion(format!("call one by its id: {}", ids.join(", "))))
            }
        }
    }
}

/// What is to be chained of the packages of which something may be used.
fn chained(registry: &Registry, may_use: &impl Fn(&str) -> bool) -> Chaining {
    // What a component offers is read when it is needed; only a manifest makes it so here.
    let says_so = |package: &&Package| {
        package
            .manifest
            .as_ref()
            .is_some_and(|manifest| !manifest.chain.is_empty())
    };
    let plugins = registry.packages().iter().filter(says_so).filter_map(Package::plugin);
    let is_used = |plugin: &&Arc<Plugin>| plugin.inspection().tools.iter().any(|tool| may_use(tool.id.as_str()));
    let resources = plugins.filter(is_used).flat_map(|plugin| plugin.chained_resources());
    let usable = resources.filter_map(|mut resource| {
        resource.methods.retain(|method| may_use(method.id.as_str()));
        (!resource.methods.is_empty()).then_some(resource)
    });
    usable.fold(Chaining::new(), |chaining, resource| {
        chaining.with_namespace(resource.namespace, resource.prefix, resource.methods)
    })
}

/// Finds a tool by the name that a conversation over all these tools would give it.
fn find_assigned(tools: &[Arc<dyn Tool>], wanted: &str) -> Result<Arc<dyn Tool>, Error> {
    let mut set = ToolSet::new();
    for tool in tools {
        set.add(tool.clone());
    }
    match set.look_up(wanted) {
        ToolLookup::Found(named) => Ok(named.tool),
        ToolLookup::Removed(_) | ToolLookup::Unknown(_) => {
            let nearest: Vec<_> = set.nearest(wanted).iter().map(|name| format!("`{name}`")).collect();
            let error = Error::new(
                ErrorKind::UnknownTool,
                Phase::Validate,
                format!("there is no tool `{wanted}`"),
            );
            Err(match nearest.is_empty() {
                true => error.with_suggestion("`toolwit list` shows the tools that there are"),
                false => error.with_suggestion(format!("did you mean {}?", nearest.join(" or "))),
            })
        }
    }
}

impl ToolwitBuilder {
    /// Adds a directory of plugins, or a single component file.
    #[must_use]
    pub fn plugins(mut self, place: impl Into<PathBuf>) -> Self {
        self.places.push(place.into());
        self
    }

    /// Bounds every call, as the operator. What is not set is at its default.
    #[must_use]
    pub fn limits(mut self, limits: LimitRequest) -> Self {
        self.runtime.operator_limits = limits;
        self
    }

    /// Sets the ceilings of the process.
    #[must_use]
    pub fn engine_limits(mut self, limits: EngineLimits) -> Self {
        self.runtime.engine_limits = limits;
        self
    }

    /// Says where machine code is kept between processes.
    #[must_use]
    pub fn code_cache(mut self, place: CodeCacheLocation) -> Self {
        self.runtime.code_cache = place;
        self
    }

    /// Remembers in this store what was read of packages, so that the next start need not read it again.
    #[must_use]
    pub fn store(mut self, store: Arc<dyn Store>) -> Self {
        self.store = Some(store);
        self
    }

    /// Keeps the values of plugins here; see [`StoredKeyValue`](toolwit_sandbox::StoredKeyValue). Without it they are in memory.
    #[must_use]
    pub fn keyvalue(mut self, keyvalue: Arc<dyn KeyValueStore>) -> Self {
        self.runtime.keyvalue = Some(keyvalue);
        self
    }

    /// Names a file or directory that no plugin can ever be granted, such as that of the store.
    #[must_use]
    pub fn protect(mut self, place: impl Into<PathBuf>) -> Self {
        self.runtime.protected.push(place.into());
        self
    }

    /// Says which tools of plugins a conversation shows its model.
    #[must_use]
    pub fn exposure(mut self, exposure: Exposure) -> Self {
        self.exposure = exposure;
        self
    }

    /// Says how many tools are shown without a search; [`TOOLS_VISIBLE_MAX`] unless it is said.
    #[must_use]
    pub fn tools_visible_max(mut self, tools_visible_max: usize) -> Self {
        self.tools_visible_max = Some(tools_visible_max);
        self
    }

    /// Keeps up with the plugin directories for as long as the host lives. A place that is not there is no error then: it
    /// may come.
    #[must_use]
    pub fn watch(mut self, options: WatchOptions) -> Self {
        self.watch = Some(options);
        self
    }

    /// Says whether plugins are asked for the tools that they tell only when they run; see [`LiveRegistry::discover_dynamic_tools`]. Unless
    /// something else is said, they are when the host is built and when it finds new ones: once, since what they tell is kept.
    /// Building waits ten seconds for them; who answers later has its tools then.
    #[must_use]
    pub fn dynamic_discovery(mut self, ask: DynamicDiscovery) -> Self {
        self.dynamic_discovery = ask;
        self
    }

    /// Names the operator's file of grants; see [`Grants`](toolwit_sandbox::grants::Grants). Without one nothing is granted. The file
    /// is read again when it changes: a running call keeps what it had, the next one has what the file says then.
    #[must_use]
    pub fn grants(mut self, file: impl Into<PathBuf>) -> Self {
        self.runtime.grants = Some(file.into());
        self
    }

    /// Names the file with the values of granted secrets; see [`SecretStore`](toolwit_sandbox::SecretStore).
    #[must_use]
    pub fn secrets(mut self, file: impl Into<PathBuf>) -> Self {
        self.runtime.secrets = Some(file.into());
        self
    }

    /// Looks up the names of granted hosts by other means than the machine's resolver. What it answers is checked all the
    /// same.
    #[must_use]
    pub fn resolver(mut self, resolver: Arc<dyn Resolve>) -> Self {
        self.runtime.resolver = Some(resolver);
        self
    }

    /// Trusts these authorities too when plugins send granted requests over TLS: certificates in PEM. What the machine trusts
    /// stays trusted, and the name of a host is checked all the same.
    #[cfg(feature = "network")]
    #[must_use]
    pub fn extra_root_certificates(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.runtime.extra_root_certificates.push(pem.into());
        self
    }

    /// Reads the plugins. Nothing is compiled yet and no guest code runs, except that of plugins which tell their tools only
    /// when they run and were never asked; see [`ToolwitBuilder::dynamic_discovery`].
    ///
    /// # Errors
    /// [`ErrorKind::Io`] when a directory cannot be read, [`ErrorKind::Configuration`] for limits of zero, for grants that
    /// cannot be read or enforced, and for certificates that cannot be used.
    pub async fn build(self) -> Result<Toolwit, Error> {
        let runtime = Runtime::new(self.runtime)?;
        let store = self.store.unwrap_or_else(|| Arc::new(MemoryStore::new()));
        let absent = match self.watch {
            Some(_) => MissingPath::Empty,
            None => MissingPath::Error,
        };
        let registry = LiveRegistry::open(&runtime, &self.places, absent, store).await?;
        let known = registry.current();
        let names = known.packages().iter().map(|package| package.name.as_str());
        runtime.warn_about_unknown_grants(names);
        let asking = if self.dynamic_discovery == DynamicDiscovery::Never {
            None
        } else {
            ask(&registry).await?
        };
        let watching = self.watch.map(|mut options| {
            if self.dynamic_discovery == DynamicDiscovery::Never {
                options.dynamic_discovery = DynamicDiscovery::Never;
            }
            Arc::new(registry.watch(options))
        });
        Ok(Toolwit {
            runtime,
            registry,
            exposure: self.exposure,
            tools_visible_max: self.tools_visible_max.unwrap_or(TOOLS_VISIBLE_MAX),
            _watching: watching,
            _asking: asking.map(Arc::new),
        })
    }
}

/// Asks plugins for the tools that they tell only when they run, and waits for a while. Returns what goes on.
async fn ask(registry: &LiveRegistry) -> Result<Option<DiscoveryTask>, Error> {
    if !registry
        .current()
        .plugins()
        .any(|plugin| plugin.dynamic_tools().is_undiscovered())
    {
        return Ok(None);
    }
    let mut asking = DiscoveryTask::new();
    let live = registry.clone();
    asking.spawn(async move { live.discover_dynamic_tools(DiscoveryTargets::Pending).await });
    match tokio::time::timeout(ASKED_WALL_MAX, asking.join_next()).await {
        Err(_) => Ok(Some(asking)),
        Ok(None | Some(Ok(Ok(_)))) => Ok(None),
        Ok(Some(Ok(Err(error)))) => Err(error),
        Ok(Some(Err(error))) => {
            let message = "asking the plugins for their tools failed unexpectedly";
            Err(Error::new(ErrorKind::Internal, Phase::Registry, message).with_source(error))
        }
    }
}
