//! The limit on the total size of all memories and tables of one instance, and on the memory of the instances of all calls.

use wasmtime::ResourceLimiter;

use super::shared_budget::BudgetShare;
use toolwit_core::limits::CallLimits;

/// A refused growth, with the total size that all memories or all tables would have reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeniedGrowth {
    Memory {
        bytes: u64,
    },
    /// The instances of all calls, or those of the caller, would use more than their share of `bytes_max`.
    SharedMemory {
        bytes_max: u64,
    },
    TableElements {
        elements: u64,
    },
}

/// Limits the total size of all memories and tables of a store. The limiter of wasmtime limits each of them separately.
#[derive(Debug)]
pub(crate) struct GrowthLimiter {
    memory_bytes: u64,
    memory_bytes_max: u64,
    /// The largest value of `memory_bytes` since the instance was created.
    memory_bytes_peak: u64,
    table_elements: u64,
    table_elements_max: u64,
    /// The maximum number of core instances, and also of memories and of tables.
    instances_max: usize,
    /// The bytes or table elements of the last permitted growth. They are subtracted again if the allocation fails.
    last_growth: u64,
    last_denied: Option<DeniedGrowth>,
    /// The share of the memory that all calls use together; `None` while no call uses the instance.
    share: Option<BudgetShare>,
}

impl GrowthLimiter {
    pub(crate) fn new(limits: &CallLimits) -> Self {
        Self {
            memory_bytes: 0,
            memory_bytes_max: limits.memory_bytes_max,
            memory_bytes_peak: 0,
            table_elements: 0,
            table_elements_max: limits.table_elements_max,
            instances_max: limits.instances_max,
            last_growth: 0,
            last_denied: None,
            share: None,
        }
    }

    /// Sets the limits of another call on the same instance, and clears the last refusal.
    pub(crate) fn start_call(&mut self, limits: &CallLimits) {
        self.memory_bytes_max = limits.memory_bytes_max;
        self.table_elements_max = limits.table_elements_max;
        self.last_denied = None;
    }

    /// Returns the total size of the memories, in bytes.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.memory_bytes
    }

    /// Begins to count the memory of the instance for a call, or stops. The share must contain the present size.
    pub(crate) fn set_share(&mut self, share: Option<BudgetShare>) {
        self.share = share;
    }

    /// Takes the share of another limiter, whose instance has no memory, and adds the memory of this instance to it.
    pub(crate) fn take_share_of(&mut self, other: &mut Self) {
        self.share = other.share.take();
        if let Some(share) = &mut self.share {
            share.add(self.memory_bytes);
        }
    }

    /// Returns the largest total size of the memories since the instance was created, in bytes.
    pub(crate) fn memory_bytes_peak(&self) -> u64 {
        self.memory_bytes_peak
    }

    /// Returns the last growth that was refused since the call started.
    pub(crate) fn last_denied_growth(&self) -> Option<DeniedGrowth> {
        self.last_denied
    }
}

impl ResourceLimiter for GrowthLimiter {
    fn memory_growing(&mut self, current: usize, desired: usize, _maximum: Option<usize>) -> wasmtime::Result<bool> {
        let growth = (desired as u64).saturating_sub(current as u64);
        let total = self.memory_bytes.saturating_add(growth);
        if total > self.memory_bytes_max {
            // `memory.grow` then returns −1, and the guest can handle the failed allocation.
            self.last_denied = Some(DeniedGrowth::Memory { bytes: total });
            return Ok(false);
        }
        if let Some(share) = &mut self.share
            && !share.grow(growth)
        {
            self.last_denied = Some(DeniedGrowth::SharedMemory { bytes_max: share.max() });
            return Ok(false);
        }
        self.memory_bytes = total;
        self.last_growth = growth;
        self.memory_bytes_peak = self.memory_bytes_peak.max(total);
        Ok(true)
    }

    fn memory_grow_failed(&mut self, _error: wasmtime::Error) -> wasmtime::Result<()> {
        let growth = std::mem::take(&mut self.last_growth);
        self.memory_bytes = self.memory_bytes.saturating_sub(growth);
        if let Some(share) = &mut self.share {
            share.shrink(growth);
        }
        Ok(())
    }

    fn table_growing(&mut self, current: usize, desired: usize, _maximum: Option<usize>) -> wasmtime::Result<bool> {
        let growth = (desired as u64).saturating_sub(current as u64);
        let total = self.table_elements.saturating_add(growth);
        if total > self.table_elements_max {
            self.last_denied = Some(DeniedGrowth::TableElements { elements: total });
            return Ok(false);
        }
        self.table_elements = total;
        self.last_growth = growth;
        Ok(true)
    }

    fn table_grow_failed(&mut self, _error: wasmtime::Error) -> wasmtime::Result<()> {
        self.table_elements = self
            .table_elements
            .saturating_sub(std::mem::take(&mut self.last_growth));
        Ok(())
    }

    fn instances(&self) -> usize {
        self.instances_max
    }

    fn tables(&self) -> usize {
        self.instances_max
    }

    fn memories(&self) -> usize {
        self.instances_max
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    // attack: B7
    #[test]
    fn all_memories_of_an_instance_share_one_limit() {
        let limits = CallLimits {
            memory_bytes_max: 3 << 16,
            ..CallLimits::default()
        };
        let mut limiter = GrowthLimiter::new(&limits);
        assert!(limiter.memory_growing(0, 2 << 16, None).unwrap());
        assert!(
            !limiter.memory_growing(0, 2 << 16, None).unwrap(),
            "a second memory shares the limit"
        );
        assert_eq!(
            limiter.last_denied_growth(),
            Some(DeniedGrowth::Memory { bytes: 4 << 16 })
        );
        assert!(limiter.memory_growing(0, 1 << 16, None).unwrap());
        assert_eq!(limiter.memory_bytes_peak(), 3 << 16);
    }

    #[test]
    fn failed_growth_is_not_counted() {
        let mut limiter = GrowthLimiter::new(&CallLimits {
            memory_bytes_max: 1 << 16,
            ..CallLimits::default()
        });
        assert!(limiter.memory_growing(0, 1 << 16, None).unwrap());
        limiter.memory_grow_failed(wasmtime::Error::msg("no room")).unwrap();
        assert!(limiter.memory_growing(0, 1 << 16, None).unwrap());
    }
}
