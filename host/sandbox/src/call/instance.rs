//! One instance of a component: a store with the guest, and the functions that enter the guest.

use std::pin::pin;
use std::sync::Arc;

use wasmtime::Store;
use wasmtime::component::{self, Func, ResourceAny, Val};
use wasmtime_wasi::I32Exit;

use super::async_values::call_with_streams;
use super::guest_error;
use super::stop::{AbandonedGuest, run_guest};
use super::tool_result::result_too_large;
use crate::contract::ContractFunction;
use crate::grants::authority::Authority;
use crate::grants::redact::Redactor;
use crate::link::compile::linked_component::LinkedComponent;
use crate::link::host::host_api::FuelMeter;
use crate::link::host::host_state::{HostSetup, HostState};
use crate::link::host::http::Network;
use crate::link::host::wasi_context::Stdio;
use crate::link::limits::call_clock::CallClock;
use crate::link::limits::stop_flag::StopFlag;
use crate::link::limits::streams_too_large::StreamsTooLarge;
use toolwit_core::limits::CallLimits;
use toolwit_core::{Artifact, CallUsage, ToolContext};
use toolwit_core::{Error, ErrorKind, Phase};

/// The maximum fuel that start code may use so that its start counts as repeatable. Start code uses up this fuel in about a
/// millisecond.
const REPEATABLE_START_FUEL_MAX: u64 = 1_000_000;

/// An instance of a component. The owner must drop the instance after an error of guest code, because the store must not be entered
/// again. After a result that exceeds its size limit, the instance can be used again.
pub(crate) struct Instance {
    store: Store<HostState>,
    exports: component::Instance,
    stop: StopFlag,
    /// Whether a spare instance, which is created before its call, starts in the same state as an instance that is created in the
    /// call.
    is_start_repeatable: bool,
    /// The fuel of the store at the start of the current call.
    initial_fuel: u64,
    /// The fuel meter of the surrounding call. `None` for an outermost call, and after the fuel of this call has been added to the
    /// meter.
    fuel_meter: Option<FuelMeter>,
    /// The status with which the guest exited. `None` if it has not called `exit`.
    exit_status: Option<i32>,
}

/// An instance whose start code has ended and which no call uses yet.
pub(super) struct StartedInstance {
    store: Store<HostState>,
    exports: component::Instance,
}

impl StartedInstance {
    /// Creates an instance outside of a call, so the instance has no authority. Its start code runs under `limits`.
    ///
    /// # Errors
    /// The errors of the start code, such as a call of a host function that needs the authority of a call.
    pub(super) async fn without_call(
        component: &LinkedComponent,
        limits: &CallLimits,
        network: &Arc<Network>,
    ) -> Result<Self, Error> {
        let context = ToolContext::new();
        let clock = CallClock::start(limits, &context);
        let state = HostState::new(host_setup(component, limits, None, network), Stdio::Log);
        let stop = state.meter.stop.clone();
        start(component, state, &stop, &clock).await
    }

    /// Returns whether every instance of the component starts in the same state and in a short time. This is so if the start code
    /// did not call the host and used little fuel. `limits` are the limits under which this instance was created.
    pub(super) fn is_repeatable(&self, limits: &CallLimits) -> bool {
        let used_fuel = limits.fuel_max.saturating_sub(self.store.get_fuel().unwrap_or(0));
        used_fuel <= REPEATABLE_START_FUEL_MAX && self.store.data().meter.host_calls() == 0
    }
}

impl Instance {
    /// Creates an instance for a call. The start code of the guest runs under the limits of the call.
    pub(crate) async fn new(
        component: &LinkedComponent,
        clock: &CallClock<'_>,
        stdio: Stdio,
        authority: &Authority,
        network: &Arc<Network>,
    ) -> Result<Self, Error> {
        let is_log_only = matches!(stdio, Stdio::Log);
        let state = call_state(component, clock, stdio, authority, network);
        let stop = state.meter.stop.clone();
        let started = start(component, state, &stop, clock).await?;
        Ok(Self {
            is_start_repeatable: is_log_only && started.is_repeatable(clock.limits),
            store: started.store,
            exports: started.exports,
            stop,
            initial_fuel: clock.limits.fuel_max,
            fuel_meter: FuelMeter::of(clock.context),
            exit_status: None,
        })
    }

