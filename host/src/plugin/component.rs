//! A plugin: a component with a name, compiled when it is first called.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::{OnceCell, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::authority::{Applicant, Authority};
use super::inspection::{Inspection, Origin};
use super::linked::Linked;
use super::runtime::Runtime;
use super::scope::{ConversationNumber, Scope};
use super::source::{self, Source};
use super::tool::PluginTool;
use crate::capability::Declared;
use crate::error::{Error, ErrorKind, LimitUse, Phase};
use crate::limits::{CallLimits, LimitRequest, Span, effective};
use crate::tool::{Tool, ToolContext};

/// A component as a box of tools.
///
/// Making one reads and checks the bytes. The first call compiles them, once, however many calls wait for it; a failure
/// is told to those who waited and tried again by the next.
pub struct Plugin {
    name: Arc<str>,
    inspection: Arc<Inspection>,
    declared: Declared,
    source: Source,
    runtime: Arc<Runtime>,
    linked: OnceCell<Arc<Linked>>,
    permits: Arc<Semaphore>,
}

impl Plugin {
    /// Makes a plugin of a component in memory.
    ///
    /// # Errors
    /// Those of [`Inspection::of`] and [`Inspection::require_loadable`].
    pub async fn from_bytes(
        runtime: &Arc<Runtime>,
        name: &str,
        bytes: impl Into<Arc<[u8]>>,
    ) -> Result<Arc<Self>, Error> {
        let bytes = bytes.into();
        let (of_task, name_of_task) = (bytes.clone(), name.to_owned());
        let inspect = move || {
            Inspection::of(
                &of_task,
                Origin {
                    name: &name_of_task,
                    wit_beside: None,
                },
            )
        };
        let inspection = blocking(inspect).await.map_err(|error| error.with_plugin(name))?;
        Self::from_inspection(runtime, name, inspection, Source::Bytes(bytes))
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
            Inspection::of(
                &bytes,
                Origin {
                    name: &name_of_task,
                    wit_beside: beside.as_deref(),
                },
            )
        };
        let inspection = blocking(inspect).await.map_err(|error| error.with_plugin(name))?;
        Self::from_inspection(runtime, name, inspection, Source::File(path))
    }

    fn from_inspection(
        runtime: &Arc<Runtime>,
        name: &str,
        inspection: Inspection,
        source: Source,
    ) -> Result<Arc<Self>, Error> {
        inspection.require_loadable().map_err(|error| error.with_plugin(name))?;
        let declared = Declared::from_imports(inspection.imports.iter().map(|import| import.name.as_str()));
        Ok(Arc::new(Self {
            name: name.into(),
            declared,
            inspection: Arc::new(inspection),
            source,
            runtime: runtime.clone(),
            linked: OnceCell::new(),
            permits: Arc::new(Semaphore::new(runtime.engines.limits.calls_per_plugin_max)),
        }))
    }

    /// Returns its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns what is known about it without running it.
    #[must_use]
    pub fn inspection(&self) -> &Arc<Inspection> {
        &self.inspection
    }

    /// Returns its tools, bound to a conversation.
    #[must_use]
    pub fn tools(self: &Arc<Self>, scope: &Scope) -> Vec<Arc<dyn Tool>> {
        let shape = &self.inspection.shape;
        let session = shape.is_stateful().then(|| scope.session(self));
        let tools = self.inspection.tools.iter().zip(&self.inspection.tool_functions);
        tools
            .map(|(definition, function)| {
                PluginTool::free(
                    self.clone(),
                    scope.conversation(),
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
    /// than the host waits; it goes on then, and a later call finds the machine code in the cache.
    pub async fn prepare(&self) -> Result<std::time::Duration, Error> {
        let started = Instant::now();
        self.linked().await?;
        Ok(started.elapsed())
    }

    pub(crate) fn runtime(&self) -> &Arc<Runtime> {
        &self.runtime
    }

    /// Returns what it asks for.
    #[must_use]
    pub fn declared(&self) -> &Declared {
        &self.declared
    }

    /// Finds out what a call may do.
    pub(crate) async fn authority(
        &self,
        conversation: ConversationNumber,
        context: &ToolContext,
    ) -> Result<Authority, Error> {
        let applicant = Applicant {
            plugin: &self.name,
            digest: &self.inspection.digest,
            declared: &self.declared,
            conversation,
        };
        self.runtime.authorities.of_call(applicant, context).await
    }

    /// Computes the bounds of a call from what the process, the operator and the caller say.
    pub(crate) fn limits_for(&self, context: &ToolContext) -> Result<CallLimits, Error> {
        let request = context.extension::<LimitRequest>().cloned().unwrap_or_default();
        request.check()?;
        Ok(effective(
            &self.runtime.engines.limits,
            &self.runtime.operator_limits,
            &request,
        ))
    }

    /// Returns the compiled component; compiles it when it is the first time.
    pub(crate) async fn linked(&self) -> Result<Arc<Linked>, Error> {
        self.linked
            .get_or_try_init(|| self.link())
            .await
            .cloned()
            .map_err(|error| error.with_plugin(&*self.name))
    }

    async fn link(&self) -> Result<Arc<Linked>, Error> {
        let wall_max = self.runtime.engines.limits.load_wall_max;
        let too_long = |_| {
            let ms = u64::try_from(wall_max.as_millis()).unwrap_or(u64::MAX);
            Error::new(
                ErrorKind::Timeout,
                Phase::Load,
                format!("it is still compiling after {}", Span(wall_max)),
            )
            .with_suggestion("call again later")
            .with_limit(LimitUse::new("load_wall_ms_max", ms, ms))
        };
        let compile = async {
            // The slot is taken along, so that it stays taken when the wait below ends first.
            let slot = self.runtime.engines.compiling.acquire().await;
            let (runtime, source, inspection) = (self.runtime.clone(), self.source.clone(), self.inspection.clone());
            let linked = blocking(move || load(&runtime, &source, &inspection)).await;
            drop(slot);
            linked
        };
        tokio::time::timeout(wall_max, compile).await.map_err(too_long)?
    }

    /// Waits for a free place to run in.
    pub(crate) async fn permit(
        &self,
        context: &ToolContext,
        limits: &CallLimits,
    ) -> Result<OwnedSemaphorePermit, Error> {
        let queue = self.permits.clone();
        tokio::select! {
            biased;
            permit = queue.acquire_owned() => permit.map_err(|_| busy()),
            () = context.cancel().cancelled() => Err(Error::new(ErrorKind::Cancelled, Phase::Execute, "the call was cancelled before it began")),
            () = tokio::time::sleep(limits.wall_max) => Err(busy()),
        }
    }
}

fn busy() -> Error {
    Error::new(
        ErrorKind::Busy,
        Phase::Execute,
        "too many calls of this plugin are running",
    )
    .with_suggestion("call again when other calls have ended")
}

/// Maps cached machine code, or compiles and caches it; then links. Takes up to minutes.
fn load(runtime: &Runtime, source: &Source, inspection: &Inspection) -> Result<Arc<Linked>, Error> {
    let engines = &runtime.engines;
    let engine = engines.get(inspection.profile)?;
    let cached = engines
        .code_cache
        .as_ref()
        .and_then(|cache| cache.load(&engine, &inspection.digest));
    let component = match cached {
        Some(component) => component,
        None => {
            let bytes = source.read(&inspection.digest, engines.limits.component_bytes_max)?;
            let component = engine.compile(&bytes)?;
            if let Some(cache) = &engines.code_cache {
                cache.store(&engine, &inspection.digest, &component);
            }
            component
        }
    };
    Linked::new(engine, &component, inspection.shape.clone()).map(Arc::new)
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
