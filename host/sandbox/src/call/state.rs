//! What the host holds for one instance: its WASI world, its meters, its log.

use std::sync::Arc;

use wasmtime::component::{ResourceTable, Val};
use wasmtime::{CallHook, EngineWeak, Store, StoreContextMut, UpdateDeadline};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};
use wasmtime_wasi_http::{WasiHttpCtx, WasiHttpCtxView, WasiHttpView};

use super::instance::CallClock;
use super::limiter::Limiter;
use super::stop::{StopCause, StopFlag};
use crate::grants::EffectiveRights;
use crate::grants::authority::{Authority, KeyValueStore, OpenedRights};
use crate::link::files::{Files, FilesView};
use crate::link::host_api::{CallStack, Reach};
use crate::link::http::{Gate, HttpBounds, HttpBudget, Network};
use crate::link::keyvalue;
use crate::link::linked::Linked;
use crate::link::log::LogBuffer;
use crate::link::wasi::{self, Stdio};
use toolwit_core::Artifact;
use toolwit_core::limits::CallLimits;

/// The data of a store. Everything in it belongs to one instance and dies with it.
pub(crate) struct HostState {
    wasi: WasiCtx,
    http: WasiHttpCtx,
    gate: Gate,
    files: Files,
    rights: Arc<OpenedRights>,
    plugin: Arc<str>,
    keyvalue: Arc<dyn KeyValueStore>,
    resources: ResourceTable,
    /// What the guest reaches of its conversation; of guests that import nothing of `toolwit:plugin`, nothing.
    reach: Option<Box<Reach>>,
    reaches: bool,
    /// The session that the instance belongs to.
    session: Option<u64>,
    pub(crate) limiter: Limiter,
    pub(crate) meter: Meter,
    pub(crate) log: LogBuffer,
}

/// Counts calls into the host, and knows when the guest must stop.
pub(crate) struct Meter {
    pub(crate) stop: StopFlag,
    host_calls: u64,
    host_calls_max: u64,
    transfer: Transfer,
    engine: EngineWeak,
}

/// How much may be copied out of the guest at once.
///
/// wasmtime counts each element of a list in a result with the size of the host's own value, forty times that of a byte,
/// but bytes for bytes in a call into the host. One bound for both would either refuse small results or let a guest copy
/// forty times its due.
struct Transfer {
    host_call_bytes: usize,
    result_bytes: usize,
}

impl Transfer {
    fn new(limits: &CallLimits) -> Self {
        let bytes = |amount: u64| usize::try_from(amount).unwrap_or(usize::MAX);
        Self {
            host_call_bytes: bytes(limits.host_call_bytes_max),
            // No value of the result takes less than one byte of JSON.
            result_bytes: bytes(limits.result_bytes_max).saturating_mul(size_of::<Val>()),
        }
    }
}

impl HostState {
    /// Makes the world of a fresh instance: what is granted to its plugin and nothing else, every bound set.
    pub(crate) fn new(
        linked: &Linked,
        limits: &CallLimits,
        stdio: Stdio,
        authority: &Authority,
        network: &Arc<Network>,
    ) -> Self {
        let log = LogBuffer::new(limits.log_bytes_max);
        let mut resources = ResourceTable::new();
        resources.set_max_capacity(limits.resources_max);
        Self {
            wasi: wasi::context(stdio, &log, authority),
            http: wasi::http_context(),
            gate: Gate::new(network.clone()),
            rights: authority.rights.clone(),
            plugin: authority.plugin.clone(),
            keyvalue: authority.keyvalue.clone(),
            files: Files::new(authority.rights.directories()),
            resources,
            reach: None,
            reaches: linked.reaches(),
            session: None,
            limiter: Limiter::new(limits),
            meter: Meter {
                stop: StopFlag::default(),
                host_calls: 0,
                host_calls_max: limits.host_calls_max,
                transfer: Transfer::new(limits),
                engine: linked.engine().weak(),
            },
            log,
        }
    }

    /// Opens, for a call, the gate to the network and the way to the conversation.
    pub(crate) fn begin_call(&mut self, authority: &Authority, clock: &CallClock<'_>) {
        let outer = CallStack::of(clock.context).and_then(CallStack::http);
        self.gate
            .start_call(authority, HttpBounds::of(clock.limits), outer, clock.deadline());
        self.reach = self.reaches.then(|| Box::new(Reach::new(authority, clock)));
    }

