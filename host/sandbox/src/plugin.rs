//! A plugin: a component with a name, compiled when it is first called.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::time::Instant;
use wasmtime::component::Component;

use crate::call::scope::Scope;
use crate::call::tool::PluginTool;
use crate::grants::authority::{Authority, AuthorityRequest, ConversationNumber, OpenedRights};
use crate::grants::{AccessRequest, DeclaredCapabilities, EffectiveRights, Explanation, NoGrantReason};
use crate::inspect::annotations::{Annotations, Requirement};
use crate::inspect::inspection::{Inspection, Origin};
use crate::inspect::known::{CachedInspection, Known};
use crate::inspect::source::{self, Source};
use crate::link::compile_status::{CompileStatus, Progress};
use crate::link::engine::Engine;
use crate::link::host_api::{CallStack, FuelMeter};
use crate::link::link_once::{LinkOnce, Wait};
use crate::link::linked::Linked;
use crate::link::place::{Place, Places};
use crate::link::runtime::Runtime;
use toolwit_core::limits::{CallLimits, LimitRequest, effective};
use toolwit_core::{Error, ErrorKind, Phase};
use toolwit_core::{Tool, ToolContext};

/// A component as a box of tools.
///
/// Making one reads and checks the bytes. The first call compiles them, once, however many calls wait for it; a failure
/// is told to those who waited and tried again by the next.
pub struct Plugin {
    name: Arc<str>,
    known: Known,
    /// Its rights where no grants file exists.
    no_rights: OnceLock<Arc<OpenedRights>>,
    source: Source,
    /// The bounds that its package asks for.
    requested: LimitRequest,
    requirements: Vec<Requirement>,
    /// The bounds of a call for which nobody asks for others.
    usual_limits: OnceLock<CallLimits>,
    runtime: Arc<Runtime>,
    linked: Arc<LinkOnce>,
    places: Places,
}

impl Plugin {
    /// Makes a plugin of a component in memory.
    ///
    /// # Errors
    /// Those of [`Inspection::from_bytes`] and [`Inspection::require_loadable`]; [`ErrorKind::Instances`],
    /// [`ErrorKind::Memory`] or [`ErrorKind::TableElements`] when no call could make an instance of it.
    pub async fn from_bytes(
        runtime: &Arc<Runtime>,
        name: &str,
        bytes: impl Into<Arc<[u8]>>,
    ) -> Result<Arc<Self>, Error> {
        let bytes = bytes.into();
        let (of_task, name_of_task) = (bytes.clone(), name.to_owned());
        let inspect = move || {
            Inspection::from_bytes(
                &of_task,
                Origin {
                    name: &name_of_task,
                    adjacent_wit: None,
                },
            )
        };
        let inspection = blocking(inspect).await.map_err(|error| error.with_plugin(name))?;
        Self::from_loadable(runtime, name, inspection, Source::Bytes(bytes), &Annotations::default())
    }

    /// Makes a plugin of a component file.
    ///
    /// # Errors
    /// Those of [`Plugin::from_bytes`], and [`ErrorKind::Io`] or [`ErrorKind::FileBytes`].
    pub async fn from_file(runtime: &Arc<Runtime>, name: &str, path: PathBuf) -> Result<Arc<Self>, Error> {
        let bytes_max = runtime.engines.limits.component_bytes_max;
        let (of_task, name_of_task) = (path.clone(), name.to_owned());
        let inspect = move || {
            let bytes = source::read_component(&of_task, bytes_max)?;
            let beside = source::read_wit(&of_task.with_extension("wit"));
            Inspection::from_bytes(
                &bytes,
                Origin {
                    name: &name_of_task,
                    adjacent_wit: beside.as_deref(),
                },
            )
        };
        let inspection = blocking(inspect).await.map_err(|error| error.with_plugin(name))?;
        Self::from_loadable(runtime, name, inspection, Source::File(path), &Annotations::default())
    }

    /// Makes a plugin of a file that was inspected before, under what its package says about it. Its bytes are read when it is first called, and refused when
    /// they are others than those that were inspected.
    ///
    /// # Errors
    /// Those of [`Inspection::require_loadable`], and [`ErrorKind::Configuration`] for bounds of zero.
    pub fn from_inspection(
        runtime: &Arc<Runtime>,
        name: &str,
        path: PathBuf,
        inspection: Inspection,
        annotations: &Annotations,
    ) -> Result<Arc<Self>, Error> {
        annotations.limits.check().map_err(|error| error.with_plugin(name))?;
        Self::from_loadable(runtime, name, inspection, Source::File(path), annotations)
    }

    fn from_loadable(
        runtime: &Arc<Runtime>,
        name: &str,
        inspection: Inspection,
        source: Source,
        annotations: &Annotations,
    ) -> Result<Arc<Self>, Error> {
        let ceilings = &runtime.engines.limits;
        let limits = effective(ceilings, &runtime.operator_limits, &LimitRequest::none());
        let fits = || inspection.footprint.require_within(&limits, ceilings.memory_bytes_max);
        inspection
            .require_loadable()
            .and_then(|()| fits())
            .map_err(|error| error.with_plugin(name))?;
        Ok(Self::make(runtime, name, Known::read(inspection), source, annotations))
    }

