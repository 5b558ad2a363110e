//! From what wasmtime reports to what the host tells.

use wasmtime::component::ResourceTableError;
use wasmtime::{PoolConcurrencyLimitError, Trap, WasmBacktrace};
use wasmtime_wasi::I32Exit;

use super::limiter::Denied;
use super::log::printable;
use super::state::HostState;
use super::stop::StopCause;
use crate::error::{Error, ErrorKind, LimitUse, Phase};
use crate::limits::{CallLimits, Span};

/// How wasmtime says that a guest copied too much into the host. The type behind it is private to wasmtime, so that its
/// text is all there is to know it by; a test fails when that text changes.
const HOST_CALL_BYTES_MESSAGE: &str =
    "too much data is being copied between the host and the guest: fuel allocated for hostcalls has been exhausted";

/// How often a frame's name may be told in a trap's message.
const FRAMES_MAX: usize = 4;

/// Says why guest code ended, with the bound that it met.
pub(crate) fn explain(error: &wasmtime::Error, state: &HostState, limits: &CallLimits, phase: Phase) -> Error {
    if let Some(cause) = state.meter.stop.cause() {
        return stopped(cause, limits, phase, state.meter.host_calls());
    }
    let told = match error.downcast_ref::<Trap>() {
        Some(Trap::OutOfFuel) => limit(
            ErrorKind::Fuel,
            phase,
            "the call burnt all its fuel",
            "fuel_max",
            limits.fuel_max,
            limits.fuel_max,
        ),
        Some(Trap::Interrupt) => stopped(StopCause::Deadline, limits, phase, 0),
        Some(Trap::StackOverflow) => Error::new(ErrorKind::Stack, phase, "the call stack is exhausted")
            .with_suggestion("the guest recurses without end, or deeper than the host allows"),
        trap => match denied(state, limits, phase) {
            Some(denied) => denied,
            None => host_side(error, state, limits, phase).unwrap_or_else(|| trapped(error, trap, phase)),
        },
    };
    told.with_source(format!("{error:#}"))
}

/// Says that the host stopped the guest.
pub(crate) fn stopped(cause: StopCause, limits: &CallLimits, phase: Phase, host_calls: u64) -> Error {
    match cause {
        StopCause::Deadline => {
            let ms = u64::try_from(limits.wall_max.as_millis()).unwrap_or(u64::MAX);
            let message = format!("the call ran past its deadline of {}", Span(limits.wall_max));
            limit(ErrorKind::Timeout, phase, &message, "wall_ms_max", ms, ms)
                .with_suggestion("it may have taken effect; allow more time, or ask for less")
        }
        StopCause::Cancelled => Error::new(ErrorKind::Cancelled, phase, "the call was cancelled")
            .with_suggestion("it may have taken effect"),
        StopCause::HostCalls => {
            let message = "the guest called the host too often";
            limit(
                ErrorKind::HostCalls,
                phase,
                message,
                "host_calls_max",
                limits.host_calls_max,
                host_calls,
            )
        }
    }
}

fn limit(kind: ErrorKind, phase: Phase, message: &str, name: &'static str, max: u64, used: u64) -> Error {
    Error::new(kind, phase, message).with_limit(LimitUse::new(name, max, used))
}

/// A guest that traps after it was refused memory did so for want of memory.
fn denied(state: &HostState, limits: &CallLimits, phase: Phase) -> Option<Error> {
    Some(match state.limiter.denied()? {
        Denied::Memory { bytes } => limit(
            ErrorKind::Memory,
            phase,
            "the guest asked for more memory than it may have",
            "memory_bytes_max",
            limits.memory_bytes_max,
            bytes,
        ),
        Denied::TableElements { elements } => limit(
            ErrorKind::TableElements,
            phase,
            "the guest asked for more table elements than it may have",
            "table_elements_max",
            limits.table_elements_max,
            elements,
        ),
    })
}

/// Errors that the host raised on the guest's behalf.
fn host_side(error: &wasmtime::Error, state: &HostState, limits: &CallLimits, phase: Phase) -> Option<Error> {
    if error.is::<PoolConcurrencyLimitError>() {
        return Some(
            Error::new(ErrorKind::Busy, phase, "the host has no free slot for another instance")
                .with_suggestion("call again when other calls have ended"),
        );
    }
    if matches!(error.downcast_ref(), Some(ResourceTableError::Full)) {
        let max = limits.resources_max as u64;
        return Some(limit(
            ErrorKind::Resources,
            phase,
            "the guest holds too many resources",
            "resources_max",
            max,
            max,
        ));
    }
    if error.root_cause().to_string() == HOST_CALL_BYTES_MESSAGE && state.meter.is_copying_result() {
        let max = limits.result_bytes_max;
        let message = "the result is larger than it may be";
        return Some(
            limit(ErrorKind::ResultBytes, phase, message, "result_bytes_max", max, max + 1)
                .with_suggestion("ask for less at once"),
        );
    }
    if error.root_cause().to_string() == HOST_CALL_BYTES_MESSAGE {
        let max = limits.host_call_bytes_max;
        let message = "the guest handed over more bytes at once than it may";
        return Some(limit(
            ErrorKind::HostCallBytes,
            phase,
            message,
            "host_call_bytes_max",
            max,
            max,
        ));
    }
    if let Some(I32Exit(status)) = error.downcast_ref() {
        return Some(Error::new(
            ErrorKind::Trap,
            phase,
            format!("the guest ended itself with exit status {status}"),
        ));
    }
    None
}

fn trapped(error: &wasmtime::Error, trap: Option<&Trap>, phase: Phase) -> Error {
    let what = trap.map_or_else(|| error.root_cause().to_string(), ToString::to_string);
    let mut message = format!("the guest trapped: {}", printable(&what));
    let frames: Vec<_> = error
        .downcast_ref::<WasmBacktrace>()
        .into_iter()
        .flat_map(WasmBacktrace::frames)
        .filter_map(|frame| frame.func_name())
        .take(FRAMES_MAX)
        .map(printable)
        .collect();
    if !frames.is_empty() {
        message.push_str(&format!(" (in {})", frames.join(", called by ")));
    }
    Error::new(ErrorKind::Trap, phase, message)
}