    /// The budget of the call's requests, for calls inside it.
    pub(crate) fn http_budget(&self) -> Option<Arc<HttpBudget>> {
        self.gate.budget()
    }

    /// Says to which session the instance belongs.
    pub(crate) fn belong_to(&mut self, session: u64) {
        self.session = Some(session);
    }

    pub(crate) fn session(&self) -> Option<u64> {
        self.session
    }

    /// The conversation, for the host functions of `toolwit:plugin`.
    pub(crate) fn reach(&mut self) -> wasmtime::Result<&mut Reach> {
        self.meter.count_host_call();
        self.reach
            .as_deref_mut()
            .ok_or_else(|| wasmtime::Error::msg("the instance is in no call"))
    }

    /// Forgets the conversation and closes the gate, so that an instance which lives on holds nothing of a call.
    pub(crate) fn end_call(&mut self) {
        self.reach = None;
        self.gate.end_call();
    }

    pub(crate) fn take_artifacts(&mut self) -> Vec<Artifact> {
        self.reach
            .as_mut()
            .map(|reach| reach.take_artifacts())
            .unwrap_or_default()
    }

    /// Returns the rights that decide which settings the guest may read.
    pub(crate) fn settings(&mut self) -> &EffectiveRights {
        self.meter.count_host_call();
        &self.rights.effective
    }

    /// The key–value store, for the host functions that work on it.
    pub(crate) fn keyvalue(&mut self) -> keyvalue::Access {
        self.meter.count_host_call();
        keyvalue::Access {
            store: self.keyvalue.clone(),
            plugin: self.plugin.clone(),
            bytes_max: self.rights.effective.key_value_bytes_max(),
        }
    }

    /// The guest's host resources.
    pub(crate) fn table(&mut self) -> &mut ResourceTable {
        &mut self.resources
    }

    /// The files, for the host functions that work on them.
    pub(crate) fn files(&mut self) -> FilesView<'_> {
        self.meter.count_host_call();
        self.files.view(&mut self.resources)
    }

    /// Makes a store whose every bound is set, fuel and epoch included.
    pub(crate) fn into_store(self, engine: &wasmtime::Engine, limits: &CallLimits) -> wasmtime::Result<Store<Self>> {
        let mut store = Store::new(engine, self);
        store.limiter(|state| &mut state.limiter);
        store.call_hook(on_transition);
        store.set_max_component_handles(limits.resources_max);
        store.set_fuel(limits.fuel_max)?;
        store.epoch_deadline_callback(on_epoch);
        store.set_epoch_deadline(1);
        Ok(store)
    }
}

/// Runs at each tick while the guest computes: stops it when it must stop, else lets other tasks of the thread run.
fn on_epoch(store: StoreContextMut<'_, HostState>) -> wasmtime::Result<UpdateDeadline> {
    match store.data().meter.stop.cause() {
        Some(_) => Ok(UpdateDeadline::Interrupt),
        None => Ok(UpdateDeadline::Yield(1)),
    }
}

/// Runs when control passes between host and guest: while the guest runs it may copy what a call into the host allows,
/// when it has returned what a result allows.
fn on_transition(mut store: StoreContextMut<'_, HostState>, hook: CallHook) -> wasmtime::Result<()> {
    let transfer = &store.data().meter.transfer;
    let bytes = match hook {
        CallHook::ReturningFromWasm => transfer.result_bytes,
        _ => transfer.host_call_bytes,
    };
    store.set_hostcall_fuel(bytes);
    Ok(())
}

impl Meter {
    /// Starts counting for another call on the same instance.
    pub(crate) fn start_call(&mut self, limits: &CallLimits) {
        self.stop = StopFlag::default();
        self.host_calls = 0;
        self.host_calls_max = limits.host_calls_max;
        self.transfer = Transfer::new(limits);
    }

    pub(crate) fn host_calls(&self) -> u64 {
        self.host_calls
    }

    /// Counts a call from the guest. One too many raises the flag and the epoch, so that the guest stops at once.
    fn count_host_call(&mut self) {
        self.host_calls += 1;
        if self.host_calls == self.host_calls_max.saturating_add(1) {
            self.stop.raise(StopCause::HostCalls);
            if let Some(engine) = self.engine.upgrade() {
                engine.increment_epoch();
            }
        }
    }
}

// Every host function reaches its data through one of these two, which makes them the place to count.

impl WasiView for HostState {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        self.meter.count_host_call();
        WasiCtxView {
            ctx: &mut self.wasi,
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
            hooks: &mut self.gate,
        }
    }
}
