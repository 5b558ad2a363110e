//! The data of a wasmtime store: the state of the host interfaces for one instance.

use std::sync::Arc;

use wasmtime::component::ResourceTable;
use wasmtime::{CallHook, Store, StoreContextMut};
use wasmtime_wasi::cli::WasiCliView;
use wasmtime_wasi::filesystem::WasiFilesystemCtxView;
use wasmtime_wasi::{WasiCtxView, WasiView};
use wasmtime_wasi_http::{WasiHttpCtx, WasiHttpCtxView, WasiHttpView};

use super::environment::EnvironmentView;
use super::files::{Files, FilesView};
use super::host_api::{CallStack, ConversationAccess};
use super::host_objects::{LARGEST_OBJECT_BYTES, concurrent_bytes, concurrent_files, held_bytes, held_files};
use super::http::{HttpBudget, HttpGate, HttpLimits, Network};
use super::log_buffer::LogBuffer;
use super::wasi;
use super::wasi_context::{Stdio, WasiContext};
use crate::grants::authority::Authority;
use crate::link::limits::call_clock::CallClock;
use crate::link::limits::growth_limiter::GrowthLimiter;
use crate::link::limits::host_files::{HostFiles, HostFilesExceeded};
use crate::link::limits::host_memory::{HostMemory, HostMemoryExceeded};
use crate::link::limits::host_meter::HostMeter;
use toolwit_core::Artifact;
use toolwit_core::limits::CallLimits;

/// The settings of a new [`HostState`], from the plugin and the call of its instance.
#[derive(Clone, Copy)]
pub(crate) struct HostSetup<'a> {
    pub(crate) engine: &'a wasmtime::Engine,
    /// Whether the component imports an interface through which it can access its conversation.
    pub(crate) uses_conversation: bool,
    pub(crate) limits: &'a CallLimits,
    /// The authority of the call; `None` for a spare instance, which has no call yet.
    pub(crate) authority: Option<&'a Authority>,
    pub(crate) network: &'a Arc<Network>,
}

/// The data of a wasmtime store. A store belongs to one instance.
pub(crate) struct HostState {
    wasi: WasiContext,
    http: WasiHttpCtx,
    http_gate: HttpGate,
    files: Files,
    /// The authority of the current call; `None` between calls.
    authority: Option<Authority>,
    resources: ResourceTable,
    /// The access to the conversation of the current call; `None` between calls, and if `uses_conversation` is `false`.
    conversation: Option<Box<ConversationAccess>>,
    /// Whether the component imports an interface through which it can access its conversation.
    uses_conversation: bool,
    /// The number of the session that the instance belongs to; `None` for an instance of a single call.
    session: Option<u64>,
    host_memory: HostMemory,
    host_files: HostFiles,
    pub(crate) limiter: GrowthLimiter,
    pub(crate) meter: HostMeter,
    pub(crate) log: LogBuffer,
}

impl HostState {
    /// Creates the state of a fresh instance, with only the granted resources of its plugin. [`Self::into_store`] sets the limits
    /// that the store itself enforces.
    pub(crate) fn new(setup: HostSetup<'_>, stdio: Stdio) -> Self {
        let HostSetup { limits, authority, .. } = setup;
        let log = match &stdio {
            Stdio::Log => LogBuffer::new(limits.log_bytes_max),
            // If the program traps, its error output becomes part of the error.
            Stdio::Program { stderr, .. } => stderr.clone(),
        };
        let mut resources = ResourceTable::new();
        resources.set_max_capacity(limits.resources_max);
        Self {
            wasi: WasiContext::new(stdio, &log, authority),
            http: wasi::http_context(),
            http_gate: HttpGate::new(setup.network.clone()),
            authority: None,
            files: Files::new(
                authority
                    .map(|authority| authority.rights.directories())
                    .unwrap_or_default(),
            ),
            resources,
            conversation: None,
            uses_conversation: setup.uses_conversation,
            session: None,
            host_memory: HostMemory::new(limits, LARGEST_OBJECT_BYTES),
            host_files: HostFiles::default(),
            limiter: GrowthLimiter::new(limits),
            meter: HostMeter::new(limits, setup.engine.weak()),
            log,
        }
    }

