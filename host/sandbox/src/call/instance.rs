//! One instance: a store with its guest, and the guarded ways into it.

use std::pin::pin;
use std::sync::Arc;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use wasmtime::Store;
use wasmtime::component::{self, Func, ResourceAny, Val};
use wasmtime_wasi::I32Exit;

use super::fault;
use super::state::HostState;
use super::stop::{Abandoned, StopFlag, run_guest};
use crate::grants::authority::Authority;
use crate::link::host_api::FuelMeter;
use crate::link::http::Network;
use crate::link::linked::Linked;
use crate::link::wasi::Stdio;
use toolwit_core::limits::CallLimits;
use toolwit_core::{Artifact, CallUsage, ToolContext};
use toolwit_core::{Error, Phase};

/// What bounds a call in time, from its instantiation to its last host call.
pub(crate) struct CallClock<'a> {
    pub(crate) limits: &'a CallLimits,
    pub(crate) started: Instant,
    pub(crate) context: &'a ToolContext,
}

impl<'a> CallClock<'a> {
    pub(crate) fn start(limits: &'a CallLimits, context: &'a ToolContext) -> Self {
        Self {
            limits,
            started: Instant::now(),
            context,
        }
    }

    pub(crate) fn cancel(&self) -> &'a CancellationToken {
        self.context.cancel()
    }

    pub(crate) fn deadline(&self) -> Instant {
        self.started + self.limits.wall_max
    }
}

/// A running guest. After an error it is never entered again: whoever owns it drops it.
pub(crate) struct Instance {
    store: Store<HostState>,
    exports: component::Instance,
    stop: StopFlag,
    /// Fuel at the start of the call.
    fuel: u64,
    /// Where the fuel of a call that is part of another one is counted.
    fuel_meter: Option<FuelMeter>,
    /// The status with which the guest ended itself.
    exit_status: Option<i32>,
}

impl Instance {
    /// Makes an instance. Start functions and constructors of the guest run under the call's bounds.
    pub(crate) async fn new(
        linked: &Linked,
        clock: &CallClock<'_>,
        stdio: Stdio,
        authority: &Authority,
        network: &Arc<Network>,
    ) -> Result<Self, Error> {
        let limits = clock.limits;
        let (mut store, stop) = make_store(linked, clock, stdio, authority, network)?;
        let fuel_meter = FuelMeter::of(clock.context);
        let made = {
            let made = pin!(linked.instantiate(&mut store));
            run_guest(&stop, clock.deadline(), clock.cancel(), made).await
        };
        let failure = match made {
            Ok(Ok(exports)) => {
                return Ok(Self {
                    store,
                    exports,
                    stop,
                    fuel: limits.fuel_max,
                    fuel_meter,
                    exit_status: None,
                });
            }
            Ok(Err(error)) => fault::explain(&error, store.data(), clock, Phase::Instantiate),
            Err(Abandoned(cause)) => {
                let host_calls = store.data().meter.host_calls();
                fault::stopped(cause, clock, Phase::Instantiate, host_calls)
            }
        };
        if let Some(meter) = fuel_meter {
            meter.add(limits.fuel_max.saturating_sub(store.get_fuel().unwrap_or(0)));
        }
        Err(failure)
    }

    /// Says to which session it belongs.
    pub(crate) fn belong_to(&mut self, session: u64) {
        self.store.data_mut().belong_to(session);
    }

    /// Gives an instance that lives on the full bounds of another call, and its authority.
    pub(crate) fn start_call(&mut self, clock: &CallClock<'_>, authority: &Authority) -> Result<(), Error> {
        let limits = clock.limits;
        let state = self.store.data_mut();
        state.begin_call(authority, clock);
        state.meter.start_call(limits);
        state.limiter.start_call(limits);
        self.stop = state.meter.stop.clone();
        self.fuel = limits.fuel_max;
        self.fuel_meter = FuelMeter::of(clock.context);
        self.store.set_epoch_deadline(1);
        self.store.set_fuel(limits.fuel_max).map_err(|error| {
            Error::new(
                toolwit_core::ErrorKind::Internal,
                Phase::Execute,
                "the store has no fuel",
            )
            .with_source(format!("{error:#}"))
        })
    }

