//! The limits on the number of a guest's host calls, and on the bytes that one host call or one result copies.

use wasmtime::component::Val;
use wasmtime::{CallHook, EngineWeak, UpdateDeadline};

use super::compute_turns::record_yield;
use super::stop_flag::{StopCause, StopFlag};
use toolwit_core::limits::CallLimits;

/// Counts the calls of a guest into the host, and stops a guest that exceeds the limit. Also has the limits of the data that
/// is copied out of the guest.
pub(crate) struct HostMeter {
    pub(crate) stop: StopFlag,
    host_calls: u64,
    host_calls_max: u64,
    transfer: TransferLimits,
    engine: EngineWeak,
}

/// The limits of the data that is copied out of the guest at once.
///
/// In a result, wasmtime counts each element of a list as the size of a [`Val`] in the host, 40 bytes, even if the element is
/// a byte. In a call into the host, wasmtime counts a byte as one byte. A common limit would either refuse small results, or
/// permit host calls that copy 40 times the limit.
struct TransferLimits {
    /// The limit for a call into the host.
    host_call_bytes: usize,
    /// The limit for a result of the guest, in bytes as wasmtime counts them.
    result_bytes: usize,
}

impl TransferLimits {
    fn new(limits: &CallLimits) -> Self {
        let bytes = |amount: u64| usize::try_from(amount).unwrap_or(usize::MAX);
        Self {
            host_call_bytes: bytes(limits.host_call_bytes_max),
            // `result_bytes_max` limits the JSON of a result, in which every value takes at least one byte.
            result_bytes: bytes(limits.result_bytes_max).saturating_mul(size_of::<Val>()),
        }
    }
}

impl HostMeter {
    pub(crate) fn new(limits: &CallLimits, engine: EngineWeak) -> Self {
        Self {
            stop: StopFlag::default(),
            host_calls: 0,
            host_calls_max: limits.host_calls_max,
            transfer: TransferLimits::new(limits),
            engine,
        }
    }

    /// Sets the limits of another call on the same instance, and resets the counter and the stop flag.
    pub(crate) fn start_call(&mut self, limits: &CallLimits) {
        self.stop = StopFlag::default();
        self.host_calls = 0;
        self.host_calls_max = limits.host_calls_max;
        self.transfer = TransferLimits::new(limits);
    }

    /// Returns the maximum number of bytes that one call into the host may copy.
    pub(crate) fn host_call_bytes_max(&self) -> usize {
        self.transfer.host_call_bytes
    }

    pub(crate) fn host_calls(&self) -> u64 {
        self.host_calls
    }

    /// Counts a call from the guest. The first call over the limit raises the stop flag and increments the epoch, so that the
    /// guest stops immediately.
    pub(crate) fn count_host_call(&mut self) {
        self.host_calls += 1;
        if self.host_calls == self.host_calls_max.saturating_add(1) {
            self.stop.raise(StopCause::HostCalls);
            if let Some(engine) = self.engine.upgrade() {
                engine.increment_epoch();
            }
        }
    }

    /// Returns the action of the guest at an increment of the epoch: the guest stops if its stop flag is raised, and yields to
    /// other tasks otherwise.
    pub(crate) fn on_epoch(&self) -> UpdateDeadline {
        if self.stop.cause().is_some() {
            UpdateDeadline::Interrupt
        } else {
            record_yield();
            UpdateDeadline::Yield(1)
        }
    }

    /// Returns the maximum number of bytes of the next copy out of the guest. After the guest has returned, the next copy is its
    /// result. At every other change of control between host and guest, the next copy is for a host call.
    pub(crate) fn copy_bytes_max(&self, hook: CallHook) -> usize {
        match hook {
            CallHook::ReturningFromWasm => self.transfer.result_bytes,
            _ => self.transfer.host_call_bytes,
        }
    }
}
