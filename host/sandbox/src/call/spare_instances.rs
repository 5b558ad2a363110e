//! Instances that are created before the call that uses them.
//!
//! Creating an instance takes longer than a short call needs. Therefore, when a call has ended, the next instance of its
//! component is created behind its result. This *spare instance* has no authority, no log and no deadline of a call. The
//! call that uses it sets them, and then the instance is the same as one that was created in the call:
//!
//! - A component has spare instances only if its start code called nothing of the host and used little fuel. Such code
//!   computes the same at any time and with any rights.
//! - A call only uses a spare instance that was created under the limits of the call.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::instance::StartedInstance;
use crate::link::compile::linked_component::LinkedComponent;
use crate::link::host::http::Network;
use toolwit_core::limits::{CallLimits, EngineLimits};

/// One in this many slots of wasmtime's instance pool may be occupied by spare instances.
const SPARE_SLOTS_DIVISOR: u32 = 64;

/// The spare instances of a runtime. The oldest is dropped first.
pub(crate) struct SpareInstances {
    spares: Mutex<VecDeque<SpareInstance>>,
    count_max: usize,
}

/// An instance that no call has used, with the limits under which it was created.
struct SpareInstance {
    component: Weak<LinkedComponent>,
    limits: CallLimits,
    instance: StartedInstance,
}

impl SpareInstance {
    fn is_of(&self, component: &LinkedComponent) -> bool {
        std::ptr::eq(self.component.as_ptr(), component)
    }

    /// Returns whether the instance was created under these limits. The time of a call is not limited at its creation.
    fn has_limits(&self, limits: &CallLimits) -> bool {
        let wall_max = limits.wall_max;
        let own = CallLimits {
            wall_max,
            ..self.limits.clone()
        };
        own == *limits
    }
}

impl SpareInstances {
    pub(crate) fn new(limits: &EngineLimits) -> Self {
        Self {
            spares: Mutex::default(),
            count_max: usize::try_from(limits.instances_max / SPARE_SLOTS_DIVISOR).unwrap_or(0),
        }
    }

    /// Creates the spare instance of a component, if it has none.
    pub(super) async fn prepare(&self, component: &Arc<LinkedComponent>, limits: CallLimits, network: &Arc<Network>) {
        if self.count_max == 0 || self.lock().iter().any(|spare| spare.is_of(component)) {
            return;
        }
        match StartedInstance::without_call(component, &limits, network).await {
            Ok(instance) if instance.is_repeatable(&limits) => self.store(SpareInstance {
                component: Arc::downgrade(component),
                limits,
                instance,
            }),
            Ok(_) => tracing::debug!("a component with another start than before has no spare instance"),
            Err(error) => tracing::debug!(%error, "a spare instance could not be created"),
        }
    }

    /// Takes the spare instance of a component for a call with these limits.
    pub(super) fn take(&self, component: &LinkedComponent, limits: &CallLimits) -> Option<StartedInstance> {
        let mut spares = self.lock();
        let is_fitting = |spare: &SpareInstance| spare.is_of(component) && spare.has_limits(limits);
        let index = spares.iter().position(is_fitting)?;
        spares.remove(index).map(|spare| spare.instance)
    }

    /// Stores a spare instance. Drops the instances of components that were unloaded, and the oldest ones beyond the maximum.
    fn store(&self, spare: SpareInstance) {
        // Dropped after the lock is released, because dropping an instance clears its memory.
        let mut dropped = Vec::new();
        let mut spares = self.lock();
        spares.push_back(spare);
        while let Some(index) = spares.iter().position(|spare| spare.component.strong_count() == 0) {
            dropped.extend(spares.remove(index));
        }
        while spares.len() > self.count_max {
            dropped.extend(spares.pop_front());
        }
        drop(spares);
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<SpareInstance>> {
        self.spares.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
