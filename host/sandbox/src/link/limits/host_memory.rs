//! The limit on the memory of the host that the resources of a guest hold.

use toolwit_core::limits::CallLimits;

/// The memory of the host that the resources of an instance hold, and its limit.
///
/// A guest creates resources through many interfaces: headers, requests, bodies, streams, files, buckets. After a call into
/// the host, the memory of all resources in the resource table is measured. The functions that create resources do not count
/// memory, because one of them could be forgotten. The measurement is skipped if the calls since the last measurement cannot
/// have exceeded the limit.
#[derive(Debug)]
pub(crate) struct HostMemory {
    bytes_max: u64,
    /// The maximum memory that one call into the host adds.
    growth_bytes_max: u64,
    /// An upper bound of the memory that the resources hold now: the last measurement plus the possible growth since then.
    bytes_at_most: u64,
}

/// The error of an exceeded limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the guest holds {bytes} bytes of the host's memory")]
pub(crate) struct HostMemoryExceeded {
    /// The memory that the resources of the guest hold.
    pub(crate) bytes: u64,
}

impl HostMemory {
    /// Creates the limit for an instance that has no resources yet. `largest_object_bytes` is the maximum memory that one resource
    /// holds in addition to the data that the guest passes.
    pub(crate) fn new(limits: &CallLimits, largest_object_bytes: u64) -> Self {
        Self {
            bytes_max: limits.host_memory_bytes_max,
            growth_bytes_max: limits.host_call_bytes_max.saturating_add(largest_object_bytes),
            bytes_at_most: 0,
        }
    }

    /// Sets the limit of another call on the same instance. Resources of earlier calls count too.
    pub(crate) fn start_call(&mut self, limits: &CallLimits, largest_object_bytes: u64) {
        let bytes_at_most = self.bytes_at_most;
        *self = Self {
            bytes_at_most,
            ..Self::new(limits, largest_object_bytes)
        };
    }

    /// Returns whether the next [`check`](Self::check) measures the memory.
    pub(crate) fn is_measurement_due(&self) -> bool {
        self.bytes_at_most.saturating_add(self.growth_bytes_max) > self.bytes_max
    }

    /// Checks the limit after a call into the host. `measure` returns the memory that all resources hold.
    ///
    /// # Errors
    /// [`HostMemoryExceeded`].
    pub(crate) fn check(&mut self, measure: impl FnOnce() -> u64) -> Result<(), HostMemoryExceeded> {
        self.bytes_at_most = self.bytes_at_most.saturating_add(self.growth_bytes_max);
        if self.bytes_at_most <= self.bytes_max {
            return Ok(());
        }
        let bytes = measure();
        self.bytes_at_most = bytes;
        if bytes > self.bytes_max {
            return Err(HostMemoryExceeded { bytes });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // attack: K1
    #[test]
    fn memory_is_measured_before_the_limit_can_be_exceeded() {
        let limits = CallLimits {
            host_memory_bytes_max: 100,
            host_call_bytes_max: 20,
            ..CallLimits::default()
        };
        let mut memory = HostMemory::new(&limits, 20);
        let not_measured = || -> u64 { unreachable!("two calls add at most 80 bytes") };
        assert_eq!(memory.check(not_measured), Ok(()));
        assert_eq!(memory.check(not_measured), Ok(()));
        assert_eq!(memory.check(|| 70), Ok(()));
        assert_eq!(memory.check(|| 101), Err(HostMemoryExceeded { bytes: 101 }));
        memory.start_call(&limits, 20);
        assert_eq!(
            memory.check(|| 101),
            Err(HostMemoryExceeded { bytes: 101 }),
            "the memory of an earlier call counts"
        );
        assert_eq!(memory.check(|| 90), Ok(()));
    }
}