    /// Replaces the state of a spare instance by the state of the call that uses the instance. Keeps the limiter, which has counted
    /// the memories and tables of the instance.
    pub(crate) fn replace_with(&mut self, state: Self) {
        let Self { mut limiter, .. } = std::mem::replace(self, state);
        limiter.take_share_of(&mut self.limiter);
        self.limiter = limiter;
    }

    /// Sets the limits of the next call on a reused instance, except those that the store itself enforces. The instance keeps its
    /// resources, even if they exceed a lower limit. It then cannot create another resource.
    pub(crate) fn apply_limits(&mut self, limits: &CallLimits) {
        self.meter.start_call(limits);
        self.limiter.start_call(limits);
        self.host_memory.start_call(limits, LARGEST_OBJECT_BYTES);
        self.resources.set_max_capacity(limits.resources_max);
        self.log.set_bytes_max(limits.log_bytes_max);
    }

    /// Gives the guest the authority of a call, and the access to the network and the conversation that this authority permits.
    pub(crate) fn begin_call(&mut self, authority: &Authority, clock: &CallClock<'_>) {
        let outer_budget = CallStack::of(clock.context).and_then(CallStack::http_budget);
        self.http_gate
            .open(authority, HttpLimits::of(clock.limits), outer_budget, clock.deadline());
        if let Some(budgets) = clock.budgets {
            let bytes = self.limiter.memory_bytes();
            self.limiter
                .set_share(Some(budgets.memory.share_of(clock.caller(), bytes)));
            self.host_files.start_call(&budgets.files, clock.caller());
        }
        self.authority = Some(authority.clone());
        self.conversation = self
            .uses_conversation
            .then(|| Box::new(ConversationAccess::new(authority, clock)));
    }

    /// Returns the HTTP budget of the call, for its nested calls. Returns `None` between calls.
    pub(crate) fn http_budget(&self) -> Option<Arc<HttpBudget>> {
        self.http_gate.budget()
    }

    /// Sets the session that the instance belongs to.
    pub(crate) fn set_session(&mut self, session: u64) {
        self.session = Some(session);
    }

    pub(crate) fn session(&self) -> Option<u64> {
        self.session
    }

    /// Counts a call into the host, and returns the access to the conversation, for the host functions of `toolwit:plugin` and
    /// `near:agent`.
    pub(crate) fn conversation(&mut self) -> wasmtime::Result<&mut ConversationAccess> {
        self.meter.count_host_call();
        self.conversation
            .as_deref_mut()
            .ok_or_else(|| wasmtime::Error::msg("the instance is not in a call"))
    }

    /// Drops the authority and the conversation, and closes the HTTP gate, so that a reused instance loses the access of the call.
    pub(crate) fn end_call(&mut self) {
        self.conversation = None;
        self.authority = None;
        self.http_gate.close();
        self.limiter.set_share(None);
    }

    /// Returns the end of the log of the current call; see [`LogBuffer::end_of_text`]. Returns `None` between calls.
    pub(crate) fn end_of_log(&self, chars_max: usize) -> Option<String> {
        self.log.end_of_text(chars_max, &self.authority.as_ref()?.redactor)
    }

    pub(crate) fn take_artifacts(&mut self) -> Vec<Artifact> {
        self.conversation
            .as_mut()
            .map(|conversation| conversation.take_artifacts())
            .unwrap_or_default()
    }

    /// Counts a call into the host, and returns the authority of the current call, for the host functions of `wasi:config`,
    /// `wasi:keyvalue` and `near:agent`.
    pub(super) fn authority(&mut self) -> wasmtime::Result<&Authority> {
        self.meter.count_host_call();
        self.authority
            .as_ref()
            .ok_or_else(|| wasmtime::Error::msg("the instance is not in a call"))
    }

    /// Counts a call into the host, and records that the guest tried to use a socket, for the host functions of `wasi:sockets`.
    pub(super) fn refuse_socket(&mut self, access: &str) {
        self.meter.count_host_call();
        if let Some(authority) = &self.authority {
            authority.record_refusal(
                access.to_owned(),
                "sockets and name lookup are closed under every grant".to_owned(),
                "use `wasi:http`, whose hosts can be granted".to_owned(),
            );
        }
    }

