//! A component that is compiled, linked and ready to be instantiated.

use std::sync::Arc;

use wasmtime::Store;
use wasmtime::component::{Component, ComponentExportIndex, Func, Instance, InstancePre};

use super::engine::Engine;
use crate::call::state::HostState;
use crate::inspect::interfaces::PLUGIN_PACKAGE;
use crate::values::types::{FunctionKind, Shape};
use toolwit_core::{Error, ErrorKind, Phase};

/// All that can be prepared before a call: the imports are matched, the exports are found.
pub(crate) struct Linked {
    engine: Arc<Engine>,
    pre: InstancePre<HostState>,
    exports: Vec<ComponentExportIndex>,
    shape: Arc<Shape>,
    /// Whether it imports anything of `toolwit:plugin`.
    reaches: bool,
}

impl Linked {
    /// Links a compiled component.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownImport`] when an import has another type than the host's.
    pub(crate) fn new(engine: Arc<Engine>, component: &Component, shape: Arc<Shape>) -> Result<Self, Error> {
        let pre = engine.linker.instantiate_pre(component).map_err(|error| {
            Error::new(
                ErrorKind::UnknownImport,
                Phase::Link,
                format!("its imports do not fit: {}", error.root_cause()),
            )
            .with_source(format!("{error:#}"))
        })?;
        let exports = shape
            .functions
            .iter()
            .map(|function| {
                let interface = match function.interface.as_deref() {
                    Some(interface) => Some(component.get_export_index(None, interface)?),
                    None => None,
                };
                component.get_export_index(interface.as_ref(), &function.export)
            })
            .collect::<Option<Vec<_>>>()
            .ok_or_else(|| Error::new(ErrorKind::Internal, Phase::Link, "an export that was seen is not there"))?;
        let reaches = component
            .component_type()
            .imports(&engine.wasmtime)
            .any(|(name, _)| name.starts_with(PLUGIN_PACKAGE));
        Ok(Self {
            reaches,
            engine,
            pre,
            exports,
            shape,
        })
    }

    /// Whether the guest can ask for what belongs to the conversation.
    pub(crate) fn reaches(&self) -> bool {
        self.reaches
    }

    pub(crate) fn engine(&self) -> &wasmtime::Engine {
        &self.engine.wasmtime
    }

    pub(crate) async fn instantiate(&self, store: &mut Store<HostState>) -> wasmtime::Result<Instance> {
        self.pre.instantiate_async(store).await
    }

    pub(crate) fn function(
        &self,
        function: usize,
        instance: &Instance,
        store: &mut Store<HostState>,
    ) -> Result<Func, Error> {
        self.exports
            .get(function)
            .and_then(|index| instance.get_func(store, index))
            .ok_or_else(|| {
                Error::new(
                    ErrorKind::Internal,
                    Phase::Execute,
                    "an export that was linked is not there",
                )
            })
    }

    /// Whether a function gives a value. `wasi:cli/run` gives a bare `result`, which the shape does not show.
    pub(crate) fn has_result(&self, function: usize) -> bool {
        self.shape
            .functions
            .get(function)
            .is_some_and(|function| function.result.is_some() || function.kind == FunctionKind::Command)
    }
}
