//! A compiled component whose imports are linked, ready to be instantiated.

use std::sync::Arc;

use wasmtime::Store;
use wasmtime::component::{Component, ComponentExportIndex, Func, Instance, InstancePre};

use super::engine::Engine;
use crate::inspect::interfaces::{NEAR_HOST, PLUGIN_PACKAGE};
use crate::link::host::host_state::HostState;
use crate::values::types::{Function, FunctionKind, Shape};
use toolwit_core::{Error, ErrorKind, Phase};

/// A compiled component whose imports are linked and whose exports are looked up. A call only has to instantiate it.
pub(crate) struct LinkedComponent {
    engine: Arc<Engine>,
    instance_pre: InstancePre<HostState>,
    /// The export of each function, by the function's index in [`Shape::functions`].
    exports: Vec<ComponentExportIndex>,
    shape: Arc<Shape>,
    /// Whether the component imports an interface through which it can access its conversation.
    uses_conversation: bool,
    /// Whether the parameters or the result of each function contain streams or futures, by the function's index in the shape.
    has_streams: Vec<bool>,
}

impl LinkedComponent {
    /// Links a compiled component.
    ///
    /// # Errors
    /// [`ErrorKind::UnknownImport`] if the type of an import differs from the type of the host's function, and
    /// [`ErrorKind::Internal`] if an export that inspection found is missing.
    pub(crate) fn new(engine: Arc<Engine>, component: &Component, shape: Arc<Shape>) -> Result<Self, Error> {
        let instance_pre = engine.linker.instantiate_pre(component).map_err(|error| {
            Error::new(
                ErrorKind::UnknownImport,
                Phase::Link,
                format!(
                    "the types of its imports differ from those of the host: {}",
                    error.root_cause()
                ),
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
            .ok_or_else(|| Error::new(ErrorKind::Internal, Phase::Link, "an inspected export is missing"))?;
        let uses_conversation = component
            .component_type()
            .imports(&engine.wasmtime)
            .any(|(name, _)| name.starts_with(PLUGIN_PACKAGE) || name.starts_with(NEAR_HOST));
        Ok(Self {
            uses_conversation,
            has_streams: shape.functions.iter().map(Function::holds_streams).collect(),
            engine,
            instance_pre,
            exports,
            shape,
        })
    }

    /// Returns whether the component imports an interface through which it can access its conversation.
    pub(crate) fn uses_conversation(&self) -> bool {
        self.uses_conversation
    }

    pub(crate) fn engine(&self) -> &wasmtime::Engine {
        &self.engine.wasmtime
    }

    pub(crate) async fn instantiate(&self, store: &mut Store<HostState>) -> wasmtime::Result<Instance> {
        self.instance_pre.instantiate_async(store).await
    }

    /// Returns a function of an instance, by its index in the shape.
    pub(crate) fn function(
        &self,
        function_index: usize,
        instance: &Instance,
        store: &mut Store<HostState>,
    ) -> Result<Func, Error> {
        self.exports
            .get(function_index)
            .and_then(|index| instance.get_func(store, index))
            .ok_or_else(|| Error::new(ErrorKind::Internal, Phase::Execute, "a linked export is missing"))
    }

    /// Returns the function with this index in the shape if its parameters or its result contain streams or futures, otherwise
    /// `None`.
    pub(crate) fn function_with_streams(&self, function_index: usize) -> Option<&Function> {
        let has_streams = self.has_streams.get(function_index)?;
        has_streams.then(|| self.shape.functions.get(function_index))?
    }

    /// Returns whether a function returns a value. A command returns a `result` without a value type, which the shape omits.
    pub(crate) fn has_result(&self, function_index: usize) -> bool {
        self.shape
            .functions
            .get(function_index)
            .is_some_and(|function| function.result.is_some() || function.kind == FunctionKind::Command)
    }
}