    /// Counts a call into the host, and returns the environment, for the host functions of `wasi:cli/environment`.
    pub(super) fn environment(&mut self) -> EnvironmentView<'_> {
        EnvironmentView {
            authority: self.authority.clone(),
            wasi: self.cli(),
        }
    }

    /// Returns the table of the host resources that the guest holds.
    pub(super) fn table(&mut self) -> &mut ResourceTable {
        &mut self.resources
    }

    /// Counts a call into the host, and returns the files, for the host functions of `wasi:filesystem`.
    pub(super) fn files(&mut self) -> FilesView<'_> {
        self.meter.count_host_call();
        self.files.view(&mut self.resources, self.authority.as_ref())
    }

    /// Returns the files as wasmtime's implementation needs them, for host functions that have checked their descriptors. Does not
    /// count a call, because [`Self::files`] has counted the call of these host functions.
    pub(super) fn wasi_files(&mut self) -> WasiFilesystemCtxView<'_> {
        self.files.wasi_view(&mut self.resources)
    }

    /// Checks the limit of the host memory that the guest's resources hold, and the tasks, streams and futures in its store.
    /// `concurrent_objects` is the number of these tasks, streams and futures.
    fn check_memory(&mut self, concurrent_objects: usize) -> Result<(), HostMemoryExceeded> {
        let concurrent_bytes = concurrent_bytes(concurrent_objects);
        self.host_memory
            .check(|| held_bytes(&mut self.resources).saturating_add(concurrent_bytes))
    }

    /// Checks the limit of the files and connections that the guest has open. `concurrent_objects` is the number of tasks, streams and
    /// futures in its store.
    fn check_files(&mut self, concurrent_objects: usize) -> Result<(), HostFilesExceeded> {
        let opened_max = self.files.opened_by_one_call_max();
        // Without a directory, no stream can hold a file.
        let streams_with_files = if self.files.has_directories() {
            concurrent_files(concurrent_objects)
        } else {
            0
        };
        self.host_files.check(opened_max, || {
            held_files(&mut self.resources).saturating_add(streams_with_files)
        })
    }

    /// Creates a store with this state. The store enforces the limits of memory, fuel, handles and copied bytes. At each epoch, it
    /// stops the guest if the stop flag of [`HostMeter`] is raised.
    pub(crate) fn into_store(self, engine: &wasmtime::Engine, limits: &CallLimits) -> wasmtime::Result<Store<Self>> {
        let mut store = Store::new(engine, self);
        store.limiter(|state| &mut state.limiter);
        // The hook runs whenever control passes between host and guest.
        store.call_hook(|mut store, hook| {
            let bytes = store.data().meter.copy_bytes_max(hook);
            store.set_hostcall_fuel(bytes);
            if matches!(hook, CallHook::ReturningFromHost) {
                let data = store.data();
                let objects = if data.host_memory.is_measurement_due()
                    || data.host_files.is_count_due(data.files.opened_by_one_call_max())
                {
                    concurrent_objects(&mut store)
                } else {
                    0
                };
                store.data_mut().check_memory(objects)?;
                store.data_mut().check_files(objects)?;
            }
            Ok(())
        });
        store.set_max_component_handles(limits.resources_max);
        store.set_fuel(limits.fuel_max)?;
        store.epoch_deadline_callback(|store| Ok(store.data().meter.on_epoch()));
        store.set_epoch_deadline(1);
        Ok(store)
    }
}

/// Returns the number of tasks, streams, futures and sets of them in a store.
fn concurrent_objects(store: &mut StoreContextMut<'_, HostState>) -> usize {
    let table = store.concurrent_resource_table();
    table.map_or(0, |table| table.iter_mut().count())
}

// The WASI functions of wasmtime get their data through the following two traits, which therefore count the calls into the host.

impl WasiView for HostState {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        self.meter.count_host_call();
        WasiCtxView {
            ctx: self.wasi.get(),
            table: &mut self.resources,
        }
    }
}

impl WasiHttpView for HostState {
    fn http(&mut self) -> WasiHttpCtxView<'_> {
        self.meter.count_host_call();
        WasiHttpCtxView {
            ctx: &mut self.http,
            table: &mut self.resources,
            hooks: &mut self.http_gate,
        }
    }
}