    /// Uses a spare instance for a call. The spare instance must have been created under the limits of the call, so that the fuel
    /// of its start code counts as in [`Instance::new`].
    pub(super) fn from_spare(
        spare: StartedInstance,
        component: &LinkedComponent,
        clock: &CallClock<'_>,
        authority: &Authority,
        network: &Arc<Network>,
    ) -> Self {
        let StartedInstance { mut store, exports } = spare;
        let state = call_state(component, clock, Stdio::Log, authority, network);
        let stop = state.meter.stop.clone();
        store.data_mut().replace_with(state);
        store.set_epoch_deadline(1);
        Self {
            store,
            exports,
            stop,
            is_start_repeatable: true,
            initial_fuel: clock.limits.fuel_max,
            fuel_meter: FuelMeter::of(clock.context),
            exit_status: None,
        }
    }

    /// Returns whether a spare instance, which is created before its call, starts in the same state as an instance that is created
    /// in the call.
    pub(super) fn is_start_repeatable(&self) -> bool {
        self.is_start_repeatable
    }

    /// Sets the session that the instance belongs to.
    pub(super) fn set_session(&mut self, session: u64) {
        self.store.data_mut().set_session(session);
    }

    /// Prepares a reused instance for another call: sets the limits and the authority of the call.
    pub(crate) fn start_call(&mut self, clock: &CallClock<'_>, authority: &Authority) -> Result<(), Error> {
        let limits = clock.limits;
        let state = self.store.data_mut();
        state.begin_call(authority, clock);
        state.apply_limits(limits);
        self.stop = state.meter.stop.clone();
        self.initial_fuel = limits.fuel_max;
        self.fuel_meter = FuelMeter::of(clock.context);
        self.store.set_epoch_deadline(1);
        self.store.set_max_component_handles(limits.resources_max);
        self.store
            .set_fuel(limits.fuel_max)
            .map_err(|error| fuel_not_set(&error, Phase::Execute))
    }

    /// Calls the function at `function_index` of the component's shape. Returns `None` for a function without a result.
    pub(crate) async fn call(
        &mut self,
        component: &LinkedComponent,
        function_index: usize,
        params: &[Val],
        clock: &CallClock<'_>,
    ) -> Result<Option<Val>, Error> {
        let func: Func = component.function(function_index, &self.exports, &mut self.store)?;
        let mut results = [Val::Bool(false)];
        let results = if component.has_result(function_index) {
            &mut results[..]
        } else {
            &mut []
        };
        let outcome = match component.function_with_streams(function_index) {
            None => {
                let call = pin!(func.call_async(&mut self.store, params, &mut *results));
                run_guest(&self.stop, clock, call).await
            }
            Some(function) => {
                let bytes_max = clock.limits.result_bytes_max;
                let params = params.to_vec();
                let call = call_with_streams(&mut self.store, func, function, params, &mut *results, bytes_max);
                // Boxed, because calls with streams are rare and would enlarge the future of every call.
                let call = pin!(Box::pin(call));
                run_guest(&self.stop, clock, call).await
            }
        };
        if let Ok(Err(error)) = &outcome {
            self.exit_status = error.downcast_ref::<I32Exit>().map(|exit| exit.0);
        }
        self.map_failure(outcome, clock)?;
        Ok(results
            .first_mut()
            .map(|result| std::mem::replace(result, Val::Bool(false))))
    }

    /// Calls a function of the contract of another host.
    pub(crate) async fn call_contract<F: ContractFunction>(
        &mut self,
        component: &LinkedComponent,
        function: F,
        clock: &CallClock<'_>,
    ) -> Result<F::Output, Error> {
        let func = component.function(function.index(), &self.exports, &mut self.store)?;
        let limits = clock.limits;
        // Content that is not text becomes artifacts, so a stream may have as many bytes as a result and its artifacts together.
        let stream_bytes_max = limits.result_bytes_max.saturating_add(limits.artifact_bytes_max);
        let outcome = {
            let call = pin!(function.run(&mut self.store, func, stream_bytes_max));
            run_guest(&self.stop, clock, call).await
        };
        self.map_failure(outcome, clock)
    }

    /// Drops a resource handle, which runs the destructor of the resource in the guest.
    pub(crate) async fn drop_handle(&mut self, handle: ResourceAny, clock: &CallClock<'_>) -> Result<(), Error> {
        let outcome = {
            let destructor = pin!(handle.resource_drop_async(&mut self.store));
            run_guest(&self.stop, clock, destructor).await
        };
        self.map_failure(outcome, clock)
    }