    /// Calls an export. `None` stands for a function without a result.
    pub(crate) async fn call(
        &mut self,
        linked: &Linked,
        function: usize,
        params: &[Val],
        clock: &CallClock<'_>,
    ) -> Result<Option<Val>, Error> {
        let func: Func = linked.function(function, &self.exports, &mut self.store)?;
        let mut results = [Val::Bool(false)];
        let results = if linked.has_result(function) {
            &mut results[..]
        } else {
            &mut []
        };
        let outcome = {
            let called = pin!(func.call_async(&mut self.store, params, &mut *results));
            run_guest(&self.stop, clock.deadline(), clock.cancel(), called).await
        };
        if let Ok(Err(error)) = &outcome {
            self.exit_status = error.downcast_ref::<I32Exit>().map(|exit| exit.0);
        }
        self.explain(outcome, clock)?;
        Ok(results
            .first_mut()
            .map(|result| std::mem::replace(result, Val::Bool(false))))
    }

    /// Gives a handle back to the guest, which runs its destructor.
    pub(crate) async fn drop_handle(&mut self, handle: ResourceAny, clock: &CallClock<'_>) -> Result<(), Error> {
        let outcome = {
            let dropped = pin!(handle.resource_drop_async(&mut self.store));
            run_guest(&self.stop, clock.deadline(), clock.cancel(), dropped).await
        };
        self.explain(outcome, clock)
    }

    fn explain(&self, outcome: Result<wasmtime::Result<()>, Abandoned>, clock: &CallClock<'_>) -> Result<(), Error> {
        let state = self.store.data();
        match outcome {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(fault::explain(&error, state, clock, Phase::Execute)),
            Err(Abandoned(cause)) => {
                let host_calls = state.meter.host_calls();
                Err(fault::stopped(cause, clock, Phase::Execute, host_calls))
            }
        }
    }

    /// The status with which the guest ended itself, as a program may.
    pub(crate) fn exit_status(&self) -> Option<i32> {
        self.exit_status
    }

    /// What the call cost so far.
    pub(crate) fn usage(&self, clock: &CallClock<'_>) -> CallUsage {
        let mut usage = CallUsage::default();
        usage.fuel = self.fuel.saturating_sub(self.store.get_fuel().unwrap_or(0));
        usage.wall = clock.started.elapsed();
        usage.memory_bytes = self.store.data().limiter.memory_bytes_peak();
        usage
    }

    /// The objects that the guest handed over during the call.
    pub(crate) fn take_artifacts(&mut self) -> Vec<Artifact> {
        self.store.data_mut().take_artifacts()
    }

    /// Ends the call: what it held of its conversation is let go.
    pub(crate) fn end_call(&mut self) {
        self.settle();
        self.store.data_mut().end_call();
    }

    /// Counts the fuel of the call where the call that it is part of sees it. Only the first time counts.
    pub(crate) fn settle(&mut self) {
        if let Some(meter) = self.fuel_meter.take() {
            meter.add(self.fuel.saturating_sub(self.store.get_fuel().unwrap_or(0)));
        }
    }

    /// What the guest wrote since the last time.
    pub(crate) fn take_log(&self) -> Option<Arc<str>> {
        self.store.data().log.take_text()
    }
}

/// Makes the store of an instance. Apart from what waits, so that no future carries a whole world around.
fn make_store(
    linked: &Linked,
    clock: &CallClock<'_>,
    stdio: Stdio,
    authority: &Authority,
    network: &Arc<Network>,
) -> Result<(Store<HostState>, StopFlag), Error> {
    let mut state = HostState::new(linked, clock.limits, stdio, authority, network);
    state.begin_call(authority, clock);
    let stop = state.meter.stop.clone();
    let fuel_unset = |error: wasmtime::Error| {
        let message = "the store has no fuel";
        Error::new(toolwit_core::ErrorKind::Internal, Phase::Instantiate, message).with_source(format!("{error:#}"))
    };
    let store = state.into_store(linked.engine(), clock.limits).map_err(fuel_unset)?;
    Ok((store, stop))
}

/// However a call ends, what it burnt is counted.
impl Drop for Instance {
    fn drop(&mut self) {
        self.settle();
    }
}
