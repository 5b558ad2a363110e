//! From what wasmtime reports to what the host tells.

use std::time::Duration;

use wasmtime::component::ResourceTableError;
use wasmtime::{PoolConcurrencyLimitError, Trap, WasmBacktrace};
use wasmtime_wasi::I32Exit;

use super::instance::CallClock;
use super::limiter::Denied;
use super::state::HostState;
use super::stop::StopCause;
use toolwit_core::limits::{ByteCount, CallLimits, Span};
use toolwit_core::text::printable;
use toolwit_core::{Error, ErrorKind, ExceededLimit, Phase};

/// Bounds whose errors are of types private to wasmtime, so that a text is all there is to know them by. Tests hit each
/// of them and fail when a text changes.
const UNTYPED_BOUNDS: [(&str, Bound); 3] = [
    (
        "too much data is being copied between the host and the guest: fuel allocated for hostcalls has been exhausted",
        Bound::HostCallBytes,
    ),
    (
        "cannot allocate another handle: store handle limit exceeded",
        Bound::Resources,
    ),
    ("cannot lend resource: store handle limit exceeded", Bound::Resources),
];

#[derive(Clone, Copy)]
enum Bound {
    HostCallBytes,
    Resources,
}

/// How much of what a guest wrote before a trap is told with it: enough for the message of a panic.
const LAST_WORDS_CHARS_MAX: usize = 400;

/// How often a frame's name may be told in a trap's message.
const FRAMES_MAX: usize = 4;

/// Says why guest code ended, with the bound that it met.
pub(crate) fn explain(error: &wasmtime::Error, state: &HostState, clock: &CallClock<'_>, phase: Phase) -> Error {
    if let Some(cause) = state.meter.stop.cause() {
        return stopped(cause, clock, phase, state.meter.host_calls());
    }
    let limits = clock.limits;
    let told = match error.downcast_ref::<Trap>() {
        Some(Trap::OutOfFuel) => fuel(limits, phase),
        Some(Trap::Interrupt) => stopped(StopCause::Deadline, clock, phase, 0),
        Some(Trap::StackOverflow) => stack(limits, phase),
        trap => exited(error, phase)
            .or_else(|| denied(state, limits, phase))
            .or_else(|| host_side(error, limits, phase))
            .unwrap_or_else(|| trapped(error, trap, state, phase)),
    };
    told.with_source(format!("{error:#}"))
}

/// Says that the host stopped the guest.
pub(crate) fn stopped(cause: StopCause, clock: &CallClock<'_>, phase: Phase, host_calls: u64) -> Error {
    let limits = clock.limits;
    match cause {
        StopCause::Deadline => {
            let ms = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
            let message = format!("the call ran past its deadline of {}", Span(limits.wall_max));
            Error::new(ErrorKind::Timeout, phase, message)
                .with_suggestion("it may have taken effect; ask for less at once, or allow more time")
                .with_limit(ExceededLimit::new(
                    "wall_ms_max",
                    ms(limits.wall_max),
                    ms(clock.started.elapsed()),
                ))
        }
        StopCause::Cancelled => Error::new(ErrorKind::Cancelled, phase, "the call was cancelled")
            .with_suggestion("it may have taken effect"),
        StopCause::HostCalls => {
            let max = limits.host_calls_max;
            let message = format!("the guest called the host more than {max} times");
            limit(
                ErrorKind::HostCalls,
                phase,
                message,
                ExceededLimit::new("host_calls_max", max, host_calls),
            )
        }
    }
}

fn limit(kind: ErrorKind, phase: Phase, message: String, limit: ExceededLimit) -> Error {
    Error::new(kind, phase, message)
        .with_suggestion(format!("ask for less at once; an operator can raise `{}`", limit.limit))
        .with_limit(limit)
}

fn fuel(limits: &CallLimits, phase: Phase) -> Error {
    let max = limits.fuel_max;
    let message = format!("the call burnt all its fuel of {max}");
    limit(
        ErrorKind::Fuel,
        phase,
        message,
        ExceededLimit::new("fuel_max", max, max),
    )
}

fn stack(limits: &CallLimits, phase: Phase) -> Error {
    let max = limits.stack_bytes_max as u64;
    let message = format!("the call stack of {} is exhausted", ByteCount(max));
    Error::new(ErrorKind::Stack, phase, message)
        .with_suggestion("the guest recurses without end, or deeper than the host allows")
        .with_limit(ExceededLimit::new("stack_bytes_max", max, max))
}