    /// Maps a failure of guest code to the error of the call.
    fn map_failure<T>(
        &self,
        outcome: Result<wasmtime::Result<T>, AbandonedGuest>,
        clock: &CallClock<'_>,
    ) -> Result<T, Error> {
        let state = self.store.data();
        match outcome {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => Err(match error.downcast_ref() {
                Some(StreamsTooLarge(bytes_max)) => result_too_large(bytes_max.saturating_add(1), clock.limits),
                None => guest_error::guest_error(&error, state, clock, Phase::Execute),
            }),
            Err(AbandonedGuest(cause)) => {
                let host_calls = state.meter.host_calls();
                Err(guest_error::stop_error(cause, clock, Phase::Execute, host_calls))
            }
        }
    }

    /// Returns the status with which the guest exited, if it called `exit`.
    pub(crate) fn exit_status(&self) -> Option<i32> {
        self.exit_status
    }

    /// Returns the resources that the call has used so far.
    pub(crate) fn usage(&self, clock: &CallClock<'_>) -> CallUsage {
        let mut usage = CallUsage::default();
        usage.fuel = self.initial_fuel.saturating_sub(self.store.get_fuel().unwrap_or(0));
        usage.wall = clock.started.elapsed();
        usage.memory_bytes = self.store.data().limiter.memory_bytes_peak();
        usage
    }

    /// Takes the artifacts that the guest attached during the call.
    pub(crate) fn take_artifacts(&mut self) -> Vec<Artifact> {
        self.store.data_mut().take_artifacts()
    }

    /// Ends the call: adds its fuel to the meter of the surrounding call, and drops the guest's access to the conversation.
    pub(crate) fn end_call(&mut self) {
        self.meter_fuel();
        self.store.data_mut().end_call();
    }

    /// Adds the fuel of the call to the meter of the surrounding call, once.
    fn meter_fuel(&mut self) {
        if let Some(meter) = self.fuel_meter.take() {
            meter.add(self.initial_fuel.saturating_sub(self.store.get_fuel().unwrap_or(0)));
        }
    }

    /// Returns the output that the guest has written since the last call of this function. Secrets are redacted.
    pub(crate) fn take_log(&self, redactor: &Redactor) -> Option<Arc<str>> {
        self.store.data().log.take_text(redactor)
    }
}

/// Instantiates a component in a new store, which runs its start code.
///
/// # Errors
/// The errors of the start code. The fuel that the start code used is then added to the meter of the surrounding call.
async fn start(
    component: &LinkedComponent,
    state: HostState,
    stop: &StopFlag,
    clock: &CallClock<'_>,
) -> Result<StartedInstance, Error> {
    let limits = clock.limits;
    let store = state.into_store(component.engine(), limits);
    let mut store = store.map_err(|error| fuel_not_set(&error, Phase::Instantiate))?;
    let outcome = {
        let instantiation = pin!(component.instantiate(&mut store));
        run_guest(stop, clock, instantiation).await
    };
    let error = match outcome {
        Ok(Ok(exports)) => return Ok(StartedInstance { store, exports }),
        Ok(Err(error)) => guest_error::guest_error(&error, store.data(), clock, Phase::Instantiate),
        Err(AbandonedGuest(cause)) => {
            let host_calls = store.data().meter.host_calls();
            guest_error::stop_error(cause, clock, Phase::Instantiate, host_calls)
        }
    };
    if let Some(meter) = FuelMeter::of(clock.context) {
        meter.add(limits.fuel_max.saturating_sub(store.get_fuel().unwrap_or(0)));
    }
    Err(error)
}

/// Creates the host state of an instance at the start of its call.
fn call_state(
    component: &LinkedComponent,
    clock: &CallClock<'_>,
    stdio: Stdio,
    authority: &Authority,
    network: &Arc<Network>,
) -> HostState {
    let setup = host_setup(component, clock.limits, Some(authority), network);
    let mut state = HostState::new(setup, stdio);
    state.begin_call(authority, clock);
    state
}

fn host_setup<'a>(
    component: &'a LinkedComponent,
    limits: &'a CallLimits,
    authority: Option<&'a Authority>,
    network: &'a Arc<Network>,
) -> HostSetup<'a> {
    HostSetup {
        engine: component.engine(),
        uses_conversation: component.uses_conversation(),
        limits,
        authority,
        network,
    }
}

fn fuel_not_set(error: &wasmtime::Error, phase: Phase) -> Error {
    Error::new(ErrorKind::Internal, phase, "the fuel of the store could not be set").with_source(format!("{error:#}"))
}

/// Adds the used fuel to the meter, even if the call did not end normally.
impl Drop for Instance {
    fn drop(&mut self) {
        self.meter_fuel();
    }
}
