//! The creation of plugins from components, and the tools of a plugin.

use std::path::PathBuf;
use std::sync::Arc;

use crate::call::plugin::Plugin;
use crate::call::runtime::Runtime;
use crate::call::scope::Scope;
use crate::call::tool::PluginTool;
use crate::entity::entity_gatherer::ENTITY_GATHERER;
use crate::inspect::annotations::Annotations;
use crate::inspect::cached_inspection::CachedInspection;
use crate::inspect::inspection::{Inspection, PackageContext};
use crate::inspect::lazy::LazyInspection;
use crate::inspect::source::{self, ComponentFile, ComponentSource};
use crate::link::compile::load_or_compile::run_blocking;
use toolwit_core::limits::{LimitOverrides, effective};
use toolwit_core::{Error, Tool};

impl Plugin {
    /// Creates a plugin from a component in memory.
    ///
    /// # Errors
    /// Those of [`Inspection::from_bytes`] and [`Inspection::require_loadable`];
    /// [`ErrorKind::Instances`](toolwit_core::ErrorKind::Instances), [`ErrorKind::Memory`](toolwit_core::ErrorKind::Memory) or
    /// [`ErrorKind::TableElements`](toolwit_core::ErrorKind::TableElements) if the component cannot be instantiated within the
    /// limits of the runtime.
    pub async fn from_bytes(
        runtime: &Arc<Runtime>,
        name: &str,
        bytes: impl Into<Arc<[u8]>>,
    ) -> Result<Arc<Self>, Error> {
        let bytes = bytes.into();
        let (inspected_bytes, plugin_name) = (bytes.clone(), name.to_owned());
        let inspect = move || {
            Inspection::from_bytes(
                &inspected_bytes,
                PackageContext {
                    name: &plugin_name,
                    adjacent_wit: None,
                },
            )
        };
        let inspection = run_blocking(inspect).await.map_err(|error| error.with_plugin(name))?;
        Self::check_and_create(
            runtime,
            name,
            inspection,
            ComponentSource::Bytes(bytes),
            &Annotations::default(),
        )
    }

    /// Creates a plugin from a component file. If the component embeds no valid WIT, the doc comments are read from the WIT file
    /// next to the component: `calc.wit` for `calc.wasm`.
    ///
    /// # Errors
    /// Those of [`Plugin::from_bytes`]; [`ErrorKind::Io`](toolwit_core::ErrorKind::Io) if the file cannot be read, and
    /// [`ErrorKind::FileBytes`](toolwit_core::ErrorKind::FileBytes) if it is larger than `component_bytes_max`.
    pub async fn from_file(runtime: &Arc<Runtime>, name: &str, path: PathBuf) -> Result<Arc<Self>, Error> {
        let bytes_max = runtime.engines.limits.component_bytes_max;
        let (inspected_path, plugin_name) = (path.clone(), name.to_owned());
        let inspect = move || {
            let bytes = source::read_component(&inspected_path, bytes_max)?;
            let adjacent_wit = source::read_wit(&inspected_path.with_extension("wit"));
            Inspection::from_bytes(
                &bytes,
                PackageContext {
                    name: &plugin_name,
                    adjacent_wit: adjacent_wit.as_ref(),
                },
            )
        };
        let inspection = run_blocking(inspect).await.map_err(|error| error.with_plugin(name))?;
        Self::check_and_create(
            runtime,
            name,
            inspection,
            ComponentSource::File(ComponentFile::new(path)),
            &Annotations::default(),
        )
    }

    /// Creates a plugin from a component file that has been inspected, with the annotations of its package. The file is read
    /// when the component is compiled, and refused if its digest has changed.
    ///
    /// # Errors
    /// Those of [`Plugin::from_bytes`] except those of [`Inspection::from_bytes`], and
    /// [`ErrorKind::Configuration`](toolwit_core::ErrorKind::Configuration) if the annotations set a limit to zero and this
    /// limit must be positive.
    pub fn from_inspection(
        runtime: &Arc<Runtime>,
        name: &str,
        path: PathBuf,
        inspection: Inspection,
        annotations: &Annotations,
    ) -> Result<Arc<Self>, Error> {
        annotations.limits.check().map_err(|error| error.with_plugin(name))?;
        Self::check_and_create(
            runtime,
            name,
            inspection,
            ComponentSource::File(ComponentFile::new(path)),
            annotations,
        )
    }

    fn check_and_create(
        runtime: &Arc<Runtime>,
        name: &str,
        inspection: Inspection,
        source: ComponentSource,
        annotations: &Annotations,
    ) -> Result<Arc<Self>, Error> {
        let engine_limits = &runtime.engines.limits;
        let limits = effective(engine_limits, &runtime.operator_limits, &LimitOverrides::default());
        let check_footprint = || {
            inspection
                .footprint
                .require_within(&limits, engine_limits.memory_bytes_max)
        };
        inspection
            .require_loadable(runtime.engines.wasi)
            .and_then(|()| check_footprint())
            .map_err(|error| error.with_plugin(name))?;
        Ok(Self::new(
            runtime,
            name,
            LazyInspection::from_inspection(inspection),
            source,
            annotations,
        ))
    }

    /// Creates a plugin from a component file whose inspection is cached. [`Plugin::from_inspection`] must have accepted the
    /// inspection before it was cached, because its checks are not repeated. The file is read when the component is compiled,
    /// and refused if its digest has changed.
    #[must_use]
    pub fn from_cached(
        runtime: &Arc<Runtime>,
        name: &str,
        path: PathBuf,
        cached: CachedInspection,
        annotations: &Annotations,
    ) -> Arc<Self> {
        Self::new(
            runtime,
            name,
            LazyInspection::from_cache(cached),
            ComponentSource::File(ComponentFile::new(path)),
            annotations,
        )
    }

    /// Returns the tools of the plugin, for the conversation of `scope`. Dynamic tools are included only if they have been
    /// discovered; see [`Plugin::discover_tools`].
    #[must_use]
    pub fn tools(self: &Arc<Self>, scope: &Scope) -> Vec<Arc<dyn Tool>> {
        let inspection = self.inspection();
        let shape = &inspection.shape;
        let session = shape.is_stateful().then(|| scope.session(self, &ENTITY_GATHERER));
        let tools = inspection.tools.iter().zip(&inspection.tool_functions);
        tools
            .map(|(definition, function)| {
                PluginTool::of_function(
                    self.clone(),
                    scope.policy().clone(),
                    session.clone(),
                    *function,
                    definition.clone(),
                ) as Arc<dyn Tool>
            })
            .collect()
    }
}