/// A guest that traps after it was refused memory did so for want of memory.
fn denied(state: &HostState, limits: &CallLimits, phase: Phase) -> Option<Error> {
    Some(match state.limiter.denied()? {
        Denied::Memory { bytes } => too_much_memory(bytes, limits, phase),
        Denied::TableElements { elements } => too_many_elements(elements, limits, phase),
    })
}

/// Refuses memory: what the guest asked for while it ran, or what its component declares.
pub(crate) fn too_much_memory(bytes: u64, limits: &CallLimits, phase: Phase) -> Error {
    let max = limits.memory_bytes_max;
    let message = format!(
        "the guest asked for {} of memory and may have {}",
        ByteCount(bytes),
        ByteCount(max)
    );
    limit(
        ErrorKind::Memory,
        phase,
        message,
        ExceededLimit::new("memory_bytes_max", max, bytes),
    )
}

/// Refuses table elements: what the guest asked for while it ran, or what its component declares.
pub(crate) fn too_many_elements(elements: u64, limits: &CallLimits, phase: Phase) -> Error {
    let max = limits.table_elements_max;
    let message = format!("the guest asked for {elements} table elements and may have {max}");
    limit(
        ErrorKind::TableElements,
        phase,
        message,
        ExceededLimit::new("table_elements_max", max, elements),
    )
}

/// A guest may end itself, as programs do. For a tool that is no program, it is a trap.
fn exited(error: &wasmtime::Error, phase: Phase) -> Option<Error> {
    let I32Exit(status) = error.downcast_ref()?;
    let message = format!("the guest ended itself with exit status {status}");
    Some(Error::new(ErrorKind::Trap, phase, message))
}

/// Errors that the host raised on the guest's behalf.
fn host_side(error: &wasmtime::Error, limits: &CallLimits, phase: Phase) -> Option<Error> {
    if error.is::<PoolConcurrencyLimitError>() {
        return Some(
            Error::new(ErrorKind::Busy, phase, "the host has no free slot for another instance")
                .with_suggestion("call again when other calls have ended"),
        );
    }
    Some(match untyped_bound(error)? {
        // One bound of wasmtime's serves for results too; what is raised while the guest runs has a backtrace.
        Bound::HostCallBytes if !error.is::<WasmBacktrace>() => {
            let max = limits.result_bytes_max;
            Error::new(
                ErrorKind::ResultBytes,
                phase,
                format!("the result has more than {}", ByteCount(max)),
            )
            .with_suggestion("ask for less at once")
            .with_limit(ExceededLimit::new("result_bytes_max", max, max.saturating_add(1)))
        }
        bound => bound.explain(limits, phase),
    })
}

fn untyped_bound(error: &wasmtime::Error) -> Option<Bound> {
    if matches!(error.downcast_ref(), Some(ResourceTableError::Full)) {
        return Some(Bound::Resources);
    }
    let text = error.root_cause().to_string();
    UNTYPED_BOUNDS
        .iter()
        .find(|(known, _)| *known == text)
        .map(|(_, bound)| *bound)
}

impl Bound {
    fn explain(self, limits: &CallLimits, phase: Phase) -> Error {
        let (kind, message, name, max) = match self {
            Self::HostCallBytes => {
                let max = limits.host_call_bytes_max;
                let message = format!("the guest handed over more than {} at once", ByteCount(max));
                (ErrorKind::HostCallBytes, message, "host_call_bytes_max", max)
            }
            Self::Resources => {
                let max = limits.resources_max as u64;
                let message = format!("the guest holds more than {max} resources");
                (ErrorKind::Resources, message, "resources_max", max)
            }
        };
        // At least one more than allowed was asked for; how many more, wasmtime does not say.
        limit(
            kind,
            phase,
            message,
            ExceededLimit::new(name, max, max.saturating_add(1)),
        )
    }
}

fn trapped(error: &wasmtime::Error, trap: Option<&Trap>, state: &HostState, phase: Phase) -> Error {
    let what = trap.map_or_else(|| error.root_cause().to_string(), ToString::to_string);
    let what = printable(&what);
    let mut message = format!(
        "the guest trapped: {}",
        what.strip_prefix("wasm trap: ").unwrap_or(&what)
    );
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
    if let Some(words) = state.log.last_words(LAST_WORDS_CHARS_MAX) {
        message.push_str(&format!("; it wrote: {words}"));
    }
    Error::new(ErrorKind::Trap, phase, message)
}