    /// Makes a plugin of a file of which was kept what an inspection told, when it could be used. Its bytes are read when it
    /// is first called, and refused when they are others than those that were inspected.
    #[must_use]
    pub fn from_cached(
        runtime: &Arc<Runtime>,
        name: &str,
        path: PathBuf,
        kept: CachedInspection,
        annotations: &Annotations,
    ) -> Arc<Self> {
        Self::make(runtime, name, Known::kept(kept), Source::File(path), annotations)
    }

    fn make(runtime: &Arc<Runtime>, name: &str, known: Known, source: Source, annotations: &Annotations) -> Arc<Self> {
        Arc::new(Self {
            name: name.into(),
            no_rights: OnceLock::new(),
            known,
            source,
            requested: annotations.limits.clone(),
            requirements: annotations.requirements.clone(),
            usual_limits: OnceLock::new(),
            runtime: runtime.clone(),
            linked: Arc::default(),
            places: Places::new(runtime.engines.limits.calls_per_plugin_max),
        })
    }

    /// Makes a plugin of which more is known. Both share machine code and places to run in.
    pub(crate) fn telling(&self, inspection: Inspection) -> Arc<Self> {
        Arc::new(Self {
            name: self.name.clone(),
            no_rights: OnceLock::new(),
            known: Known::read(inspection),
            source: self.source.clone(),
            requested: self.requested.clone(),
            requirements: self.requirements.clone(),
            usual_limits: OnceLock::new(),
            runtime: self.runtime.clone(),
            linked: self.linked.clone(),
            places: self.places.clone(),
        })
    }

    pub(crate) fn known(&self) -> &Known {
        &self.known
    }

    /// Returns its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns what is known about it without running it.
    #[must_use]
    pub fn inspection(&self) -> &Arc<Inspection> {
        self.known.inspection(&self.name)
    }

    /// Returns the SHA-256 of its component, in hex.
    #[must_use]
    pub fn digest(&self) -> &str {
        self.known.digest()
    }

    /// Returns how many tools it has.
    #[must_use]
    pub fn tool_count(&self) -> usize {
        self.known.tool_count()
    }

    /// Returns its tools, bound to a conversation.
    #[must_use]
    pub fn tools(self: &Arc<Self>, scope: &Scope) -> Vec<Arc<dyn Tool>> {
        let inspection = self.inspection();
        let shape = &inspection.shape;
        let session = shape.is_stateful().then(|| scope.session(self));
        let tools = inspection.tools.iter().zip(&inspection.tool_functions);
        tools
            .map(|(definition, function)| {
                PluginTool::free(
                    self.clone(),
                    scope.confines().clone(),
                    session.clone(),
                    *function,
                    definition.clone(),
                ) as Arc<dyn Tool>
            })
            .collect()
    }

    /// Compiles it now, so that the first call need not wait. Returns how long that took.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`], [`ErrorKind::UnknownImport`], or [`ErrorKind::Timeout`] when compiling takes longer
    /// than the host waits; it goes on then, and a later call finds it done.
    pub async fn prepare(&self) -> Result<Duration, Error> {
        let started = Instant::now();
        self.linked(&ToolContext::new()).await?;
        Ok(started.elapsed())
    }

    /// Starts to compile it in the background, unless that was done. [`Plugin::compile_status`] tells how far it is; a
    /// call in the meantime waits, and compiles nothing twice. Needs a runtime of tokio.
    pub fn compile(&self) {
        self.linked.start(|| self.linking());
    }

    /// Returns how far its machine code is, in this process.
    #[must_use]
    pub fn compile_status(&self) -> CompileStatus {
        self.linked.status()
    }

    pub(crate) fn runtime(&self) -> &Arc<Runtime> {
        &self.runtime
    }

    /// Returns what it asks for.
    #[must_use]
    pub fn declared(&self) -> &DeclaredCapabilities {
        self.known.declared(&self.name)
    }

    /// Computes the authority of a call, and checks that every required value exists.
    pub(crate) async fn authority(
        &self,
        conversation: ConversationNumber,
        context: &ToolContext,
    ) -> Result<Authority, Error> {
        let caller = CallStack::of(context).map(CallStack::caller);
        let request = self.authority_request(conversation, caller);
        let authority = self.runtime.authorities.authorize(request, context).await?;
        authority.require(&self.requirements)?;
        Ok(authority)
    }

