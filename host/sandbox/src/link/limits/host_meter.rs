//! Limits of a guest's host calls and results: the number of calls, and the bytes that are copied at once.

use wasmtime::component::Val;
use wasmtime::{CallHook, EngineWeak, UpdateDeadline};

use super::stop_flag::{StopCause, StopFlag};
use toolwit_core::limits::CallLimits;

/// Counts the calls of a guest into the host, and stops a guest that exceeds the limit.
pub(crate) struct HostMeter {
    pub(crate) stop: StopFlag,
    host_calls: u64,
    host_calls_max: u64,
    transfer: TransferLimits,
    engine: EngineWeak,
}

/// The limits of the data that is copied out of the guest at once.
///
/// In a result, wasmtime counts each element of a list with the size of the host's `Val`, which is forty times that of a byte.
/// In a typed call into the host, wasmtime counts each byte as one byte. One limit for both would either refuse small results
/// or permit host calls that copy forty times the limit.
struct TransferLimits {
    /// The limit for a call into the host.
    host_call_bytes: usize,
    /// The limit for the result of the guest, in the bytes that wasmtime counts.
    result_bytes: usize,
}

impl TransferLimits {
    fn new(limits: &CallLimits) -> Self {
        let bytes = |amount: u64| usize::try_from(amount).unwrap_or(usize::MAX);
        Self {
            host_call_bytes: bytes(limits.host_call_bytes_max),
            // Every value of a result takes at least one byte of JSON.
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

    /// Returns the number of bytes that one call into the host may copy.
    pub(crate) fn host_call_bytes_max(&self) -> usize {
        self.transfer.host_call_bytes
    }

    pub(crate) fn host_calls(&self) -> u64 {
        self.host_calls
    }

    /// Counts a call from the guest. The first one over the limit raises the flag and increments the epoch, so that the guest
    /// stops immediately.
    pub(crate) fn count_host_call(&mut self) {
        self.host_calls += 1;
        if self.host_calls == self.host_calls_max.saturating_add(1) {
            self.stop.raise(StopCause::HostCalls);
            if let Some(engine) = self.engine.upgrade() {
                engine.increment_epoch();
            }
        }
    }

    /// Decides what a guest does when the epoch is incremented: it stops if its flag is raised, and yields to other tasks
    /// otherwise.
    pub(crate) fn on_epoch(&self) -> UpdateDeadline {
        if self.stop.cause().is_some() {
            UpdateDeadline::Interrupt
        } else {
            UpdateDeadline::Yield(1)
        }
    }

    /// Returns the maximum number of bytes of the next copy out of the guest, as control passes between host and guest:
    /// the maximum of results after the guest has returned, and the maximum of host calls while it runs.
    pub(crate) fn copy_bytes_max(&self, hook: CallHook) -> usize {
        match hook {
            CallHook::ReturningFromWasm => self.transfer.result_bytes,
            _ => self.transfer.host_call_bytes,
        }
    }
}
