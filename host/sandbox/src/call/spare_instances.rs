//! Instances that are created before the call that uses them.
//!
//! Creating an instance takes longer than a short call needs. Therefore, when a component has not been called for a moment,
//! its next instance is created. This *spare instance* has no authority, no log and no deadline. The call that uses the
//! instance sets them. After that, the instance is in the same state as one that was created in the call, because:
//!
//! - A component has a spare instance only if its start code did not call the host and used little fuel. Such code
//!   computes the same at any time and with any rights.
//! - A call only uses a spare instance that was created under the limits of the call.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::instance::StartedInstance;
use crate::link::compile::linked_component::LinkedComponent;
use crate::link::host::http::Network;
use toolwit_core::limits::{CallLimits, EngineLimits};

/// Spare instances may occupy one in this many slots of wasmtime's instance pool. Those that are being created may occupy as
/// many slots again.
const SPARE_SLOTS_DIVISOR: u32 = 64;

/// The time without a call of a component after which its spare instance is created. Until then, the next calls need the
/// processors.
const IDLE_TIME: Duration = Duration::from_millis(1);

/// The spare instances of a runtime, at most one for each component. The oldest is dropped first.
pub(crate) struct SpareInstances {
    state: Mutex<SpareState>,
    count_max: usize,
}

#[derive(Default)]
struct SpareState {
    /// The spare instances, oldest first.
    spares: VecDeque<SpareInstance>,
    /// The components whose spare instance will be or is being created.
    planned: Vec<PlannedInstance>,
}

/// An instance that no call has used, with the limits under which it was created.
struct SpareInstance {
    component: Weak<LinkedComponent>,
    limits: CallLimits,
    instance: StartedInstance,
}

/// A spare instance that will be created when the component has not been called for [`IDLE_TIME`].
struct PlannedInstance {
    component: Weak<LinkedComponent>,
    /// The end of the last call.
    last_call: Instant,
}

/// A plan to create the spare instance of a component. Dropping the value ends the plan.
pub(super) struct SparePlan {
    spares: Arc<SpareInstances>,
    component: Arc<LinkedComponent>,
}

/// Returns whether a weak reference refers to this component.
fn is_same(weak: &Weak<LinkedComponent>, component: &LinkedComponent) -> bool {
    std::ptr::eq(weak.as_ptr(), component)
}

impl SpareInstance {
    /// Returns whether the instance was created under these limits. `wall_max` may differ, because it does not change the
    /// instance.
    fn has_limits(&self, limits: &CallLimits) -> bool {
        let wall_max = limits.wall_max;
        let limits_at_creation = CallLimits {
            wall_max,
            ..self.limits.clone()
        };
        limits_at_creation == *limits
    }
}

impl SpareInstances {
    pub(crate) fn new(limits: &EngineLimits) -> Self {
        Self {
            state: Mutex::default(),
            count_max: usize::try_from(limits.instances_max / SPARE_SLOTS_DIVISOR).unwrap_or(0),
        }
    }

    /// Records the end of a call of a component. Returns a plan if the component needs one: it has no spare instance, none is
    /// planned, and there are not too many plans.
    pub(super) fn record_call(self: &Arc<Self>, component: &Arc<LinkedComponent>) -> Option<SparePlan> {
        let last_call = Instant::now();
        let mut state = self.lock();
        let mut planned = state.planned.iter_mut();
        if let Some(planned) = planned.find(|planned| is_same(&planned.component, component)) {
            planned.last_call = last_call;
            return None;
        }
        let mut spares = state.spares.iter();
        if state.planned.len() >= self.count_max || spares.any(|spare| is_same(&spare.component, component)) {
            return None;
        }
        state.planned.push(PlannedInstance {
            component: Arc::downgrade(component),
            last_call,
        });
        Some(SparePlan {
            spares: self.clone(),
            component: component.clone(),
        })
    }

    /// Takes the spare instance of a component for a call with these limits.
    pub(super) fn take(&self, component: &LinkedComponent, limits: &CallLimits) -> Option<StartedInstance> {
        let spares = &mut self.lock().spares;
        let is_fitting = |spare: &SpareInstance| is_same(&spare.component, component) && spare.has_limits(limits);
        let index = spares.iter().position(is_fitting)?;
        spares.remove(index).map(|spare| spare.instance)
    }

    /// Stores a spare instance. Drops the instances of components that were unloaded, and the oldest ones beyond the maximum.
    fn store(&self, spare: SpareInstance) {
        // Dropped after the lock is released, because dropping an instance clears its memory.
        let mut dropped = Vec::new();
        let mut state = self.lock();
        let spares = &mut state.spares;
        spares.push_back(spare);
        while let Some(index) = spares.iter().position(|spare| spare.component.strong_count() == 0) {
            dropped.extend(spares.remove(index));
        }
        while spares.len() > self.count_max {
            dropped.extend(spares.pop_front());
        }
        drop(state);
    }

    fn lock(&self) -> MutexGuard<'_, SpareState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SparePlan {
    /// Waits until the component has not been called for [`IDLE_TIME`].
    pub(super) async fn wait_until_idle(&self) {
        while let Some(last_call) = self.last_call() {
            let idle_at = last_call + IDLE_TIME;
            if idle_at <= Instant::now() {
                break;
            }
            sleep_until(idle_at).await;
        }
    }

    /// Creates and stores the spare instance. Logs a failure.
    pub(super) async fn create(self, limits: CallLimits, network: &Arc<Network>) {
        match StartedInstance::without_call(&self.component, &limits, network).await {
            Ok(instance) if instance.is_repeatable(&limits) => self.spares.store(SpareInstance {
                component: Arc::downgrade(&self.component),
                limits,
                instance,
            }),
            Ok(_) => tracing::debug!("dropped a spare instance: its start code called the host or used much fuel"),
            Err(error) => tracing::debug!(%error, "a spare instance could not be created"),
        }
    }

    fn last_call(&self) -> Option<Instant> {
        let state = self.spares.lock();
        let planned = state
            .planned
            .iter()
            .find(|planned| is_same(&planned.component, &self.component))?;
        Some(planned.last_call)
    }
}

impl Drop for SparePlan {
    fn drop(&mut self) {
        let planned = &mut self.spares.lock().planned;
        planned.retain(|planned| !is_same(&planned.component, &self.component));
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