    /// Explains whether the next call in a new conversation is allowed an access, and which rule decides.
    ///
    /// The decision is the one of the call itself: it reads the grants file, the record of used grants, the granted directories
    /// and the secrets as they are now. It uses up no grant. The values that a conversation brings are taken as present.
    ///
    /// # Errors
    /// [`ErrorKind::Denied`] if the grants file is unreadable or invalid now; [`ErrorKind::Configuration`] if the secret store is.
    pub async fn explain(&self, request: &AccessRequest<'_>) -> Result<Explanation, Error> {
        let authority = self.authority_request(ConversationNumber::default(), None);
        let rights = self.runtime.authorities.preview(authority).await?;
        Ok(Explanation::new(&rights, request))
    }

    fn authority_request<'a>(
        &'a self,
        conversation: ConversationNumber,
        caller: Option<&'a EffectiveRights>,
    ) -> AuthorityRequest<'a> {
        let no_rights = || OpenedRights::none(self.declared(), NoGrantReason::NotNamed);
        AuthorityRequest {
            plugin: &self.name,
            no_rights: self.no_rights.get_or_init(no_rights),
            digest: self.digest(),
            declared: self.declared(),
            conversation,
            caller,
        }
    }

    /// Computes the bounds of a call from what the process, the operator and the caller say.
    pub(crate) fn limits_for(&self, context: &ToolContext) -> Result<CallLimits, Error> {
        let asked = FuelMeter::request(context);
        if let (None, Some(usual)) = (&asked, self.usual_limits.get()) {
            return Ok(usual.clone());
        }
        let request = asked.clone().unwrap_or_default().or(&self.requested);
        request.check()?;
        let runtime = &self.runtime;
        let limits = effective(&runtime.engines.limits, &runtime.operator_limits, &request);
        Ok(match asked {
            Some(_) => limits,
            None => self.usual_limits.get_or_init(|| limits).clone(),
        })
    }

    /// Returns the compiled component; compiles it when it is the first time.
    pub(crate) async fn linked(&self, context: &ToolContext) -> Result<Arc<Linked>, Error> {
        if let Some(linked) = self.linked.made_before() {
            return Ok(linked);
        }
        // Apart, as all that seldom waits: it would make the future of every call larger.
        Box::pin(self.linked_within(context, self.runtime.engines.limits.load_wall_max)).await
    }

    /// Returns the compiled component as [`Plugin::linked`] does, and waits no longer than that; compiling goes on.
    pub(crate) async fn linked_within(&self, context: &ToolContext, wall_max: Duration) -> Result<Arc<Linked>, Error> {
        let wait = Wait {
            wall_max: wall_max.min(self.runtime.engines.limits.load_wall_max),
            cancel: context.cancel(),
        };
        let linked = self.linked.get(|| self.linking(), wait).await;
        linked.map_err(|error| error.with_plugin(&*self.name))
    }

    fn linking(&self) -> impl Future<Output = Result<Arc<Linked>, Error>> + Send + 'static {
        let (runtime, source) = (self.runtime.clone(), self.source.clone());
        let (inspection, progress) = (self.inspection().clone(), self.linked.progress().clone());
        link(runtime, source, inspection, progress)
    }

    /// Waits for a free place to run in.
    pub(crate) async fn place(&self, context: &ToolContext, limits: &CallLimits) -> Result<Place, Error> {
        self.places.enter(context, limits).await
    }
}

/// Maps cached machine code, or compiles and caches it; then links. Takes up to minutes.
async fn link(
    runtime: Arc<Runtime>,
    source: Source,
    inspection: Arc<Inspection>,
    progress: Arc<Progress>,
) -> Result<Arc<Linked>, Error> {
    let engine = runtime.engines.get(inspection.profile)?;
    let (of_cache, digest) = (runtime.clone(), inspection.digest.clone());
    let engine_of_cache = engine.clone();
    let look_up = move || {
        let cache = of_cache.engines.code_cache.as_ref();
        Ok(cache.and_then(|cache| cache.load(&engine_of_cache, &digest)))
    };
    let component = match blocking(look_up).await? {
        Some(component) => {
            progress.started();
            component
        }
        None => {
            let workers = runtime.engines.compiling.slot(inspection.size_bytes).await;
            progress.started();
            let (engine, digest) = (engine.clone(), inspection.digest.clone());
            blocking(move || {
                // Taken along, so that they stay taken when nobody waits any more.
                let _workers = workers;
                compile(&runtime, &engine, &source, &digest)
            })
            .await?
        }
    };
    Linked::new(engine, &component, inspection.shape.clone()).map(Arc::new)
}

fn compile(runtime: &Runtime, engine: &Engine, source: &Source, digest: &str) -> Result<Component, Error> {
    let bytes = source.read(digest, runtime.engines.limits.component_bytes_max)?;
    let component = engine.compile(&bytes)?;
    if let Some(cache) = &runtime.engines.code_cache {
        cache.store(engine, digest, &component);
    }
    Ok(component)
}

/// Runs work that blocks where blocking is allowed. A panic in it becomes an error.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, Error> + Send + 'static) -> Result<T, Error> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| {
        Err(Error::new(
            ErrorKind::Internal,
            Phase::Load,
            "reading the component failed unexpectedly",
        )
        .with_source(error))
    })
}
