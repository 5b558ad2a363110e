//! Instances that are created before the call that uses them.
//!
//! Creating an instance takes longer than a short call. Therefore the host creates the next instance of a component when
//! the component has not been called for [`IDLE_TIME`]. This *spare instance* has no authority, no log and no deadline. The
//! call that uses the instance sets them. After that, the instance is in the same state as an instance that was created in
//! the call, because:
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

/// The limit for spare instances is the number of slots in wasmtime's instance pool, divided by this number. The instances
/// that are being created have the same limit, in addition.
const SPARE_SLOTS_DIVISOR: u32 = 64;

/// The time that must pass after a call of a component before its spare instance is created. Within this time, another call
/// may follow, which needs the processors.
const IDLE_TIME: Duration = Duration::from_millis(1);

/// The spare instances of a runtime, at most one for each component. The oldest is dropped first.
pub(crate) struct SpareInstances {
    lists: Mutex<SpareLists>,
    /// The maximum number of spare instances, and of plans.
    count_max: usize,
}

#[derive(Default)]
struct SpareLists {
    /// The spare instances, oldest first.
    spares: VecDeque<SpareInstance>,
    /// The records of all existing [`SparePlan`]s.
    plans: Vec<PlanRecord>,
}

/// An instance that no call has used, with the limits under which it was created.
struct SpareInstance {
    component: Weak<LinkedComponent>,
    limits: CallLimits,
    instance: StartedInstance,
}

/// The record of a [`SparePlan`].
struct PlanRecord {
    component: Weak<LinkedComponent>,
    /// The time at which the last call of the component ended.
    last_call_end: Instant,
}

/// A plan to create the spare instance of a component when it has not been called for [`IDLE_TIME`]. Dropping the value
/// removes its record.
pub(super) struct SparePlan {
    spares: Arc<SpareInstances>,
    component: Arc<LinkedComponent>,
}

/// Returns whether a weak reference refers to this component.
fn refers_to(weak: &Weak<LinkedComponent>, component: &LinkedComponent) -> bool {
    std::ptr::eq(weak.as_ptr(), component)
}

impl SpareInstance {
    /// Returns whether the instance was created under these limits. Ignores `wall_max`, because it does not change the
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
            lists: Mutex::default(),
            count_max: usize::try_from(limits.instances_max / SPARE_SLOTS_DIVISOR).unwrap_or(0),
        }
    }

    /// Records the end of a call of a component. Returns a plan if the component has neither a spare instance nor a plan, and
    /// the number of plans is below the maximum.
    pub(super) fn record_call(self: &Arc<Self>, component: &Arc<LinkedComponent>) -> Option<SparePlan> {
        let last_call_end = Instant::now();
        let mut lists = self.lock();
        let mut plans = lists.plans.iter_mut();
        if let Some(plan) = plans.find(|plan| refers_to(&plan.component, component)) {
            plan.last_call_end = last_call_end;
            return None;
        }
        let mut spares = lists.spares.iter();
        if lists.plans.len() >= self.count_max || spares.any(|spare| refers_to(&spare.component, component)) {
            return None;
        }
        lists.plans.push(PlanRecord {
            component: Arc::downgrade(component),
            last_call_end,
        });
        Some(SparePlan {
            spares: self.clone(),
            component: component.clone(),
        })
    }

    /// Removes and returns the spare instance of a component, if it was created under these limits.
    pub(super) fn take(&self, component: &LinkedComponent, limits: &CallLimits) -> Option<StartedInstance> {
        let spares = &mut self.lock().spares;
        let is_usable = |spare: &SpareInstance| refers_to(&spare.component, component) && spare.has_limits(limits);
        let index = spares.iter().position(is_usable)?;
        spares.remove(index).map(|spare| spare.instance)
    }

    /// Stores a spare instance. Drops the instances of components that were unloaded, and the oldest ones beyond the maximum.
    fn store(&self, spare: SpareInstance) {
        // Dropped after the lock is released, because dropping an instance clears its memory.
        let mut removed = Vec::new();
        let mut lists = self.lock();
        let spares = &mut lists.spares;
        spares.push_back(spare);
        while let Some(index) = spares.iter().position(|spare| spare.component.strong_count() == 0) {
            removed.extend(spares.remove(index));
        }
        while spares.len() > self.count_max {
            removed.extend(spares.pop_front());
        }
        drop(lists);
    }

    fn lock(&self) -> MutexGuard<'_, SpareLists> {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SparePlan {
    /// Waits until the component has not been called for [`IDLE_TIME`].
    pub(super) async fn wait_until_idle(&self) {
        while let Some(last_call_end) = self.last_call_end() {
            let idle_at = last_call_end + IDLE_TIME;
            if idle_at <= Instant::now() {
                break;
            }
            sleep_until(idle_at).await;
        }
    }

    /// Creates the spare instance, and stores it if it is repeatable; see [`StartedInstance::is_repeatable`]. Otherwise, only
    /// logs the reason.
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

    fn last_call_end(&self) -> Option<Instant> {
        let lists = self.spares.lock();
        let mut plans = lists.plans.iter();
        let plan = plans.find(|plan| refers_to(&plan.component, &self.component))?;
        Some(plan.last_call_end)
    }
}

impl Drop for SparePlan {
    fn drop(&mut self) {
        let plans = &mut self.spares.lock().plans;
        plans.retain(|plan| !refers_to(&plan.component, &self.component));
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
